package slack

import (
	"context"
	"encoding/json"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// The kinds of dialogs with a field that a person fills in. The kind is the dialog's callback_id.
const (
	askWhy  = "why"
	askSay  = "say"
	askEdit = "edit"
	askCode = "code"
)

const (
	// wordsField is the id of the text field of a dialog, and of the field's block.
	wordsField = "words"
	// maxWords is the largest text of a field, in characters.
	maxWords = 3000
	// maxDialog is the largest number of blocks in the dialog More answers. Answers that do not
	// fit are left out.
	maxDialog = 80
)

// origin identifies the button that opened a dialog, and the message with that button. It is
// stored in the dialog's private_metadata.
type origin struct {
	Channel string `json:"c"`
	TS      string `json:"t"`
	Repeat  bool   `json:"r,omitempty"` // the message may be in the chat twice
	Button  string `json:"b"`
}

func (o origin) String() string {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // a struct of texts can always be encoded
	}
	return string(data)
}

func readOrigin(metadata string) (o origin, b people.ButtonData, ok bool) {
	if json.Unmarshal([]byte(metadata), &o) != nil {
		return o, b, false
	}
	b, ok = people.ReadButton(o.Button, maxValue)
	return o, b, ok
}

// dialog returns a dialog without a field.
func dialog(title string, o origin, blocks []block) *view {
	return &view{Type: "modal", CallbackID: "show", Title: plainText(title), Close: plainText("Close"), Blocks: blocks, Metadata: o.String()}
}

// question returns a dialog with a text field, and a button that sends the text.
func question(kind, title, submit, label string, o origin, before []block, field element) *view {
	v := dialog(title, o, before)
	v.CallbackID, v.Submit = kind, plainText(submit)
	field.Type, field.ActionID = "plain_text_input", wordsField
	v.Blocks = append(v.Blocks, block{Type: "input", BlockID: wordsField, Label: plainText(label), Element: &field})
	return v
}

// step returns the dialog for an action that needs one. It returns nil if p does not offer the action.
func step(p *schemas.Prompt, action string, o origin) *view {
	about, offer := said("Request "+p.PendingID), offer(p)
	switch action {
	case people.ActMore:
		if blocks := moreAnswers(offer); len(blocks) > 0 {
			return dialog("More answers", o, blocks)
		}
	case people.ActWhy:
		return question(askWhy, "Deny", "Deny", "Why? The agent reads it.", o, about, element{Multiline: true, MaxLength: maxWords})
	case people.ActSay:
		if _, ok := offer.TextAnswer("x", schemas.From{}); ok {
			return question(askSay, "Answer", "Send", "Your answer", o, about, element{Multiline: true, MaxLength: maxWords})
		}
	case people.ActEdit:
		if offer.Editable() {
			return question(askEdit, "Edit the input", "Allow once", "The input in JSON. The agent runs it as you leave it here.", o, about,
				element{Multiline: true, MaxLength: maxWords, Initial: offer.Input()})
		}
	default: // the action is an answer that needs the code word
		c := &content{}
		c.line(bold("Allows: "), code(offer.Describe(action)))
		return question(askCode, "Code word", "Allow", "The code word", o, append(about, c.blocks...), element{MaxLength: 200})
	}
	return nil
}

// moreAnswers returns the blocks of the dialog with the answers for which one press in the chat
// is not enough. For each answer there is its complete description, and below it its buttons.
func moreAnswers(offer people.Offer) (all []block) {
	for _, m := range offer.More() {
		c := &content{}
		if m.Text != "" {
			c.line(code(m.Text))
		}
		if m.Note != "" {
			c.line(plain(m.Note))
		}
		if len(all)+len(c.blocks) < maxDialog {
			all = append(append(all, c.blocks...), row(offer.Prompt, m.ID, m.Buttons...)...)
		}
	}
	return all
}

// show opens a dialog. If the person pressed the button in a dialog, the new dialog replaces that
// one.
func (h *handler) show(ctx context.Context, v *view) error {
	ctx, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	if h.view != "" {
		_, err := h.api.call(ctx, "views.update", map[string]any{"view_id": h.view, "view": v})
		return err
	}
	_, err := h.api.call(ctx, "views.open", map[string]any{"trigger_id": h.trigger, "view": v})
	return err
}
