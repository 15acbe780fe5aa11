package telegram

import (
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

const (
	// maxText is the largest length of a message's text, in UTF-16 units.
	maxText = 4096
	// margin is the length, in UTF-16 units, that a prompt reserves for texts that change later: "in 7
	// days", "which has passed", the outcome.
	margin = 256
	// votesMargin is the length that a prompt reserves for the names of voters, if several people must
	// allow the request.
	votesMargin = 400
	// maxEntities is the number of entities that Telegram keeps in a message. It would ignore further
	// code entities, and could turn the agent's text in them into links.
	maxEntities = 100
)

// The labels of the lines in which a message names its request. In a prompt these lines are below
// all text of the agent; see people.Parts.
const (
	requestLine = "Request: "
	sessionLine = "Session: "
	callsLine   = "Calls: "
)

// content is the text of a message with its entities, while it is being built.
type content struct {
	text     strings.Builder
	units    int // the length of the text, in UTF-16 units
	entities []entity
}

// add appends s. If kind is not empty, s becomes an entity of that kind.
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

// repeated is the first line of a pending prompt if the chat may already contain another message about
// it. repeatEnded replaces that line when the request is decided. nod cannot edit the other message,
// because it has no Ref for it.
const (
	repeated    = "(Sent again: this question may be here already. One answer is enough.)"
	repeatEnded = "(Sent again: this question may be here twice. It has ended: buttons that are left elsewhere change nothing.)"
)

// promptContent arranges a prompt in its full form or, if that is too long for a message, in its brief
// form.
func promptContent(p *schemas.Prompt, now time.Time) *content {
	if fitsWhole(p) {
		if c := layout(p, people.Parts(p, now)); c.fits(maxText) { // the full form may be too long because of the outcome
			return c
		}
	}
	return layout(p, people.Brief(p, now))
}

// fitsWhole reports whether a message can show the exact payload of a prompt. If it cannot, a person
// cannot allow the request on Telegram. The result is the same when nod sends p and when the answer
// comes: it does not depend on the time, the decision, the number of calls, the votes or whether an
// agent still waits.
func fitsWhole(p *schemas.Prompt) bool {
	open := *p
	open.Decision, open.Repeat, open.Waiting = nil, true, mostCalls
	open.Detached = true // reserve space for the note about a detached request, which is longer than the note about Request.HostAsks
	limit := maxText - margin
	if open.Votes = nil; open.VotesNeeded > 1 {
		limit -= votesMargin
	}
	return layout(&open, people.Parts(&open, p.Request.CreatedAt)).fits(limit)
}

// mostCalls is larger than the number of calls of any question.
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

// part writes labels of nod in bold, and text that may come from the agent as code. In code, Telegram
// makes no links, mentions or commands.
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

// caption writes the headline or the line with the agent. nod's own words about the risk are bold. All
// other text is code, because it may come from the agent.
func (c *content) caption(p people.Part) {
	at := 0
	for _, s := range p.Spans[0] {
		kind := "bold"
		if s.Style == payload.Faint {
			kind = "code"
		}
		c.add("code", p.Label[at:s.From])
		c.add(kind, p.Label[s.From:s.To])
		at = s.To
	}
	c.add("code", p.Label[at:])
}

// label writes the label of a part. If Field is set, the label is a text of the agent.
func (c *content) label(p people.Part) {
	kind := "bold"
	if p.Field {
		kind = "code"
	}
	c.add(kind, p.Label)
	c.add("", ":")
}

// callsCountedIn returns the number of calls that the text of a replyMessage contains.
func callsCountedIn(text string) int {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), callsLine); found {
			n, _ := strconv.Atoi(rest)
			return max(1, n)
		}
	}
	return 1
}

// requestNamedIn returns the request that a message of nod names. Of several lines that begin with the
// same label, the last counts: an earlier line may come from a tool's input.
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
