package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/nodbus/nod/schemas"
)

// Question is one that an agent asks its user, as Claude Code writes it. It is no
// permission: it is never allowed or denied.
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

// Questions are those of an AskUserQuestion's input; none where they cannot be put
// to a person as they are.
func Questions(input json.RawMessage) []Question {
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

// Request is what nod is asked about q, where r is what it would be asked about the
// call. leave names the option that answers nothing. It fails on what cannot be
// encoded.
func (q *Question) Request(r schemas.Request, leave string) (schemas.Request, error) {
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
	var err error
	if r.ActionDetails, err = schemas.Encode(details); err != nil {
		return r, err
	}
	r.Kind, r.ActionType, r.Title = schemas.KindQuestion, schemas.ActionOther, "Question"
	if q.Header != "" {
		r.Title = "Question: " + cut(q.Header, 100)
	}
	r.PendingID, r.ToolCallID, r.Rejoin = NewID(), "", false // one call may ask several
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
		schemas.Option{OptionID: noAnswer, Name: leave, Kind: schemas.RejectOnce})
	return r, nil
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// Answer is what a decision about r, which Request made, says to the question; ok
// is false where it says nothing.
func (q *Question) Answer(r schemas.Request, d schemas.Decision) (text string, ok bool) {
	option, offered := r.Option(d.OptionID)
	if !Allows(r, d) || !offered || d.By.Kind != schemas.ByHuman {
		return "", false
	}
	if option.Text {
		return d.Message, strings.TrimSpace(d.Message) != ""
	}
	return option.Name, true
}

// WithAnswers is an AskUserQuestion's input, byte for byte, with the answers in it,
// by the questions' texts. It fails where the input has answers already.
func WithAnswers(input json.RawMessage, answers map[string]string) (json.RawMessage, error) {
	v, obj, err := ParseObject(input)
	if err != nil {
		return nil, err
	}
	if Member(obj, "answers") >= 0 {
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
