package people

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// The actions of buttons that open a dialog or show other buttons.
const (
	ActWhy  = "w" // open the dialog for a reason, with which the request is denied
	ActMore = "m" // show the other answers
	ActSay  = "s" // open the dialog for the answer to an agent's question
	ActEdit = "e" // open the dialog with the input, in which a person can change the call and allow it
)

// Button is a button that a channel shows: its label and its action.
type Button struct{ Label, Action string }

// Offer says which answers to a prompt a channel with buttons and dialogs offers.
type Offer struct {
	*schemas.Prompt
	Whole    bool // the message shows the whole payload; if not, no button allows the request
	MaxLabel int  // the largest length of a button's label, in UTF-16 units
	MaxInput int  // the length of the longest input that a dialog can show, in UTF-16 units
}

// Buttons returns the buttons under the message of a pending prompt.
func (o Offer) Buttons() (all []Button) {
	if o.Request.Kind == schemas.KindQuestion {
		return o.questionButtons()
	}
	if _, ok := o.Request.OptionOfKind(schemas.AllowOnce); ok && o.Whole {
		all = append(all, Button{"✅ " + AllowLabel(o.Prompt), ActAllow})
	}
	all = append(all, Button{"⛔ Deny", ActDeny}, Button{"Deny, say why", ActWhy})
	if len(o.Options()) > 0 || len(o.reaches()) > 0 || o.Editable() {
		all = append(all, Button{"More options", ActMore})
	}
	return all
}

// questionButtons makes a button for each option of an agent's question. If an option is too long for a
// label, the label is "Answer N" with the number of the option in the message.
func (o Offer) questionButtons() (all []Button) {
	for i, option := range o.Request.Options {
		if option.Kind.Allows() && !o.Whole || OptionWords(&o.Request, option) == "" {
			continue
		}
		b := Button{o.numbered(Choice(&o.Request, option), i), strconv.Itoa(i)}
		if option.Text {
			if j, ok := TextOption(o.Prompt, o.Whole); !ok || j != i {
				continue
			}
			b.Action = ActSay
		}
		all = append(all, b)
	}
	return all
}

// numbered returns a label, or "Answer N" for the option i if the label is too long.
func (o Offer) numbered(label string, i int) string {
	if UTF16(label) > o.MaxLabel {
		return "Answer " + strconv.Itoa(i+1)
	}
	return label
}

// reaches returns the rules that an answer can store.
func (o Offer) reaches() []schemas.Reach { return OfferedReaches(o.Prompt, o.Whole) }

// Options returns the indexes of the options that only More offers. For an agent's question, it returns
// all options except the answer as a text.
func (o Offer) Options() (places []int) {
	once, _ := o.Request.OptionOfKind(schemas.AllowOnce)
	never, _ := o.Request.OptionOfKind(schemas.RejectOnce)
	question := o.Request.Kind == schemas.KindQuestion
	for i, option := range o.Request.Options {
		switch {
		case option.Text, OptionWords(&o.Request, option) == "":
		case question && (o.Whole || !option.Kind.Allows()):
			places = append(places, i)
		case question, option.OptionID == once.OptionID, option.OptionID == never.OptionID:
		case (option.Kind.Allows() || option.Kind.Remembered()) && !o.Whole: // a brief message does not contain the option's name
		default:
			places = append(places, i)
		}
	}
	return places
}

// MoreAnswer is an answer that takes more than one press under the message. It contains the answer's
// description and its buttons.
type MoreAnswer struct {
	ID      string // unique among the answers to one prompt
	Text    string // what the answer does; it may contain text of the agent
	Note    string // a warning of nod; may be empty
	Buttons []Button
}

// More returns the answers that the action ActMore shows.
func (o Offer) More() (all []MoreAnswer) {
	for _, i := range o.Options() {
		m := MoreAnswer{ID: fmt.Sprintf("option%d-", i), Text: fmt.Sprintf("%d: %s", i+1, OptionText(o.Prompt, i))}
		if o.Request.Options[i].Kind.Remembered() {
			m.Note = AgentRemembers
		}
		m.Buttons = []Button{{o.numbered(OptionLabel(o.Prompt, i, o.MaxLabel), i), strconv.Itoa(i)}}
		all = append(all, m)
	}
	for i, r := range o.reaches() {
		m := MoreAnswer{ID: fmt.Sprintf("rule%d-", i), Text: RuleText(i, &r)}
		for _, e := range ExtentsOf(&r) {
			m.Buttons = append(m.Buttons, Button{fmt.Sprintf("✅ %d, %s", i+1, e), e.Action(i)})
		}
		all = append(all, m)
	}
	if o.Editable() {
		all = append(all, MoreAnswer{ID: "edit", Note: "Allow it once, with another input:", Buttons: []Button{{"Edit the input", ActEdit}}})
	}
	return all
}

// describe returns a text about what an action allows.
func (o Offer) describe(action string) string {
	for i, r := range o.reaches() {
		for _, e := range ExtentsOf(&r) {
			if e.Action(i) == action {
				return RuleText(i, &r) + ", " + e.String()
			}
		}
	}
	for _, i := range o.Options() {
		if strconv.Itoa(i) == action {
			return OptionText(o.Prompt, i)
		}
	}
	return strings.TrimPrefix(AllowLabel(o.Prompt), "Allow ")
}

// Answer returns the answer for the action of a button. ok is false if the channel does not offer that
// action.
func (o Offer) Answer(action string, from schemas.From) (a schemas.Answer, ok bool) {
	return AnswerFor(o.Prompt, o.Whole, o.Options(), action, from)
}

// NeedsCodeWord reports whether an answer requires the code word and does not contain it yet.
func (o Offer) NeedsCodeWord(a *schemas.Answer) bool {
	option, ok := o.Request.Option(a.OptionID)
	return ok && option.Kind.Allows() && o.HasCondition(schemas.ConditionCodeWord) && a.CodeWord == ""
}
