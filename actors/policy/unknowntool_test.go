package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
)

func mcpCall(tool, input string) policy.Call {
	return policy.Call{ToolName: tool, Input: json.RawMessage(input), Cwd: "/srv/app", Project: "/srv/app", Home: "/home/ann"}
}

// One lasting answer covers all later calls of the same MCP tool whose inputs name nothing outside the project.
func TestAnAnswerForAnMCPToolCoversTheTool(t *testing.T) {
	p := preset(t, policy.PresetContained)
	reaches := p.Remember(mcpCall("mcp__draw__batch_get", `{"filePath":"designs/a.pen"}`))
	require.Len(t, reaches, 1)
	assert.Equal(t, "mcp__draw__batch_get in /srv/app", reaches[0].String())
	with := p.With(reaches[0].Rules...)
	for _, input := range []string{`{}`, `{"filePath":"designs/b.pen","ids":["a1","b2"],"depth":3}`, `{"filePath":"/srv/app/designs/b.pen"}`, `{"note":"Two boxes. Then a line!","query":"remove the old cache","at":"src/a.go:12","part":"50%"}`} {
		assert.Equal(t, policy.Allow, with.Check(mcpCall("mcp__draw__batch_get", input)).Effect, input)
	}
	for _, input := range []string{
		`{"filePath":"/home/ann/.ssh/id_rsa"}`, `{"filePath":"~/.aws/credentials"}`, `{"filePath":"../other/a.pen"}`, `{"filePath":"/etc/passwd"}`, `{"filePath":".env"}`,
		`{"a":{"b":[{"c":"deploy/server.key"}]}}`, `{".env":1}`, `{"text":"see .env, please"}`, `{"text":"x=/home/ann/.netrc"}`, `{"path":".git/hooks/pre-commit"}`, `{"path":"sub/.claude/settings.json"}`,
		`{"path":"C:\\Users\\ann\\.ssh\\id_rsa"}`, `{"path":"\u002e\u0065nv"}`, `{"at":"http://localhost:8080/x"}`, `{"at":"localhost:8080"}`, `{"at":"169.254.169.254/latest"}`, `{"at":"http://169.254.169.254/latest"}`,
		`{"at":"https://ann:word@example.com"}`, `{"at":"file:///srv/app/a"}`, `{"at":"db.internal"}`, `[".env"]`, `{"a":`, `{} {"path":"x"`,
		`{"at":"https://example.com/docs?d=x"}`, `{"at":"evil.example.com/x"}`, `{"at":"x@evil.example"}`, `{"at":"file:/etc/passwd"}`, `{"at":"data:text/html,x"}`, `{"at":"//evil.example/x"}`, `{"at":"\\\\host\\share"}`,
		`{"path":".ENV"}`, `{"path":"%2eenv"}`, `{"path":"%252eenv"}`, `{"path":"..%2f..%2fetc%2fpasswd"}`, `{"path":"a%20b/../../x"}`, `{"path":"$HOME/notes"}`, `{"path":"%USERPROFILE%/notes"}`, `{"path":"${D}/x"}`, `{"path":"~ben/x"}`, `{"path":".e*"}`, `{"path":"a/.e?v"}`,
		`{"in":"{\"path\":\".env\"}"}`, `{"a":[[[{"b":"{\"c\":\"/etc/passwd\"}"}]]]}`, `{"in":"{\"c\":\"\\u002eenv\"}"}`,
		`{"filter":"1; DROP TABLE users"}`, `{"where":"x' union select 1; delete from users"}`, `{"name":"a","order":"update t set a=1"}`, `{"q":"select lo_import('x')"}`, `{"q":"copy t to program 'sh'"}`,
		`{"action":"delete"}`, `{"method":"POST"}`, `{"op":"SendMessage"}`, `{"deleteAll":true}`, `{"sql":"select 1"}`, `{"command":"ls"}`, `{"note":"$(id)"}`, `{"a":{"b":["rm -rf x"]}}`,
		`{"note":"` + strings.Repeat("x", 40_000) + `"}`,
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

// nod offers no lasting answer for a tool that may do anything, or for a call whose input names a secret.
func TestNoAnswerLastsForAToolThatNodCannotBound(t *testing.T) {
	p := preset(t, policy.PresetContained)
	for _, tool := range []string{"exec", "sql", "Task", "PowerShell", "browser_navigate", "_fetch_pr", "mcp__a", "mcp____b", "mcp__a__", "mcp__a__b\u202e", "mcp__a__run", "mcp__a__runCommand",
		"mcp__shell__list", "mcp__db__execute_sql", "mcp__play__browser_evaluate", "mcp__stripe__create_refund", "mcp__mail__send_message", "mcp__fs__delete_file", "mcp__fs__move_file", "mcp__vault__get_secret", "mcp__k8s__apply",
		"mcp__a__do", "mcp__a__create_issue", "mcp__a__post_message", "mcp__fs__write_file", "mcp__a__get_or_create", "mcp__a__listAndDelete", "mcp__a__find_and_replace", "mcp__a__GETDELETE", "mcp__a__getaway_delete2", "mcp__a__batch_design", "mcp__play__browser_click", "mcp__a__fetch_url",
		"mcp__a__manage", "mcp__sender__list", "mcp__a__list_then_deleteall", "mcp__a__getx", "mcp__a__7", "mcp__a__batch", "mcp__mcp__a__x"} {
		assert.Empty(t, p.Remember(mcpCall(tool, `{"a":"b"}`)), tool)
		assert.Equal(t, policy.Ask, p.Check(mcpCall(tool, `{"a":"b"}`)).Effect, tool)
	}
	assert.Empty(t, p.Remember(mcpCall("mcp__fs__read_file", `{"path":".env"}`)))
	nowhere := mcpCall("mcp__fs__read_file", `{"path":"a"}`)
	nowhere.Cwd, nowhere.Project = "", ""
	assert.Empty(t, p.Remember(nowhere))
}

// linkedProject makes a project in a new directory dir. The project's link "link" leads to dir/out, which is outside
// the project, and its link "notes.md" to a file for secrets.
func linkedProject(t *testing.T) (dir, project string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	project = dir + "/app"
	require.NoError(t, os.MkdirAll(project+"/in", 0o755))
	require.NoError(t, os.Mkdir(dir+"/out", 0o755))
	require.NoError(t, os.Symlink(dir+"/out", project+"/link"))
	require.NoError(t, os.Symlink(project+"/.env", project+"/notes.md"))
	return dir, project
}

// If a link in the project leads outside, nod treats the link like its target. nod follows the links in an
// input even if its policy would ask anyway, because an answer outside this policy could allow the call.
func TestAnAnswerForAnMCPToolFollowsLinks(t *testing.T) {
	_, project := linkedProject(t)
	require.NoError(t, os.Symlink("in", project+"/own"))
	p := preset(t, policy.PresetContained)
	call := func(input string) policy.Call {
		c := policy.Call{ToolName: "mcp__draw__batch_get", Input: json.RawMessage(input), Cwd: project, Project: project, Home: "/home/ann"}
		c.Seen = policy.ThisDisk{}.Look(p, c, func(policy.Search) ([]string, bool) { return nil, true })
		return c
	}
	reaches := p.Remember(call(`{}`))
	require.Len(t, reaches, 1)
	with := p.With(reaches[0].Rules...)
	for input, want := range map[string]policy.Effect{
		`{"path":"in/a"}`: policy.Allow, `{"path":"own/a"}`: policy.Allow, `{"path":"link/a"}`: policy.Ask, `{"a":[{"b":"link"}]}`: policy.Ask, `{"path":"own/../link/a"}`: policy.Ask, `{"path":"notes.md"}`: policy.Ask,
	} {
		assert.Equal(t, want, with.Check(call(input)).Effect, input)
	}
}
