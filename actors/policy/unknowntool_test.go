package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
)

func mcpCall(tool, input string) policy.Call {
	return policy.Call{ToolName: tool, Input: json.RawMessage(input), Cwd: "/srv/app", Project: "/srv/app", Home: "/home/ann"}
}

// One answer covers the later calls of an MCP server's tool, if their inputs stay in the project.
func TestAnAnswerForAnMCPToolCoversTheTool(t *testing.T) {
	p := preset(t, policy.PresetContained)
	reaches := p.Remember(mcpCall("mcp__draw__batch_get", `{"filePath":"designs/a.pen"}`))
	require.Len(t, reaches, 1)
	assert.Equal(t, "mcp__draw__batch_get in /srv/app", reaches[0].String())
	with := p.With(reaches[0].Rules...)
	for _, input := range []string{`{}`, `{"filePath":"designs/b.pen","ids":["a1","b2"],"depth":3}`, `{"filePath":"/srv/app/designs/b.pen"}`, `{"at":"https://example.com/docs","note":"Two boxes. Then a line!"}`} {
		assert.Equal(t, policy.Allow, with.Check(mcpCall("mcp__draw__batch_get", input)).Effect, input)
	}
	for _, input := range []string{
		`{"filePath":"/home/ann/.ssh/id_rsa"}`, `{"filePath":"~/.aws/credentials"}`, `{"filePath":"../other/a.pen"}`, `{"filePath":"/etc/passwd"}`, `{"filePath":".env"}`,
		`{"a":{"b":[{"c":"deploy/server.key"}]}}`, `{".env":1}`, `{"text":"see .env, please"}`, `{"text":"x=/home/ann/.netrc"}`, `{"path":".git/hooks/pre-commit"}`, `{"path":"sub/.claude/settings.json"}`,
		`{"path":"C:\\Users\\ann\\.ssh\\id_rsa"}`, `{"path":"\u002e\u0065nv"}`, `{"at":"http://localhost:8080/x"}`, `{"at":"localhost:8080"}`, `{"at":"169.254.169.254/latest"}`, `{"at":"http://169.254.169.254/latest"}`,
		`{"at":"https://ann:word@example.com"}`, `{"at":"file:///srv/app/a"}`, `{"at":"db.internal"}`, `[".env"]`, `{"a":`, `{} {"path":"x"`,
	} {
		assert.Equal(t, policy.Ask, with.Check(mcpCall("mcp__draw__batch_get", input)).Effect, input)
	}
	other := mcpCall("mcp__draw__batch_get", `{}`)
	other.Cwd, other.Project = "/srv/other", "/srv/other"
	assert.Equal(t, policy.Ask, with.Check(other).Effect, "another project")
	for _, tool := range []string{"mcp__draw__batch_set", "mcp__draw2__batch_get", "mcp__Draw__batch_get", "batch_get", "Bash"} {
		assert.NotEqual(t, policy.Allow, with.Check(mcpCall(tool, `{}`)).Effect, tool)
	}
}

// No lasting answer is offered for a tool that may run anything, and none for the call that names a secret.
func TestNoAnswerLastsForAToolThatNodCannotBound(t *testing.T) {
	p := preset(t, policy.PresetContained)
	for _, tool := range []string{"exec", "sql", "Task", "PowerShell", "browser_navigate", "_fetch_pr", "mcp__a", "mcp____b", "mcp__a__", "mcp__a__b\u202e", "mcp__a__run", "mcp__a__runCommand",
		"mcp__shell__list", "mcp__db__execute_sql", "mcp__play__browser_evaluate", "mcp__stripe__create_refund", "mcp__mail__send_message", "mcp__fs__delete_file", "mcp__fs__move_file", "mcp__vault__get_secret", "mcp__k8s__apply"} {
		assert.Empty(t, p.Remember(mcpCall(tool, `{"a":"b"}`)), tool)
		assert.Equal(t, policy.Ask, p.Check(mcpCall(tool, `{"a":"b"}`)).Effect, tool)
	}
	assert.Empty(t, p.Remember(mcpCall("mcp__fs__read_file", `{"path":".env"}`)))
	nowhere := mcpCall("mcp__fs__read_file", `{"path":"a"}`)
	nowhere.Cwd, nowhere.Project = "", ""
	assert.Empty(t, p.Remember(nowhere))
}
