package slack

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// wordsField is the id of the text field of a dialog, and of the field's block.
	wordsField = "words"
	// maxWords is the largest text of a field with several lines, in characters. maxWord is the largest
	// text of a field with one line.
	maxWords = 3000
	maxWord  = 200
	// maxDialog is the largest number of blocks in the dialog More answers. Answers that do not
	// fit are left out.
	maxDialog = 80
)

// origin identifies the button that opened a dialog, and the message with that button. The dialog's
// private_metadata contains the origin.
type origin struct {
	Channel string `json:"c"`
	TS      string `json:"t"`
	Repeat  bool   `json:"r,omitempty"` // the message may be in the chat twice
	Button  string `json:"b"`
}

func (o origin) String() string {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // Marshal cannot fail for a struct of texts
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

// step returns the dialog for an action that needs a dialog. It returns nil if p does not offer the
// action.
func step(p *schemas.Prompt, action string, o origin) *view {
	if action == people.ActMore {
		if blocks := moreAnswers(offer(p)); len(blocks) > 0 {
			return dialog("More answers", o, blocks)
		}
		return nil
	}
	d, ok := offer(p).Dialog(action)
	if !ok {
		return nil
	}
	about := said("Request " + p.PendingID)
	if d.Allows != "" {
		c := &content{}
		c.line(bold("Allows: "), code(d.Allows))
		about = append(about, c.blocks...)
	}
	return question(d, o, about)
}

// question returns a dialog with a text field, and a button that sends the text.
func question(d people.Dialog, o origin, before []block) *view {
	v := dialog(d.Title, o, before)
	v.CallbackID, v.Submit = d.Kind, plainText(d.Submit)
	field := element{Type: "plain_text_input", ActionID: wordsField, MaxLength: maxWord, Initial: d.Initial}
	if d.Long {
		field.Multiline, field.MaxLength = true, maxWords
	}
	label := strings.TrimSpace(d.Label + " " + d.Hint)
	v.Blocks = append(v.Blocks, block{Type: "input", BlockID: wordsField, Label: plainText(label), Element: &field})
	return v
}

// moreAnswers returns the blocks of the dialog with the answers for which one press in the chat is not
// enough. Each answer has its complete description above its buttons.
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

// show opens a dialog. If the person pressed the button in a dialog, the new dialog replaces the old one.
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
