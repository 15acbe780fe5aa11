package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// Some agents, such as those of ACP and of the MCP prompt tool, do not tell the directory of their commands.
// A rule from a lasting answer for such a command covers exactly the words that the person saw, in any
// directory. The text of the rule says "or elsewhere".
func TestLastingAnswersWithoutADirectory(t *testing.T) {
	pol, err := policy.New(schemas.Permissions{})
	require.NoError(t, err)
	shell := func(command, cwd, project string) policy.Call {
		return policy.Call{ToolName: "Bash", Input: []byte(`{"command":"` + command + `"}`), Cwd: cwd, Project: project}
	}
	for _, c := range []struct {
		call policy.Call
		want []string
	}{
		{shell("touch y1", "", "/p"), []string{"Bash(touch y1) in /p or elsewhere"}},
		{shell("make release", "", "/p"), []string{"Bash(make release) in /p or elsewhere"}},
		{shell("make release && touch y1", "", "/p"), []string{"Bash(make release) in /p or elsewhere and Bash(touch y1) in /p or elsewhere"}},
		{shell("cd src && make release", "", "/p"), nil},
		{shell("cd /q && make release", "", "/p"), nil},
		{shell("rm -rf build", "", "/p"), nil},
		{shell("sh -c 'make release'", "", "/p"), nil},
		{shell("touch ~/.ssh/id_rsa", "", "/p"), nil},
		{shell("make release", "", ""), nil},
		{policy.Call{ToolName: "Write", Input: []byte(`{"file_path":"/p/x.go","content":"a"}`), Project: "/p"}, []string{"Write(/p/x.go) in /p", "Write(/p/) in /p", "Edit(/p/) in /p and Write(/p/) in /p"}},
		{policy.Call{ToolName: "Write", Input: []byte(`{"file_path":"x.go","content":"a"}`), Project: "/p"}, nil},
	} {
		var got []string
		for _, r := range pol.Remember(c.call) {
			got = append(got, r.String())
		}
		assert.Equal(t, c.want, got, "%s", c.call.Input)
	}

	with := pol.With(schemas.RememberedRule{Tool: "Bash", Argv: []string{"make", "release"}, Project: "/p", Elsewhere: true})
	for _, c := range []struct {
		call policy.Call
		want policy.Effect
	}{
		{shell("make release", "", "/p"), policy.Allow},
		{shell("make release", "/p", "/p"), policy.Allow},
		{shell("make release", "/p/sub", "/p"), policy.Allow},
		{shell("make release", "/q", "/p"), policy.Ask},
		{shell("make release", "", "/q"), policy.Ask},
		{shell("make release", "", ""), policy.Ask},
		{shell("make release all", "", "/p"), policy.Ask},
		{shell("make", "", "/p"), policy.Ask},
		{shell("cd /q && make release", "", "/p"), policy.Ask},
		{shell("make release; touch y1", "", "/p"), policy.Ask},
		{shell("make release > log", "", "/p"), policy.Ask},
		{shell("make release < input", "", "/p"), policy.Ask},
	} {
		assert.Equal(t, c.want, with.Check(c.call).Effect, "%s at %q in %q", c.call.Input, c.call.Cwd, c.call.Project)
	}
	within := pol.With(schemas.RememberedRule{Tool: "Bash", Argv: []string{"make", "release"}, Project: "/p"})
	assert.Equal(t, policy.Ask, within.Check(shell("make release", "", "/p")).Effect, "a rule for the project alone does not cover an unknown directory")
}
