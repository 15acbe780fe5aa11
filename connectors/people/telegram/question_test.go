package telegram

import (
	"testing"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func aQuestion() *schemas.Prompt {
	r := schemas.Request{
		Type: schemas.TypeRequest, SessionID: "s", PendingID: "q", Kind: schemas.KindQuestion, Title: "Question", ToolName: "AskUserQuestion",
		ActionType: schemas.ActionOther, ActionDetails: []byte(`{"question":"Which?"}`), CreatedAt: time.Unix(1, 0),
		Options: []schemas.Option{
			{OptionID: "answer_1", Name: "Postgres", Kind: schemas.AllowOnce},
			{OptionID: "answer_2", Name: "SQLite", Kind: schemas.AllowOnce},
			{OptionID: "own_words", Name: "Something else", Kind: schemas.AllowOnce, Text: true},
			{OptionID: "no_answer", Name: "Leave it", Kind: schemas.RejectOnce},
		},
	}
	digest, _ := schemas.Digest(&r)
	return &schemas.Prompt{SessionID: "s", PendingID: "q", Request: r, Digest: digest, Deadline: time.Unix(1000, 0)}
}

// An agent's question has a button for each answer, and no button Allow.
func TestAQuestionHasItsOwnButtons(t *testing.T) {
	t.Parallel()
	p := aQuestion()
	var texts []string
	for _, row := range buttons(p).Rows {
		require.Len(t, row, 1)
		texts = append(texts, row[0].Text)
	}
	assert.Equal(t, []string{"Postgres", "SQLite", "Something else (in your own words)", "Leave it (gives no answer)"}, texts)

	a, ok := answerFor(p, "1", schemas.From{UserID: "7"})
	require.True(t, ok)
	assert.Equal(t, "answer_2", a.OptionID)
	for _, action := range []string{actAllow, "2", "9", actSay, ""} {
		_, ok := answerFor(p, action, schemas.From{UserID: "7"})
		assert.False(t, ok, "%q", action)
	}
	_, ok = people.Utterance{Word: people.Yes}.Answer(p, schemas.From{UserID: "7"})
	assert.False(t, ok, "a yes names no answer")

	a, ok = textAnswer(p, "the one we have", schemas.From{UserID: "7"})
	require.True(t, ok)
	assert.Equal(t, "own_words", a.OptionID)
	assert.Equal(t, "the one we have", a.Message)
	p.Request.Options = p.Request.Options[:2]
	_, ok = textAnswer(p, "x", schemas.From{UserID: "7"})
	assert.False(t, ok, "it takes no words")
}

// Each answer to a plan has a button. A press sends the answer; for an answer with a text, the
// person sends the text as a reply.
func TestAPlanHasItsOwnButtons(t *testing.T) {
	t.Parallel()
	p := aQuestion()
	p.Request.ToolName, p.Request.ActionDetails = "ExitPlanMode", []byte(`{"plan":"# Mend"}`)
	p.Request.Options = []schemas.Option{
		{OptionID: "plan_accept_edits", Name: "Go on, and accept edits", Kind: schemas.AllowOnce},
		{OptionID: "plan_keep", Name: "Keep planning", Kind: schemas.RejectOnce},
		{OptionID: "plan_change", Name: "Keep planning, and change the plan", Kind: schemas.RejectOnce, Text: true},
	}
	var texts []string
	for _, row := range buttons(p).Rows {
		texts = append(texts, row[0].Text)
	}
	assert.Equal(t, []string{"Go on, and accept edits", "Keep planning", "Keep planning, and change the plan (in your own words)"}, texts)
	for action, option := range map[string]string{"0": "plan_accept_edits", "1": "plan_keep"} {
		a, ok := answerFor(p, action, schemas.From{UserID: "7"})
		require.True(t, ok)
		assert.Equal(t, option, a.OptionID)
	}
	a, ok := textAnswer(p, "use go build", schemas.From{UserID: "7"})
	require.True(t, ok)
	assert.Equal(t, "plan_change", a.OptionID)
}
