package discord

import (
	"regexp"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// The limits of a message, in UTF-16 units. Discord counts characters; a text never has more
// characters than units.
const (
	// maxText is the largest length of the text in all components of a message, with its markup.
	maxText = 4000
	// maxNonce is the largest length of a nonce.
	maxNonce = 25
	// margin is the length that a prompt reserves for texts that change later: the deadline, the
	// number of calls, the outcome. votesMargin is the length reserved for the names of the
	// people who vote.
	margin      = 400
	votesMargin = 400
	// maxAlert is the largest width of a request's summary in a notification.
	maxAlert = 150
)

// The first lines of a message that may be the second one about the same request. The constant repeated
// is for a pending request, and repeatEnded for a decided request.
const (
	repeated    = "(Sent again: this question may be here already. One answer is enough.)"
	repeatEnded = "(Sent again: this question may be here twice. It has ended: buttons that are left elsewhere change nothing.)"
)

// special escapes the characters that Discord reads as Markdown, a mention, an emoji or a link anywhere
// in a line. afterSpecial matches an escaped colon that needs no escape, because nothing follows it.
// lineStart matches what Discord reads as Markdown at the beginning of a line.
var (
	special      = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`, "|", `\|`, "<", `\<`, "[", `\[`, "@", `\@`, ":", `\:`)
	afterSpecial = regexp.MustCompile(`(?m)\\:(\s|$)`)
	invite       = regexp.MustCompile(`(?i)(discord(?:app)?)\.(gg|com)\b`) // Discord shows a card for an invitation without a scheme
	lineStart    = regexp.MustCompile(`(?m)^(\s*\d*)([-#+>.])`)
)

// escape makes a text safe where Discord reads Markdown. Discord then shows every character as it is, and
// makes no links, mentions, lists or emoji.
func escape(s string) string {
	s = afterSpecial.ReplaceAllString(special.Replace(s), ":$1")
	return lineStart.ReplaceAllString(invite.ReplaceAllString(s, `$1\.$2`), `$1\$2`)
}

func bold(s string) string {
	if s == "" {
		return ""
	}
	return "**" + escape(s) + "**"
}

// code formats a text that may come from the agent. In code, Discord reads no Markdown. A text with a
// backtick cannot be in code, and is escaped instead.
func code(s string) string {
	if strings.Contains(s, "`") || strings.TrimSpace(s) == "" {
		return escape(s)
	}
	return "`" + s + "`"
}

// fence begins and ends a box of code.
const fence = "```"

// bar begins each line of a quoted text. Without it, Discord would cut empty lines from a box.
const bar = "│ "

// box formats lines of the agent as boxes of code. A line with the fence would end a box, so it is
// escaped and stands between two boxes.
func box(all []string) string {
	var out, open []string
	flush := func() {
		if len(open) > 0 {
			out = append(out, fence+"\n"+strings.Join(open, "\n")+"\n"+fence)
		}
		open = nil
	}
	for _, line := range all {
		if strings.Contains(line, fence) {
			flush()
			out = append(out, escape(bar+line))
		} else {
			open = append(open, bar+line)
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// part formats a part of a prompt. Labels of nod are bold; text that may come from the agent is code.
func part(p people.Part) string {
	label := bold(p.Label + ":")
	if p.Field {
		label = code(p.Label + ":")
	}
	switch {
	case p.Caption:
		risk := p.Spans[0][len(p.Spans[0])-1].From
		return code(p.Label[:risk]) + bold(p.Label[risk:])
	case len(p.Lines) == 0:
		return bold(p.Label)
	case p.Quote && p.Label == "":
		return box(p.Lines)
	case p.Quote:
		return label + "\n" + box(p.Lines)
	}
	var all []string
	for _, line := range p.Lines {
		all = append(all, code(line))
	}
	return label + " " + strings.Join(all, "\n  ")
}

// named matches the lines in which a message names its request. Text of the agent cannot form such a
// line: in a box each line begins with bar, and elsewhere asterisks are in code or escaped.
var named = regexp.MustCompile("(?m)^\\*\\*(Session|Request):\\*\\* `([A-Za-z0-9_-]{1,128})`$")

// requestNamedIn returns the request that the text of a message names.
func requestNamedIn(text string) (session, id string, ok bool) {
	for _, found := range named.FindAllStringSubmatch(text, -1) {
		if found[1] == "Session" {
			session = found[2]
		} else {
			id = found[2]
		}
	}
	return session, id, session != "" && id != ""
}

// promptText returns a prompt in its full form or, if that is too long for a message, in its brief
// form.
func promptText(p *schemas.Prompt, now time.Time) string {
	if fitsWhole(p) {
		if text := layout(p, people.Parts(p, now)); people.UTF16(text) <= maxText { // the full form may be too long because of the outcome
			return text
		}
	}
	return layout(p, people.Brief(p, now))
}

// fitsWhole reports whether a message can show the exact payload of a prompt. If it cannot, a person
// cannot allow the request on Discord. The result is the same when nod sends p and when the answer
// comes: it does not depend on the time, the decision, the number of calls, the votes or whether an
// agent still waits.
func fitsWhole(p *schemas.Prompt) bool {
	open := *p
	open.Decision, open.Repeat, open.Waiting, open.Detached = nil, true, mostCalls, true
	limit := maxText - margin
	if open.Votes = nil; open.VotesNeeded > 1 {
		limit -= votesMargin
	}
	return people.UTF16(layout(&open, people.Parts(&open, p.Request.CreatedAt))) <= limit
}

// mostCalls is larger than the number of calls of any question.
const mostCalls = 99999

func layout(p *schemas.Prompt, parts []people.Part) string {
	var all []string
	switch {
	case p.Repeat && p.Decision == nil:
		all = append(all, escape(repeated))
	case p.Repeat:
		all = append(all, escape(repeatEnded))
	}
	for _, one := range parts {
		all = append(all, part(one))
	}
	return strings.Join(all, "\n")
}

// isRepeat reports whether the text of a message begins with repeated or repeatEnded.
func isRepeat(text string) bool {
	return strings.HasPrefix(text, escape(repeated)) || strings.HasPrefix(text, escape(repeatEnded))
}

// said formats a text of nod, which may contain text of the agent. If it does not fit in a message, said
// leaves out lines at the end and says so.
func said(text string) string {
	const more = "\n… and more, which does not fit here."
	var all []string
	units := people.UTF16(more)
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line = escape(line)
		if units += people.UTF16(line) + 1; units > maxText {
			return strings.Join(all, "\n") + more
		}
		all = append(all, line)
	}
	if text := strings.Join(all, "\n"); text != "" {
		return text
	}
	return "nod"
}

// alert returns the first text of a message about a pending request, which a notification shows.
func alert(p *schemas.Prompt) string {
	text := "nod asks: " + people.Summary(p, maxAlert)
	if p.Repeat {
		text += "\n" + repeated
	}
	return escape(text)
}

func plain(text string) outgoing { return outgoing{Content: &text} }

func textBlock(text string) component { return component{Type: typeText, Content: text} }
