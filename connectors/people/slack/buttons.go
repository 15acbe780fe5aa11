package slack

import (
	"fmt"
	"strconv"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// The actions of buttons. An action that is a number is an index in the request's options. The actions
// for standing answers are those of people.Extent.
const (
	actAllow = people.ActAllow
	actDeny  = people.ActDeny
	actWhy   = "w" // ask for a reason in a dialog, then deny with it
	actMore  = "m" // show the other answers in a dialog
	actSay   = "s" // ask for the answer to a question in a dialog
	actEdit  = "e" // show the input in a dialog, to allow it with changes
)

const (
	maxLabel = 75   // the largest length of a button's label, in UTF-16 units
	maxValue = 2000 // the largest length of a button's value, in bytes
	perBlock = 25   // the largest number of buttons in one block
	// maxButtons is nod's own limit for the buttons of a message or dialog.
	maxButtons = 50
)

// row arranges buttons in blocks. Each block's id begins with name. Each button gets an action_id
// that is unique in its message or dialog, as Slack demands.
func row(p *schemas.Prompt, name string, all ...choice) (blocks []block) {
	for i, c := range all[:min(len(all), maxButtons)] {
		if i%perBlock == 0 {
			blocks = append(blocks, block{Type: "actions", BlockID: fmt.Sprint(name, i/perBlock)})
		}
		b := &blocks[len(blocks)-1]
		b.Elements = append(b.Elements, element{
			Type: "button", Text: plainText(c.label), ActionID: name + c.action, Value: people.ButtonFor(p, c.action).Text(maxValue),
		})
	}
	return blocks
}

func plainText(s string) *text { return &text{Type: "plain_text", Text: s} }

// choice is a button: its label and its action.
type choice struct{ label, action string }

// buttons returns the buttons under a pending prompt. None of them allows the request unless the
// message shows the whole payload.
func buttons(p *schemas.Prompt) []block {
	if p.Request.Kind == schemas.KindQuestion {
		return row(p, "answer", questionChoices(p)...)
	}
	var all []choice
	if _, ok := p.Request.OptionOfKind(schemas.AllowOnce); ok && fitsWhole(p) {
		all = append(all, choice{"✅ " + people.AllowLabel(p), actAllow})
	}
	all = append(all, choice{"⛔ Deny", actDeny}, choice{"Deny, say why", actWhy})
	if len(otherOptions(p)) > 0 || len(offeredReaches(p)) > 0 || mayEdit(p) {
		all = append(all, choice{"More options", actMore})
	}
	return row(p, "answer", all...)
}

// questionChoices makes a button for each option of a question. If an option is too long for a label,
// the label is "Answer N" with the number of the option in the message.
func questionChoices(p *schemas.Prompt) (all []choice) {
	for i, o := range p.Request.Options {
		if o.Kind.Allows() && !fitsWhole(p) || people.OptionWords(&p.Request, o) == "" {
			continue
		}
		c := choice{people.Choice(&p.Request, o), strconv.Itoa(i)}
		if people.UTF16(c.label) > maxLabel {
			c.label = "Answer " + strconv.Itoa(i+1)
		}
		if o.Text {
			c.action = actSay
		}
		all = append(all, c)
	}
	return all
}

// offeredReaches returns the rules that an answer on Slack can store.
func offeredReaches(p *schemas.Prompt) []schemas.Reach {
	return people.OfferedReaches(p, fitsWhole(p))
}

// otherOptions returns the indexes of the options that only the dialog More answers offers. For a
// question, it returns all options except the answer as a text.
func otherOptions(p *schemas.Prompt) (places []int) {
	once, _ := p.Request.OptionOfKind(schemas.AllowOnce)
	never, _ := p.Request.OptionOfKind(schemas.RejectOnce)
	mayAllow, question := fitsWhole(p), p.Request.Kind == schemas.KindQuestion
	for i, o := range p.Request.Options {
		switch {
		case o.Text, people.OptionWords(&p.Request, o) == "":
		case question && (mayAllow || !o.Kind.Allows()):
			places = append(places, i)
		case question, o.OptionID == once.OptionID, o.OptionID == never.OptionID:
		case (o.Kind.Allows() || o.Kind.Remembered()) && !mayAllow: // the brief text does not contain the option's name
		default:
			places = append(places, i)
		}
	}
	return places
}

// answerFor returns the answer to p for the action of a button. ok is false if p does not offer that
// action here.
func answerFor(p *schemas.Prompt, action string, from schemas.From) (a schemas.Answer, ok bool) {
	return people.AnswerFor(p, fitsWhole(p), otherOptions(p), action, from)
}

// textAnswer returns an answer to p with a text that the person wrote. ok is false if p does not
// accept a text as an answer on Slack.
func textAnswer(p *schemas.Prompt, text string, from schemas.From) (a schemas.Answer, ok bool) {
	return people.TextAnswer(p, fitsWhole(p), text, from)
}

// needsCodeWord reports whether an answer to p requires the code word and does not contain it yet.
func needsCodeWord(p *schemas.Prompt, a *schemas.Answer) bool {
	option, ok := p.Request.Option(a.OptionID)
	return ok && option.Kind.Allows() && p.HasCondition(schemas.ConditionCodeWord) && a.CodeWord == ""
}
