package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/nodbus/nod/schemas"
)

// Question is a question of an agent to its user, in Claude Code's format. Only a person can answer it,
// and no rule decides it.
type Question struct {
	Text    string           `json:"question"`
	Header  string           `json:"header"`
	Choices []QuestionChoice `json:"options"`
	Several bool             `json:"multiSelect"`
}

// QuestionChoice is one answer that the agent offers.
type QuestionChoice struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// nod adds two options to the agent's choices: with ownWords, a person writes an answer, and with
// noAnswer, a person gives no answer.
const (
	ownWords = "own_words"
	noAnswer = "no_answer"
)

// Questions returns the questions in the input of Claude Code's tool AskUserQuestion. It returns nil
// if the input has no questions, or if nod cannot show every question unchanged.
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
		seen[q.Text] = true // the text must be unique, because it is the key of the answer
		for _, c := range q.Choices {
			if c.Label == "" || utf8.RuneCountInString(c.Label) > 256 {
				return nil
			}
		}
	}
	return in.Questions
}

// Request returns a request that asks people the question q. It has a new id, and the session, agent
// and host of r, which is the request for the whole tool call. leave is the label of the option that
// gives no answer. The error means that q cannot be encoded as JSON.
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
	r.PendingID, r.ToolCallID, r.Rejoin = NewID(), "", false // the id is new, because a call may contain several questions
	r.Options = nil
	for i, c := range q.Choices {
		r.Options = append(r.Options, schemas.Option{OptionID: fmt.Sprintf("answer_%d", i+1), Name: c.Label, Kind: schemas.AllowOnce})
	}
	name := "Something else"
	if q.Several {
		name = "Several of them by number, such as 1 3, or something else"
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

// Answer returns the text of the answer to q. r is the request that q.Request made, and d is the
// decision about r. ok is false if d does not contain a person's answer.
func (q *Question) Answer(r schemas.Request, d schemas.Decision) (text string, ok bool) {
	option, offered := r.Option(d.OptionID)
	if !Allows(r, d) || !offered || d.By.Kind != schemas.ByHuman {
		return "", false
	}
	if option.Text {
		return q.withLabels(d.Message), strings.TrimSpace(d.Message) != ""
	}
	return option.Name, true
}

// withLabels returns the labels of the choices whose numbers are in text, with commas between them as
// in Claude Code. If the question takes only one answer, or text is no list of such numbers, it returns
// text unchanged.
func (q *Question) withLabels(text string) string {
	if !q.Several {
		return text
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	var labels []string
	for _, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > len(q.Choices) {
			return text
		}
		if label := q.Choices[n-1].Label; !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	return strings.Join(labels, ", ")
}

// WithAnswers adds answers to the input of AskUserQuestion, and keeps the other bytes of the input. The
// key of an answer is the text of its question. WithAnswers returns an error if the input has a field
// "answers" already.
func WithAnswers(input json.RawMessage, answers map[string]string) (json.RawMessage, error) {
	v, obj, err := ParseObject(input)
	if err != nil {
		return nil, err
	}
	if Member(obj, "answers") >= 0 {
		return nil, errors.New("the input has answers already")
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
