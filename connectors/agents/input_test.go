package agents_test

import (
	"encoding/json"
	"testing"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOnlyTheHostSaysWhereACallRuns: a "cwd" in the tool's own input never replaces the "cwd" from the
// host.
func TestOnlyTheHostSaysWhereACallRuns(t *testing.T) {
	for _, c := range []struct{ input, cwd, shown string }{
		{`{"n":12345678901234567890, "s":"é"}`, "", `{"n":12345678901234567890, "s":"é"}`},
		{`{"command":"ls"}`, "/w", `{"command":"ls","cwd":"/w"}`},
		{`{"cwd":"/etc"}`, "", `{"cwd, in the input":"/etc"}`},
		{`{"cwd":"/etc"}`, "/w", `{"cwd, in the input":"/etc","cwd":"/w"}`},
	} {
		shown, err := agents.WithCwd(json.RawMessage(c.input), c.cwd)
		require.NoError(t, err)
		assert.Equal(t, c.shown, string(shown))
		back, err := agents.WithoutCwd(shown, json.RawMessage(c.input), c.cwd)
		require.NoError(t, err)
		assert.Equal(t, c.input, string(back))
	}
	for _, c := range []struct{ input, edited, cwd string }{
		{`{}`, `{"cwd":"/elsewhere"}`, "/w"},
		{`{}`, `{"cwd":"/elsewhere"}`, ""},
		{`{}`, `{"cwd":7}`, "/w"},
		{`{}`, `[]`, ""},
	} {
		_, err := agents.WithoutCwd(json.RawMessage(c.edited), json.RawMessage(c.input), c.cwd)
		assert.Error(t, err, c.edited)
	}
	for _, input := range []string{``, `null`, `[]`, `"x"`, `{`, `{"cwd":1,"cwd, in the input":2}`} {
		_, err := agents.WithCwd(json.RawMessage(input), "/w")
		assert.Error(t, err, input)
	}
}
