package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
	"github.com/tailscale/hujson"
)

// Question is one that an agent asks its user. It is no permission: it is never
// allowed or denied, and what is not answered stays with the host's own picker.
type Question struct {
	Text    string           `json:"question"`
	Header  string           `json:"header"`
	Choices []QuestionChoice `json:"options"`
	Several bool             `json:"multiSelect"`
}

// QuestionChoice is one of the answers that the agent offers.
type QuestionChoice struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// ownWords and noAnswer are the options beside the agent's own.
const (
	ownWords = "own_words"
	noAnswer = "no_answer"
)

// claudeQuestions are those of an AskUserQuestion; none where they cannot be put
// to a person as they are.
func claudeQuestions(input json.RawMessage) []Question {
	var in struct {
		Questions []Question `json:"questions"`
	}
	if json.Unmarshal(input, &in) != nil || len(in.Questions) == 0 {
		return nil
	}
	seen := map[string]bool{}
	for _, q := range in.Questions {
		if strings.TrimSpace(q.Text) == "" || seen[q.Text] || len(q.Choices) > 12 {
			return nil
		}
		seen[q.Text] = true // answers are told by it
		for _, c := range q.Choices {
			if c.Label == "" || utf8.RuneCountInString(c.Label) > 256 {
				return nil
			}
		}
	}
	return in.Questions
}

// request is what nod is asked.
func (q *Question) request(host Host, call Call, o Options) (schemas.Request, error) {
	r, err := newRequest(host, call, o)
	if err != nil {
		return r, err
	}
	details := map[string]any{"question": q.Text}
	var about []map[string]string
	for _, c := range q.Choices {
		about = append(about, map[string]string{"answer": c.Label, "meaning": c.Description})
	}
	if len(about) > 0 {
		details["answers"] = about
	}
	if q.Several {
		details["several"] = true
	}
	if r.ActionDetails, err = schemas.Encode(details); err != nil {
		return r, err
	}
	r.Kind, r.ActionType, r.Title = schemas.KindQuestion, schemas.ActionOther, "Question"
	if q.Header != "" {
		r.Title = "Question: " + cut(q.Header, 100)
	}
	r.PendingID, r.ToolCallID, r.Rejoin = agents.NewID(), "", false // one call may ask several
	r.Options = nil
	for i, c := range q.Choices {
		r.Options = append(r.Options, schemas.Option{OptionID: fmt.Sprintf("answer_%d", i+1), Name: c.Label, Kind: schemas.AllowOnce})
	}
	name := "Something else"
	if q.Several {
		name = "Several of them, or something else"
	}
	r.Options = append(r.Options,
		schemas.Option{OptionID: ownWords, Name: name, Kind: schemas.AllowOnce, Text: true},
		schemas.Option{OptionID: noAnswer, Name: "Leave it to the terminal", Kind: schemas.RejectOnce})
	return r, nil
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// answer is what a decision says to the question; ok is false where it says
// nothing.
func (q *Question) answer(r schemas.Request, d schemas.Decision) (text string, ok bool) {
	option, offered := r.Option(d.OptionID)
	if !agents.Allows(r, d) || !offered || d.By.Kind != schemas.ByHuman {
		return "", false
	}
	if option.Text {
		return d.Message, strings.TrimSpace(d.Message) != ""
	}
	return option.Name, true
}

// question puts the call's questions to a person, one after another. Where one
// stays without an answer the host's picker has them all.
func (h *run) question(ctx context.Context, nod Nod) int {
	answers := map[string]string{}
	for _, q := range h.call.Questions {
		r, err := q.request(h.host, h.call, h.opts)
		if err != nil {
			h.note(err)
			return h.reply(Verdict{Effect: Leave})
		}
		d, err := guard(ctx, "asking nod", func(ctx context.Context) (schemas.Decision, error) { return nod.Ask(ctx, r) })
		if err != nil {
			h.note(err)
			exit := h.reply(Verdict{Effect: Leave})
			if agents.MayBeOpen(err) {
				h.leave(ctx, nod.Withdraw, r, err.Error())
			}
			return exit
		}
		text, ok := q.answer(r, d)
		if !ok {
			return h.reply(Verdict{Effect: Leave})
		}
		answers[q.Text] = text
	}
	input, err := withAnswers(h.call.Input, answers)
	if err != nil {
		h.note(err)
		return h.reply(Verdict{Effect: Leave})
	}
	return h.reply(Verdict{Effect: Allow, Input: input, Edited: true})
}

// withAnswers is the tool's input, byte for byte, with the answers in it.
func withAnswers(input json.RawMessage, answers map[string]string) (json.RawMessage, error) {
	v, obj, err := agents.ParseObject(input)
	if err != nil {
		return nil, err
	}
	if agents.Member(obj, "answers") >= 0 {
		return nil, errors.New("the questions came with answers")
	}
	encoded, err := schemas.Encode(answers)
	if err != nil {
		return nil, err
	}
	value, err := hujson.Parse(encoded)
	if err != nil {
		return nil, err
	}
	obj.Members = append(obj.Members, hujson.ObjectMember{Name: hujson.Value{Value: hujson.String("answers")}, Value: value})
	return v.Pack(), nil
}
