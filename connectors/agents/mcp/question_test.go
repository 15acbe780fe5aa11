package mcp_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/mcp"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

const which = `{"n":1.0,"questions":[{"question":"Which?","header":"Database","options":[{"label":"Postgres","description":"big"},{"label":"SQLite"}]}]}`

// A person answers the agent's question, and the tool's input for the agent contains the answer.
func TestAQuestionIsAnswered(t *testing.T) {
	t.Parallel()
	says := make(chan nodtest.Answer, 1)
	n := watch(nodtest.Start(t, func(schemas.Prompt) nodtest.Answer { return <-says }))
	t.Cleanup(func() { close(says) })
	everyWay(t, func(t *testing.T, w way) {
		c := reach(t, serve(t, n, mcp.Options{}), w, nil)
		for _, row := range []struct {
			says nodtest.Answer
			want string
		}{
			{nodtest.Allow(), `{"behavior":"allow","updatedInput":` + which[:len(which)-1] + `,"answers":{"Which?":"Postgres"}}}`},
			{nodtest.Deny("ask me tomorrow"), `{"behavior":"deny","message":"The question was left unanswered: ask me tomorrow"}`},
			{nodtest.Deny(""), `{"behavior":"deny","message":"No person answered the question: go on without an answer, or ask it in your answer's text."}`},
		} {
			says <- row.says
			got, isError := calls(t, c, "approve", use("AskUserQuestion", which, "toolu_1"))
			assert.False(t, isError)
			assert.Equal(t, row.want, got)
			r := <-n.asked
			assert.Equal(t, schemas.KindQuestion, r.Kind)
			assert.Equal(t, "Question: Database", r.Title)
			assert.NotEqual(t, "toolu_1", r.PendingID, "one call may ask several")
			assert.JSONEq(t, `{"question":"Which?","answers":[{"answer":"Postgres","meaning":"big"},{"answer":"SQLite","meaning":""}]}`, string(r.ActionDetails))
		}
	})
}

// The tool approve denies a call with several questions unless all of them have an answer.
func TestApproveDeniesQuestionsWithoutAllAnswers(t *testing.T) {
	t.Parallel()
	const two = `{"questions":[{"question":"Which?","options":[{"label":"x"}]},{"question":"How?","multiSelect":true}]}`
	said := schemas.Decision{Outcome: schemas.Allowed, OptionID: "own_words", OptionKind: schemas.AllowOnce, Message: "slowly", By: schemas.By{Kind: schemas.ByHuman}}
	with := func(change func(*schemas.Decision)) schemas.Decision {
		d := said
		change(&d)
		return d
	}
	for name, row := range map[string]struct {
		input  string
		second schemas.Decision
		err    error
		want   string
		asked  int
	}{
		"both":                  {two, said, nil, `{"behavior":"allow","updatedInput":` + two[:len(two)-1] + `,"answers":{"How?":"slowly","Which?":"slowly"}}}`, 2},
		"left":                  {two, with(func(d *schemas.Decision) { d.Outcome = schemas.Denied }), nil, "left unanswered: slowly", 2},
		"timed out":             {two, with(func(d *schemas.Decision) { d.Outcome, d.By = schemas.TimedOut, schemas.By{} }), nil, "No person answered", 2},
		"by a rule":             {two, with(func(d *schemas.Decision) { d.By.Kind = schemas.ByPolicy }), nil, "No person answered", 2},
		"no option":             {two, with(func(d *schemas.Decision) { d.OptionID = "" }), nil, "left unanswered", 2},
		"another request's":     {two, with(func(d *schemas.Decision) { d.PendingID = "other" }), nil, "left unanswered", 2},
		"nod away":              {two, said, errors.New("nod is not running"), "The question was not answered: nod is not running", 2},
		"no connector shows it": {two, said, schemas.Errorf(schemas.CodeUndeliverable, "no connector shows questions"), "No approver could be asked: no connector shows questions", 2},
		"no questions":          {`{}`, said, nil, "nod cannot show here", 0},
		"two of one text":       {`{"questions":[{"question":"a"},{"question":"a"}]}`, said, nil, "nod cannot show here", 0},
		"answered by the agent": {`{"questions":[{"question":"a"}],"answers":{}}`, said, nil, "nod refused the question", 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			n := fake(func(_ context.Context, r schemas.Request) (schemas.Decision, error) {
				d, err := said, error(nil)
				if asked++; asked == 2 {
					d, err = row.second, row.err
				}
				if d.PendingID == "" {
					d.PendingID = r.PendingID
				}
				d.SessionID = r.SessionID
				return d, err
			})
			c := reach(t, serve(t, n, mcp.Options{}), ways()[0], nil)
			got, isError := calls(t, c, "approve", use("AskUserQuestion", row.input, "t1"))
			require.False(t, isError)
			assert.Contains(t, got, row.want)
			assert.Equal(t, name == "both", got[:len(`{"behavior":"allow"`)] == `{"behavior":"allow"`)
			assert.Equal(t, row.asked, asked)
		})
	}
}
