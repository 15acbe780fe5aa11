package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

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
	about := said("Request " + p.PendingID)
	switch action {
	case actMore:
		if blocks := moreAnswers(p); len(blocks) > 0 {
			return dialog("More answers", o, blocks)
		}
	case actWhy:
		return question(askWhy, "Deny", "Deny", "Why? The agent reads it.", o, about, element{Multiline: true, MaxLength: maxWords})
	case actSay:
		if _, ok := textAnswer(p, "x", schemas.From{}); ok {
			return question(askSay, "Answer", "Send", "Your answer", o, about, element{Multiline: true, MaxLength: maxWords})
		}
	case actEdit:
		if mayEdit(p) {
			return question(askEdit, "Edit the input", "Allow once", "The input in JSON. The agent runs it as you leave it here.", o, about,
				element{Multiline: true, MaxLength: maxWords, Initial: inputText(p)})
		}
	default: // the action is an answer that needs the code word
		c := &content{}
		c.line(bold("Allows: "), code(describe(p, action)))
		return question(askCode, "Code word", "Allow", "The code word", o, append(about, c.blocks...), element{MaxLength: 200})
	}
	return nil
}

// describe returns a text about what an action allows.
func describe(p *schemas.Prompt, action string) string {
	for i, r := range offeredReaches(p) {
		for _, e := range people.Extents() {
			if e.Action(i) == action {
				return people.RuleText(i, &r) + ", " + e.String()
			}
		}
	}
	for _, i := range otherOptions(p) {
		if strconv.Itoa(i) == action {
			return people.OptionText(p, i)
		}
	}
	return "once"
}

// moreAnswers returns the blocks of the dialog with the answers for which one press in the chat
// is not enough. For each answer there is its complete description, and below it its buttons.
func moreAnswers(p *schemas.Prompt) (all []block) {
	add := func(name string, choices []choice, lines ...element) {
		c := &content{}
		for _, line := range lines {
			c.line(line)
		}
		if len(all)+len(c.blocks) < maxDialog {
			all = append(append(all, c.blocks...), row(p, name, choices...)...)
		}
	}
	for _, i := range otherOptions(p) {
		label := people.OptionLabel(p, i, maxLabel)
		if people.UTF16(label) > maxLabel {
			label = "Answer " + strconv.Itoa(i+1)
		}
		lines := []element{code(fmt.Sprintf("%d: %s", i+1, people.OptionText(p, i)))}
		if p.Request.Options[i].Kind.Remembered() {
			lines = append(lines, plain(people.AgentRemembers))
		}
		add(fmt.Sprintf("option%d-", i), []choice{{label, strconv.Itoa(i)}}, lines...)
	}
	for i, r := range offeredReaches(p) {
		var choices []choice
		for _, e := range people.Extents() {
			choices = append(choices, choice{fmt.Sprintf("✅ %d, %s", i+1, e), e.Action(i)})
		}
		add(fmt.Sprintf("rule%d-", i), choices, code(people.RuleText(i, &r)))
	}
	if mayEdit(p) {
		add("edit", []choice{{"Edit the input", actEdit}}, plain("Allow it once, with another input:"))
	}
	return all
}

// mayEdit reports whether a person can change the input of p on Slack and allow p with it. The
// field of the dialog must show every character of the input. If the input is too long or
// contains invisible characters, the person must edit it on another channel.
func mayEdit(p *schemas.Prompt) bool {
	_, once := p.Request.OptionOfKind(schemas.AllowOnce)
	text := inputText(p)
	return once && p.Request.Kind == schemas.KindToolCall && fitsWhole(p) && p.Run == nil && p.VotesNeeded < 2 && p.Waiting < 2 &&
		!p.HasCondition(schemas.ConditionCodeWord) && text != "" && people.UTF16(text) <= maxWords &&
		strings.Join(people.Lines(text), "") == strings.ReplaceAll(text, "\n", "⏎")
}

// inputText returns the input of a call as indented JSON, or "" if the input is no JSON object.
func inputText(p *schemas.Prompt) string {
	var b bytes.Buffer
	raw := bytes.TrimSpace(p.Request.ActionDetails)
	if len(raw) == 0 || raw[0] != '{' || json.Indent(&b, raw, "", "  ") != nil {
		return ""
	}
	return b.String()
}

// editAnswer returns the answer that allows p once with the input in text. ok is false if text is
// no JSON object, or if p cannot be allowed with another input.
func editAnswer(p *schemas.Prompt, input string, from schemas.From) (a schemas.Answer, ok bool) {
	if !mayEdit(p) || !isObject(input) {
		return a, false
	}
	a, ok = people.Utterance{Word: people.Yes}.Answer(p, from)
	if input = strings.TrimSpace(input); input != inputText(p) {
		a.UpdatedInput = json.RawMessage(input)
	}
	return a, ok
}

func isObject(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "{") && json.Valid([]byte(text))
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
