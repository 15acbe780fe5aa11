package slack

import (
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// The limits of a message, in UTF-16 units. Slack counts characters instead; a text never has
// more characters than units.
const (
	// maxBlock is the largest length of a block's text. Slack has a limit of 3,000 for blocks of
	// the type section; nod applies it to rich text too.
	maxBlock = 2900
	// maxMessage is nod's own limit for the text of all blocks of a message.
	maxMessage = 10000
	// maxBlocks is the largest number of blocks in a message, without the blocks with buttons.
	maxBlocks = 40
	// margin is the length that a prompt reserves for texts that change later: the deadline, the
	// number of calls, the outcome. votesMargin is the length reserved for the names of the
	// people who vote.
	margin      = 600
	votesMargin = 400
	// maxAlert is the largest width of a request's summary, or of a reply's first line, in a
	// notification.
	maxAlert = 150
)

// The first lines of a message that may be the second one about the same request. The constant repeated
// is for a pending request, and repeatEnded for a decided request.
const (
	repeated    = "(Sent again: this question may be here already. One answer is enough.)"
	repeatEnded = "(Sent again: this question may be here twice. It has ended: buttons that are left elsewhere change nothing.)"
)

// repeatBlock is the id of the first block of a message that begins with repeated or repeatEnded.
const repeatBlock = "again"

// content is the rich text of a message, while it is being built. In rich text, Slack reads no markup. It
// shows every character as it is, and makes no links, mentions or emoji.
type content struct {
	blocks []block
	units  int // the length of the texts in all blocks
	last   int // the length of the texts in the last block
}

// add appends an element with a text of n units. It starts another block if the last block is full.
func (c *content) add(e element, n int) {
	if len(c.blocks) == 0 || c.last+n > maxBlock {
		c.blocks = append(c.blocks, block{Type: "rich_text"})
		c.last = 0
	}
	b := &c.blocks[len(c.blocks)-1]
	b.Elements = append(b.Elements, e)
	c.last += n
	c.units += n
}

// line appends a line of pieces. A line that is longer than a block becomes several lines.
func (c *content) line(pieces ...element) {
	pieces = slices.DeleteFunc(pieces, func(p element) bool { return p.Text == "" }) // Slack refuses an empty text
	n := 0
	for _, p := range pieces {
		n += people.UTF16(p.Text.(string))
	}
	if n <= maxBlock {
		c.add(element{Type: "rich_text_section", Elements: pieces}, n)
		return
	}
	for _, p := range pieces {
		for i, part := range split(p.Text.(string), maxBlock) {
			if i > 0 {
				c.line(bold(goesOn))
			}
			c.add(element{Type: "rich_text_section", Elements: []element{{Type: "text", Text: part, Style: p.Style}}}, people.UTF16(part))
		}
	}
}

// goesOn precedes each continuation of a line that is too long for one block.
const goesOn = "The same line goes on:"

// box appends lines of the agent in boxes of fixed-width text. If one block cannot contain all
// lines, a further block follows.
func (c *content) box(lines []string) {
	var open []string
	n := 0
	flush := func() {
		if len(open) > 0 {
			c.add(element{Type: "rich_text_preformatted", Elements: []element{{Type: "text", Text: strings.Join(open, "\n")}}}, n)
		}
		open, n = nil, 0
	}
	for _, line := range lines {
		for i, part := range split(line, maxBlock) {
			units := people.UTF16(part) + 1
			if i > 0 {
				flush()
				c.line(bold(goesOn))
			}
			if n+units > maxBlock {
				flush()
			}
			open, n = append(open, part), n+units
		}
	}
	flush()
}

// split cuts a text into pieces of at most limit UTF-16 units. For an empty text it returns one
// piece with a space, because Slack refuses empty texts.
func split(s string, limit int) (all []string) {
	if s == "" {
		return []string{" "}
	}
	from, n := 0, 0
	for i, r := range s {
		units := people.UTF16(string(r))
		if n+units > limit {
			all, from, n = append(all, s[from:i]), i, 0
		}
		n += units
	}
	return append(all, s[from:])
}

func plain(s string) element { return element{Type: "text", Text: s} }
func bold(s string) element  { return element{Type: "text", Text: s, Style: &textStyle{Bold: true}} }
func code(s string) element  { return element{Type: "text", Text: s, Style: &textStyle{Code: true}} }

func (c *content) fits(limit int) bool { return c.units <= limit && len(c.blocks) <= maxBlocks }

// part appends a part of a prompt. Labels of nod are bold; text that may come from the agent is
// formatted as code.
func (c *content) part(p people.Part) {
	label := bold(p.Label + ":")
	if p.Field {
		label = code(p.Label + ":")
	}
	switch {
	case p.Caption:
		risk := p.Spans[0][len(p.Spans[0])-1].From
		c.line(code(p.Label[:risk]), bold(p.Label[risk:]))
	case len(p.Lines) == 0:
		c.line(bold(p.Label))
	case p.Quote:
		if p.Label != "" {
			c.line(label)
		}
		c.box(p.Lines)
	default:
		for i, line := range p.Lines {
			if i == 0 {
				c.line(label, plain(" "), code(line))
			} else {
				c.line(plain("  "), code(line))
			}
		}
	}
}

// promptContent arranges a prompt in its full form or, if that is too long for a message, in its brief
// form.
func promptContent(p *schemas.Prompt, now time.Time) *content {
	if fitsWhole(p) {
		if c := layout(p, people.Parts(p, now)); c.fits(maxMessage) { // the full form may be too long because of the outcome
			return c
		}
	}
	return layout(p, people.Brief(p, now))
}

// fitsWhole reports whether a message can show the exact payload of a prompt. If it cannot, a person
// cannot allow the request on Slack. The result is the same when nod sends p and when the answer comes:
// it does not depend on the time, the decision, the number of calls, the votes or whether an agent still
// waits.
func fitsWhole(p *schemas.Prompt) bool {
	open := *p
	open.Decision, open.Repeat, open.Waiting, open.Detached = nil, true, mostCalls, true
	limit := maxMessage - margin
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
		c.line(plain(repeated))
	case p.Repeat:
		c.line(plain(repeatEnded))
	}
	if p.Repeat {
		c.blocks[0].BlockID = repeatBlock
	}
	for _, part := range parts {
		c.part(part)
	}
	return c
}

// said converts a text of nod to blocks. The text may contain text of the agent, because Slack
// reads no markup in these blocks.
func said(text string) []block {
	c := &content{}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && c.fits(maxMessage-people.UTF16(line)) {
			c.line(plain(line))
		}
	}
	if len(c.blocks) == 0 {
		c.line(plain(" "))
	}
	return c.blocks
}

// escape makes a text safe for a field in which Slack reads markup. It replaces the characters <, > and
// &, which mentions and links need.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// alert returns the text of a notification about p: its state and the beginning of its payload.
func alert(p *schemas.Prompt) string {
	if p.Decision != nil {
		return escape.Replace(people.Outcome(p.Decision, p))
	}
	return escape.Replace("nod asks: " + people.Summary(p, maxAlert))
}
