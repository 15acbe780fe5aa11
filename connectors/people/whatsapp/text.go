package whatsapp

import (
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// The limits of Meta's Cloud API, in UTF-16 units. Meta counts characters instead; a text never
// has more characters than units.
const (
	maxText    = 4096 // the largest length of a text message
	maxBody    = 1024 // the largest length of the text above buttons
	maxTitle   = 20   // the largest length of a button's title
	maxID      = 256  // the largest length of a button's id
	maxButtons = 3
	// maxParameter is nod's own limit for the text in a template.
	maxParameter = 500
	// margin is the length that a prompt reserves for texts that may become longer: the deadline, the
	// number of calls, the note about an agent that stopped waiting.
	margin = 256
)

// The first lines of a message that may be the second one about the same request. The constant repeated
// is for a pending request, and repeatEnded for a decided request.
const (
	repeated    = "(Sent again: this question may be here already. One answer is enough.)"
	repeatEnded = "(Sent again: this question may be here twice. It has ended: buttons that are left elsewhere change nothing.)"
)

// wholeBefore is the first line of a message with buttons, if another message before it shows the
// request.
const wholeBefore = "Answer the request that this message quotes, in the message before this one."

// code formats a line as code between three backticks, so that the characters * _ ~ and > have no special
// meaning. A backtick in the line could end the code, so code replaces it by its number.
func code(line string) string {
	return "```" + strings.ReplaceAll(line, "`", "⟦U+0060⟧") + "```"
}

// said formats each line of a text as code.
func said(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			line = code(line)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// layout arranges the parts of a prompt. Labels of nod are bold; text that may come from the agent is
// code.
func layout(p *schemas.Prompt, parts []people.Part) string {
	var b strings.Builder
	switch {
	case p.Repeat && p.Decision == nil:
		b.WriteString(repeated + "\n")
	case p.Repeat:
		b.WriteString(repeatEnded + "\n")
	}
	for i, part := range parts {
		apart := part.Quote && part.Label != "" || part.Field
		if i > 0 && !part.Field && !part.Caption && (apart || part.Group != parts[i-1].Group || parts[i-1].Quote || parts[i-1].Field) {
			b.WriteString("\n")
		}
		writePart(&b, part)
	}
	return strings.TrimRight(b.String(), "\n")
}

func writePart(b *strings.Builder, p people.Part) {
	label := "*" + p.Label + ":*"
	if p.Field {
		label = code(p.Label) + ":"
	}
	switch {
	case p.Caption:
		b.WriteString(code(p.Label) + "\n")
	case len(p.Lines) == 0:
		b.WriteString("*" + p.Label + "*\n")
	case p.Quote:
		if p.Label != "" {
			b.WriteString(label + "\n")
		}
		for _, line := range p.Lines {
			b.WriteString(code("│ "+line) + "\n")
		}
	default:
		b.WriteString(label)
		for _, line := range p.Lines {
			b.WriteString(" " + code(line) + "\n")
		}
	}
}

// A form says how the chat shows a prompt.
type form int

const (
	oneMessage  form = iota // one message with buttons shows the whole request
	twoMessages             // a text shows the whole request, and a second message with the buttons quotes the text
	briefly                 // the request is too long, so the chat shows its brief form, and the person cannot allow it there
)

// formOf returns the form of a prompt. The form is the same when nod sends the prompt and when the answer
// comes, because it does not depend on the time, the decision, the number of calls or whether an agent
// still waits.
func formOf(p *schemas.Prompt) form {
	open := *p
	open.Decision, open.Repeat, open.Waiting, open.Detached = nil, true, mostCalls, true
	n := people.UTF16(layout(&open, people.Parts(&open, p.Request.CreatedAt)))
	switch {
	case n <= maxBody-margin:
		return oneMessage
	case n <= maxText-margin:
		return twoMessages
	}
	return briefly
}

// mostCalls is larger than the number of calls of any question.
const mostCalls = 99999

// fitsWhole reports whether the chat shows the exact payload of a prompt. If it does not, a person
// cannot allow the request on WhatsApp.
func fitsWhole(p *schemas.Prompt) bool { return formOf(p) != briefly }

// promptText returns the text of a prompt in its full form or, if that is too long, in its brief form.
func promptText(p *schemas.Prompt, now time.Time) string {
	if fitsWhole(p) {
		if text := layout(p, people.Parts(p, now)); people.UTF16(text) <= maxText { // the full form may be too long because of the outcome
			return text
		}
	}
	return layout(p, people.Brief(p, now))
}

// hint returns the line that explains how to answer with a text.
func hint(p *schemas.Prompt, answerCode string) string {
	switch {
	case p.Request.Kind == schemas.KindQuestion:
		return questionHint(p, answerCode)
	case mayAllow(p):
		return "Tap a button, or write yes " + answerCode + ", no " + answerCode + ", or no " + answerCode + " and why."
	case p.HasCondition(schemas.ConditionCodeWord) && fitsWhole(p):
		return "It needs the code word, which a bot cannot delete from this chat: allow it on another channel. To deny it, tap the button or write no " + answerCode + " and why."
	}
	return "Tap the button, or write no " + answerCode + " and why."
}

// questionHint returns the line that explains how to answer an agent's question with a text.
func questionHint(p *schemas.Prompt, answerCode string) string {
	_, words := people.TextOption(p, fitsWhole(p))
	switch most := len(choices(p)) > 0; {
	case words && most:
		return "To answer in your own words, write answer " + answerCode + " and your words."
	case words:
		return "To answer, write answer " + answerCode + " and your words. For its other answers: nod answer " + p.PendingID + ", nod inbox or the web inbox."
	case most:
		return ""
	}
	return "It has more answers than WhatsApp has buttons. Answer it in nod inbox, in the web inbox (/web sends a link), or with nod answer " + p.PendingID + "."
}

// outcomeText returns the message about the end of a request.
func outcomeText(p *schemas.Prompt) string {
	text := said(people.Recorded(p.Decision, p))
	if p.Repeat {
		text = repeatEnded + "\n" + text
	}
	return text + "\n" + code("Request "+p.PendingID)
}

// noticeText returns the text for a template: the project, the risk and the id of the request, and
// nothing of its payload. Meta refuses a template's text with line breaks or several spaces in a row.
func noticeText(p *schemas.Prompt) string {
	text := strings.Join(strings.Fields(people.NewWakeup(p, "").Text), " ")
	if runes := []rune(text); len(runes) > maxParameter {
		text = string(runes[:maxParameter])
	}
	return text
}
