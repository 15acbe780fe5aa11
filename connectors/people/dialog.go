package people

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// The kinds of a Dialog.
const (
	AskWhy  = "why"  // the dialog asks for the reason of a denial
	AskSay  = "say"  // the dialog asks for the answer to an agent's question
	AskEdit = "edit" // the input of a call, to allow the call with changes
	AskCode = "code" // the dialog asks for the code word
)

// Dialog describes a dialog with one field, in which a person enters a text.
type Dialog struct {
	Kind    string
	Title   string
	Allows  string // the description of what the answer allows, which may contain text of the agent; only for AskCode
	Label   string // the label of the field
	Hint    string // a sentence about the effect of the text; may be empty
	Initial string // the text in the field when the dialog opens
	Long    bool   // the text may have several lines
	Submit  string // the label of the button that sends the text
}

// Dialog returns the dialog that an action opens. Most actions give an answer without a dialog; if such
// an answer needs the code word, the dialog asks for the code word. ok is false if the prompt does not
// offer the action.
func (o Offer) Dialog(action string) (d Dialog, ok bool) {
	switch action {
	case ActWhy:
		return Dialog{Kind: AskWhy, Title: "Deny", Label: "Why?", Hint: "The agent reads it.", Long: true, Submit: "Deny"}, true
	case ActSay:
		_, ok = TextOption(o.Prompt, o.Whole)
		return Dialog{Kind: AskSay, Title: "Answer", Label: "Your answer", Long: true, Submit: "Send"}, ok
	case ActEdit:
		return Dialog{
			Kind: AskEdit, Title: "Edit the input", Label: "The input in JSON.", Hint: "The agent runs it as you leave it here.",
			Initial: o.Input(), Long: true, Submit: "Allow once",
		}, o.Editable()
	}
	_, ok = o.Answer(action, schemas.From{})
	return Dialog{Kind: AskCode, Title: "Code word", Allows: o.describe(action), Label: "The code word", Submit: "Allow"}, ok
}

// DialogAnswer returns the answer that a person gave with a text in a dialog. kind and action are those
// of the dialog. ok is false if the prompt does not accept this answer.
func (o Offer) DialogAnswer(kind, action, text string, from schemas.From) (a schemas.Answer, ok bool) {
	switch kind {
	case AskWhy:
		return Utterance{Word: No, Reason: text}.Answer(o.Prompt, from)
	case AskSay:
		return TextAnswer(o.Prompt, o.Whole, text, from)
	case AskEdit:
		return o.editAnswer(text, from)
	case AskCode:
		a, ok = o.Answer(action, from)
		a.CodeWord = text
	}
	return a, ok
}

// DialogFault returns a sentence about the fault of the text in a dialog of this kind, or "".
func DialogFault(kind, text string) string {
	switch {
	case text == "":
		return "Write it as a text."
	case kind == AskEdit && !isObject(text):
		return "This is no JSON object."
	}
	return ""
}

// Editable reports whether a person can change the input in a dialog and allow the call with the change.
// It returns false if the input is too long or contains invisible characters, because the dialog must
// show every character of the input.
func (o Offer) Editable() bool {
	_, once := o.Request.OptionOfKind(schemas.AllowOnce)
	text := o.Input()
	return once && o.Request.Kind == schemas.KindToolCall && o.Whole && o.Run == nil && o.VotesNeeded < 2 && o.Waiting < 2 &&
		!o.HasCondition(schemas.ConditionCodeWord) && text != "" && UTF16(text) <= o.MaxInput &&
		strings.Join(Lines(text), "") == strings.ReplaceAll(text, "\n", "⏎")
}

// Input returns the input of a call as indented JSON, or "" if the input is no JSON object.
func (o Offer) Input() string {
	var b bytes.Buffer
	raw := bytes.TrimSpace(o.Request.ActionDetails)
	if len(raw) == 0 || raw[0] != '{' || json.Indent(&b, raw, "", "  ") != nil {
		return ""
	}
	return b.String()
}

// editAnswer returns the answer that allows the call once with this input. ok is false if the input is no
// JSON object, or if the call cannot be allowed with another input.
func (o Offer) editAnswer(input string, from schemas.From) (a schemas.Answer, ok bool) {
	if !o.Editable() || !isObject(input) {
		return a, false
	}
	a, ok = Utterance{Word: Yes}.Answer(o.Prompt, from)
	if input = strings.TrimSpace(input); input != o.Input() {
		a.UpdatedInput = json.RawMessage(input)
	}
	return a, ok
}

func isObject(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "{") && json.Valid([]byte(text))
}
