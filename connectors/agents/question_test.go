package agents_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// If a question takes several answers, a person answers with numbers of choices or with words. The
// agent gets the labels of the choices instead of the numbers.
func TestNumbersBecomeTheLabelsOfSeveralAnswers(t *testing.T) {
	choices := []agents.QuestionChoice{{Label: "Postgres"}, {Label: "SQLite"}, {Label: "Redis, Valkey"}}
	for _, c := range []struct {
		several    bool
		said, want string
	}{
		{true, "1 3", "Postgres, Redis, Valkey"},
		{true, "3,1", "Redis, Valkey, Postgres"},
		{true, " 2 ", "SQLite"},
		{true, "1 1 2", "Postgres, SQLite"},
		{true, "1 4", "1 4"},
		{true, "0 1", "0 1"},
		{true, "1 and 3", "1 and 3"},
		{true, "none of them", "none of them"},
		{false, "1 3", "1 3"},
		{false, "2", "2"},
	} {
		q := agents.Question{Text: "Which?", Choices: choices, Several: c.several}
		r, err := q.Request(schemas.Request{SessionID: "s1"}, "Leave it")
		require.NoError(t, err)
		words := r.Options[len(choices)]
		require.True(t, words.Text)
		d := schemas.Decision{SessionID: "s1", PendingID: r.PendingID, Outcome: schemas.Allowed, OptionID: words.OptionID, OptionKind: words.Kind, Message: c.said, By: schemas.By{Kind: schemas.ByHuman}}
		got, ok := q.Answer(r, d)
		assert.True(t, ok, c.said)
		assert.Equal(t, c.want, got, c.said)
	}
}
