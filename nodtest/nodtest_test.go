package nodtest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

func TestStart(t *testing.T) {
	seen := make(chan schemas.Prompt, 10)
	client := nodtest.Start(t, func(p schemas.Prompt) nodtest.Answer {
		seen <- p
		switch p.Request.Reason {
		case "yes":
			return nodtest.Allow()
		case "no":
			return nodtest.Deny("use make clean")
		case "edit":
			return nodtest.Answer{Kind: schemas.AllowOnce, Input: []byte(`{"command":"ls"}`)}
		}
		return nodtest.Answer{}
	})
	ask := func(reason string) (schemas.Decision, error) {
		r := nod.Command("rm -rf build")
		r.Reason = reason
		return client.Ask(t.Context(), r)
	}
	d, err := ask("yes")
	require.NoError(t, err)
	require.Equal(t, schemas.Allowed, d.Outcome)
	require.Equal(t, "Bash", (<-seen).Request.ToolName)

	d, err = ask("no")
	require.ErrorIs(t, err, nod.ErrDenied)
	require.ErrorContains(t, err, "use make clean")
	require.Equal(t, schemas.Denied, d.Outcome)

	d, err = ask("edit")
	require.ErrorIs(t, err, nod.ErrEdited, "another input was allowed than the one in the request")
	require.ErrorContains(t, err, `{"command":"ls"}`)
	require.Equal(t, schemas.Allowed, d.Outcome)
	require.JSONEq(t, `{"command":"ls"}`, string(d.UpdatedInput))

	d, err = client.Ask(t.Context(), schemas.Request{
		Kind: schemas.KindToolCall, Title: "Read", ToolName: "Read", ActionType: schemas.ActionFileRead, ActionDetails: []byte(`{"file_path":"/tmp/x"}`),
	})
	require.NoError(t, err, "a rule allows it")
	require.Equal(t, schemas.ByPolicy, d.By.Kind)

	silent := nod.Permission("to fetch", "@network")
	silent.TimeoutSeconds = 1
	_, err = client.Ask(t.Context(), silent)
	require.ErrorIs(t, err, nod.ErrTimedOut)
	require.False(t, errors.Is(err, nod.ErrDenied))
}
