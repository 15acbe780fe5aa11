package agents_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

func turnOver(t *testing.T, turn agents.Turn) schemas.Request {
	r, err := agents.TurnRequest(schemas.Request{SessionID: "s", PendingID: "old", ToolCallID: "call", Rejoin: true}, turn)
	require.NoError(t, err)
	return r
}

func TestTurnRequest(t *testing.T) {
	r := turnOver(t, agents.Turn{Message: "  All **done**.\n"})
	assert.JSONEq(t, `{"message":"All **done**."}`, string(r.ActionDetails))
	assert.NotEqual(t, "old", r.PendingID)
	assert.True(t, r.HostAsks)
	failed := turnOver(t, agents.Turn{Failure: "rate limit"})
	assert.Contains(t, failed.Title, "failed")
	assert.JSONEq(t, `{"failure":"rate limit"}`, string(failed.ActionDetails))
	assert.JSONEq(t, `{}`, string(turnOver(t, agents.Turn{}).ActionDetails))

	long := turnOver(t, agents.Turn{Message: strings.Repeat("é\xff", 100000), Failure: strings.Repeat("<", 100000)})
	assert.Less(t, len(long.ActionDetails), schemas.MaxRequestBytes)
	assert.True(t, utf8.Valid(long.ActionDetails))
	assert.Contains(t, string(long.ActionDetails), "cut by nod")
}

// Only a person's words become the next prompt.
func TestReply(t *testing.T) {
	r := turnOver(t, agents.Turn{Message: "done"})
	said := func(change func(*schemas.Decision)) schemas.Decision {
		d := schemas.Decision{
			SessionID: r.SessionID, PendingID: r.PendingID, Outcome: schemas.Allowed, OptionID: "reply",
			OptionKind: schemas.AllowOnce, Message: " go on\n", By: schemas.By{Kind: schemas.ByHuman},
		}
		change(&d)
		return d
	}
	prompt, ok := agents.Reply(r, said(func(*schemas.Decision) {}))
	assert.True(t, ok)
	assert.Equal(t, "go on", prompt)
	for name, change := range map[string]func(*schemas.Decision){
		"no words":          func(d *schemas.Decision) { d.Message = " \n" },
		"the other option":  func(d *schemas.Decision) { d.OptionID = "no_answer" },
		"no option":         func(d *schemas.Decision) { d.OptionID = "" },
		"a denial":          func(d *schemas.Decision) { d.Outcome = schemas.Denied },
		"a rule":            func(d *schemas.Decision) { d.By.Kind = schemas.ByPolicy },
		"another request":   func(d *schemas.Decision) { d.PendingID = "x" },
		"a refusing option": func(d *schemas.Decision) { d.OptionKind = schemas.RejectOnce },
	} {
		prompt, ok := agents.Reply(r, said(change))
		assert.False(t, ok, name)
		assert.Empty(t, prompt, name)
	}
}
