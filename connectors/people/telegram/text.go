package telegram

import (
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// maxText is the greatest length of a message's text, in UTF-16 units.
	maxText = 4096
	// margin is the length, in UTF-16 units, that a prompt leaves free for texts that change
	// with time: "in 7 days", "which has passed", the outcome.
	margin = 256
	// maxEntities is the number of entities that Telegram keeps. It would not mark the text
	// of further entities as code, and would turn parts of that text into links.
	maxEntities = 100
)

// The lines by which a message names its request. In a prompt they come after all text of the
// agent; see people.Parts.
const (
	requestLine = "Request: "
	sessionLine = "Session: "
	callsLine   = "Calls: "
)

// content is a text under construction, with its entities.
type content struct {
	text     strings.Builder
	units    int // the text's length in UTF-16 units
	entities []entity
}

// add appends s, as an entity if kind is set.
func (c *content) add(kind, s string) {
	n := people.UTF16(s)
	if kind != "" && n > 0 {
		c.entities = append(c.entities, entity{Type: kind, Offset: c.units, Length: n})
	}
	c.text.WriteString(s)
	c.units += n
}

func (c *content) newline() {
	if c.units > 0 {
		c.add("", "\n")
	}
}

func (c *content) fits(limit int) bool { return c.units <= limit && len(c.entities) <= maxEntities }

// repeated is the first line of a pending prompt that may already be in the chat in another
// message; repeatEnded is that line once the request is decided. nod cannot edit the other
// message, because it has no Ref of that message.
const (
	repeated    = "(Sent again: this question may be here already. One answer is enough.)"
	repeatEnded = "(Sent again: this question may be here twice. It has ended: buttons that are left elsewhere change nothing.)"
)

// promptContent lays out a prompt: in full if it fits a message, otherwise in brief.
func promptContent(p *schemas.Prompt, now time.Time) *content {
	if fitsWhole(p) {
		if c := layout(p, people.Parts(p, now)); c.fits(maxText) { // a long outcome may exceed the limit
			return c
		}
	}
	return layout(p, people.Brief(p, now))
}

// fitsWhole reports whether a prompt is shown with its exact payload. If it is not, it
// cannot be allowed on Telegram. The result is the same when p is sent and when the answer
// comes: it does not depend on the time, the decision, the number of calls or whether an
// agent still waits.
func fitsWhole(p *schemas.Prompt) bool {
	open := *p
	open.Decision, open.Repeat, open.Waiting = nil, true, mostCalls
	open.Detached = true // the note about a detached request is longer than the note about Request.HostAsks
	return layout(&open, people.Parts(&open, p.Request.CreatedAt)).fits(maxText - margin)
}

// mostCalls is a greater number of calls than any question has.
const mostCalls = 99999

func layout(p *schemas.Prompt, parts []people.Part) *content {
	c := &content{}
	switch {
	case p.Repeat && p.Decision == nil:
		c.add("italic", repeated)
	case p.Repeat:
		c.add("italic", repeatEnded)
	}
	for i, part := range parts {
		apart := part.Quote && part.Label != "" || part.Field
		if i > 0 && !part.Field && !part.Caption && (apart || part.Group != parts[i-1].Group || parts[i-1].Quote || parts[i-1].Field) {
			c.newline()
		}
		c.newline()
		c.part(part)
	}
	return c
}

// part writes nod's labels in bold, and all text that may come from the agent as code, in
// which Telegram makes no links, mentions or commands.
func (c *content) part(p people.Part) {
	switch {
	case p.Caption:
		c.caption(p)
	case len(p.Lines) == 0:
		c.add("bold", p.Label)
	case p.Quote:
		if p.Label != "" {
			c.label(p)
			c.newline()
		}
		c.add("pre", "│ "+strings.Join(p.Lines, "\n│ "))
	default:
		c.label(p)
		c.add("", " ")
		for i, line := range p.Lines {
			if i > 0 {
				c.add("", "\n  ")
			}
			c.add("code", line)
		}
	}
}

// caption writes the line with the agent and the risk: the risk in bold, the rest, which has
// texts of the agent, as code.
func (c *content) caption(p people.Part) {
	risk := p.Spans[0][len(p.Spans[0])-1].From
	c.add("code", p.Label[:risk])
	c.add("bold", p.Label[risk:])
}

// label writes a part's label. A label with Field set is text of the agent.
func (c *content) label(p people.Part) {
	kind := "bold"
	if p.Field {
		kind = "code"
	}
	c.add(kind, p.Label)
	c.add("", ":")
}

// callsCountedIn returns the number of calls in the text of a replyMessage.
func callsCountedIn(text string) int {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), callsLine); found {
			n, _ := strconv.Atoi(rest)
			return max(1, n)
		}
	}
	return 1
}

// requestNamedIn returns the request that a message from nod names. The last line that begins
// with each of the words counts: a field of a tool's input may begin an earlier line.
func requestNamedIn(text string) (session, id string, ok bool) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, found := strings.CutPrefix(line, requestLine); found {
			id = rest
		}
		if rest, found := strings.CutPrefix(line, sessionLine); found {
			session = rest
		}
	}
	return session, id, schemas.ValidID(session) && schemas.ValidID(id)
}
