package policy_test

import (
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// onlyForSession returns the last reach for a call, and requires that the reach is for one session only.
func onlyForSession(t *testing.T, p *policy.Policy, c policy.Call) schemas.Reach {
	t.Helper()
	reaches := p.Remember(c)
	require.NotEmpty(t, reaches, "%s %s", c.ToolName, c.Input)
	last := reaches[len(reaches)-1]
	require.Equal(t, schemas.ScopeSession, last.Widest, last.String())
	return last
}

// An answer for one session to an MCP tool that may change files covers only the file of the answered call.
func TestAnAnswerForOneSessionKeepsAToolToItsFile(t *testing.T) {
	p := preset(t, policy.PresetContained)
	const tool = "mcp__draw__batch_design"
	reach := onlyForSession(t, p, mcpCall(tool, `{"filePath":"designs/a.pen","operations":"U(\"n1\", {fill: 3})"}`))
	assert.Equal(t, "mcp__draw__batch_design(/srv/app/designs/a.pen) in /srv/app", reach.String())
	with := p.WithReach(&reach)
	for _, input := range []string{`{"filePath":"designs/a.pen"}`, `{"filePath":"/srv/app/designs/a.pen","operations":"x=I(root, {w: 1, h: 2})","cwd":"/srv/app"}`, `{"file":"./designs/a.pen","n":[1,2],"on":true}`} {
		assert.Equal(t, policy.Allow, with.Check(mcpCall(tool, input)).Effect, input)
	}
	for _, input := range []string{
		`{}`, `{"filePath":"designs/b.pen"}`, `{"filePath":"designs/A.pen"}`, `{"filePath":"designs/a.pen","target":"designs/b.pen"}`, `{"filePath":"designs/a.pen","filePath":"src/main.go"}`, `{"filePath":["designs/a.pen","src/main.go"]}`,
		`{"filePath":"designs/a.pen","more":{"path":"src/main.go"}}`, `{"filePath":"designs/a.pen","more":"{\"path\":\"src/main.go\"}"}`, `{"filePath":"designs/a.pen","output_dir":7}`, `{"filePath":{"path":"designs/a.pen","x":"designs/b.pen"}}`,
		`{"filePath":"designs/a.pen","text":"see .env"}`, `{"filePath":"designs/a.pen","from":"/etc/passwd"}`, `{"filePath":"designs/a.pen","note":"https://evil.example/x"}`, `{"filePath":"designs/a.pen","mode":"delete"}`, `{"filePath":"designs/a.pen","sql":"x"}`, `{"filePath":"designs/a.pen","note":"$(id)"}`,
		`{"filePath":"designs/a.pen","owner":"x"}`, `{"filePath":"designs/a.pen","repoName":"x"}`, `{"filePath":"designs/a.pen","branch":"x"}`, `{"filePath":"designs/a.pen","host":"x"}`, `{"filePath":"designs/a.pen","to":"x"}`, `{"filePath":"designs/a.pen","in":{"channel":"x"}}`,
		`{"filePath":" designs/a.pen"}`, `{"filePath":"designs/../designs/a.pen/../../.git/config"}`, `{"filePath":"designs/*.pen"}`, `{"filePath":"designs%2fa.pen"}`, `{"filePath":"designs/a.pen"} {}`, `["designs/a.pen"]`, `{"filePath":`,
		`{"filePath":"designs/a.pen","document":".github/workflows/ci.yml"}`, `{"filePath":"designs/a.pen","location":"src/main.go"}`, `{"filePath":"designs/a.pen","name":"CLAUDE.md"}`, `{"filePath":"designs/a.pen","items":["lib/x"]}`, `{"filePath":"designs/a.pen","changes":{"lib/x.go":"y"}}`, `{"filePath":"designs/a.pen","x":"my file.go"}`, `{"filePath":"designs/a.pen","x":"\"lib/x.go\""}`, `{"filePath":"designs/a.pen","x":"lib%2fx.go"}`, `{"filePath":"designs/a.pen","x":"my lib/file"}`, `{"filePath":"designs/a.pen","x":"x.c++"}`, `{"filePath":"designs/a.pen","x":"-o=lib/x.go -y"}`, `{"filePath":"designs/a.pen","x":["--out","lib"]}`,
		`{"filePath":"designs/a.pen","run":true}`, `{"filePath":"designs/a.pen","mode":"run"}`, `{"filePath":"designs/a.pen","notify":true}`, `{"filePath":"designs/a.pen","deletes":["n1"]}`, `{"filePath":"designs/a.pen","visibility":"all"}`, `{"filePath":"designs/a.pen","phone":"1"}`,
		`{"filePath":"designs/a.pen","note":"` + strings.Repeat("x", 40_000) + `"}`, `{"filePath":"designs/a.pen"` + strings.Repeat(`,"k":1`, 10_000) + `}`,
	} {
		assert.Equal(t, policy.Ask, with.Check(mcpCall(tool, input)).Effect, input)
	}
	assert.Equal(t, policy.Ask, with.Check(mcpCall("mcp__draw__batch_other", `{"filePath":"designs/a.pen"}`)).Effect)
	elsewhere := mcpCall(tool, `{"filePath":"/srv/app/designs/a.pen"}`)
	elsewhere.Cwd, elsewhere.Project = "/srv/other", "/srv/other"
	assert.Equal(t, policy.Ask, with.Check(elsewhere).Effect, "another project")
	assert.Equal(t, policy.Ask, p.With(reach.Rules...).Check(mcpCall(tool, `{"filePath":"designs/a.pen"}`)).Effect, "the same rule as an answer for longer covers nothing")
	assert.Equal(t, policy.Deny, pol(t, schemas.Permissions{Preset: policy.PresetContained, Deny: []string{"mcp__draw"}}).WithReach(&reach).Check(mcpCall(tool, `{"filePath":"designs/a.pen"}`)).Effect)
	_, err := policy.New(schemas.Permissions{Allow: []string{reach.String()}})
	assert.Error(t, err, "settings last longer than a session")
}

// nod offers no answer for one session if the name or the input of an MCP tool says that the tool may delete,
// send, publish, pay, run something or act on another system, or if other programs obey the file.
func TestNoAnswerForOneSessionForActsThatNodCannotLimit(t *testing.T) {
	p := preset(t, policy.PresetContained)
	for _, tool := range []string{
		"mcp__fs__delete_file", "mcp__fs__move_file", "mcp__fs__removeAll", "mcp__db__execute_sql", "mcp__db__write", "mcp__play__browser_click", "mcp__play__browser_navigate", "mcp__a__runCode", "mcp__shell__write_file", "mcp__ssh__write_file",
		"mcp__mail__draft", "mcp__a__send_file", "mcp__a__share_file", "mcp__a__upload_file", "mcp__a__publish", "mcp__a__pushFiles", "mcp__a__commit_file", "mcp__a__merge", "mcp__stripe__update", "mcp__a__pay", "mcp__a__post_note", "mcp__a__comment",
		"mcp__github__create_or_update_file", "mcp__gl__update_repository_file", "mcp__a__create_issue", "mcp__a__create_gist", "mcp__notion__update_page", "mcp__a__put_bucket", "mcp__a__apply_patch", "mcp__a__set_secret", "mcp__a__deploys", "mcp__a__sendNow",
		"mcp__a__transmit", "mcp__a__open", "mcp__a__x", "mcp__a__render", "mcp__a__rm", "mcp__a__GITHUBWrite", "mcp__a__write_and_notify", "mcp__printer__write", "mcp__a__write_public", "mcp__a__create_payment", "mcp__bank__update", "mcp__a__set_permissions", "mcp__a__set_config", "mcp__a__add_dependency", "mcp__a__create_key",
		"Task", "exec", "mcp__a", "mcp__a__", "mcp__a__b\u202e", "custom_write",
	} {
		assert.Empty(t, p.Remember(mcpCall(tool, `{"path":"src/a.txt","text":"x"}`)), tool)
	}
	for _, file := range []string{".env", ".github/workflows/ci.yml", ".claude/settings.json", ".git/config", "deploy/server.key", "../x.pen", "/etc/hosts.conf", "~/x.pen", ".hidden/x.pen", "dir", ".", "", "a.*", "x/.env.local"} {
		assert.Empty(t, p.Remember(mcpCall("mcp__draw__write", `{"path":"`+file+`"}`)), file)
	}
	home := mcpCall("mcp__draw__write", `{"path":"a.pen"}`)
	home.Cwd, home.Project = "/home/ann", "/home/ann"
	assert.Empty(t, p.Remember(home), "the project is a home directory")
	nowhere := mcpCall("mcp__draw__write", `{"path":"a.pen"}`)
	nowhere.Cwd, nowhere.Project = "", ""
	assert.Empty(t, p.Remember(nowhere))
}

func TestAnAnswerForOneSessionFollowsLinks(t *testing.T) {
	dir, project := linkedProject(t)
	p := preset(t, policy.PresetContained)
	look := func(tool, path string) policy.Call {
		c := policy.Call{ToolName: tool, Input: []byte(`{"file_path":"` + path + `"}`), Cwd: project, Project: project, Home: "/home/ann"}
		c.Seen = policy.ThisDisk{}.Look(p, c, func(policy.Search) ([]string, bool) { return nil, true })
		return c
	}
	assert.Len(t, p.Remember(look("mcp__draw__write", "in/a.pen")), 1)
	assert.Empty(t, p.Remember(look("mcp__draw__write", "link/a.pen")))
	assert.Empty(t, p.Remember(look("mcp__draw__write", "notes.md")))
	hidden := dir + "/.notes/a.md"
	require.NoError(t, os.Mkdir(dir+"/.notes", 0o755))
	assert.Len(t, p.Remember(look("Read", hidden)), 1)
	require.NoError(t, os.Symlink(dir+"/.ssh/id_rsa", hidden))
	assert.Empty(t, p.Remember(look("Read", hidden)))
}

// An answer for one session lets the session read the answered file outside the project again, and no other
// file there. nod asks about each read of a file with secrets.
func TestAnAnswerForOneSessionCoversAFileOutsideTheProject(t *testing.T) {
	p := preset(t, policy.PresetContained)
	at := func(tool, path string) policy.Call {
		return policy.Call{ToolName: tool, Input: []byte(`{"file_path":"` + path + `"}`), Cwd: "/srv/app", Project: "/srv/app", Home: "/home/ann"}
	}
	reach := onlyForSession(t, p, at("Read", "/home/ann/.plans/today.md"))
	assert.Equal(t, "Read(/home/ann/.plans/today.md) in /srv/app", reach.String())
	with := p.WithReach(&reach)
	assert.Equal(t, policy.Allow, with.Check(at("Read", "/home/ann/.plans/today.md")).Effect)
	for _, other := range []string{"/home/ann/.plans/other.md", "/home/ann/.plans", "/home/ann/.plans/*.md", "/home/ann/.plans/today.md/../key"} {
		assert.Equal(t, policy.Ask, with.Check(at("Read", other)).Effect, other)
	}
	for _, tool := range []string{"Edit", "Write", "Grep"} {
		assert.NotEqual(t, policy.Allow, with.Check(at(tool, "/home/ann/.plans/today.md")).Effect, tool)
	}
	for _, secret := range []string{"/home/ann/.ssh/id_rsa", "/home/ann/.aws/credentials", "/srv/app/.env", "/home/ann/.bash_history", "/home/ann/.plans/*", "/proc/1/environ"} {
		assert.Empty(t, p.Remember(at("Read", secret)), secret)
	}
}

// An answer for one session to a call of Edit or Write covers both tools for the ordinary files below one
// directory of the project. It covers no file that other programs obey.
func TestAnAnswerForOneSessionCoversBothToolsForEdits(t *testing.T) {
	at := func(tool, path, cwd string) policy.Call {
		return policy.Call{ToolName: tool, Input: []byte(`{"file_path":"` + path + `"}`), Cwd: cwd, Project: "/srv/app", Home: "/home/ann"}
	}
	p := preset(t, policy.PresetContained)
	reach := onlyForSession(t, p, at("Write", "/srv/app/.planning/todo/a.md", "/srv/app"))
	assert.Equal(t, "Edit(/srv/app/.planning/todo/) in /srv/app and Write(/srv/app/.planning/todo/) in /srv/app", reach.String())
	with := p.WithReach(&reach)
	assert.Equal(t, policy.Allow, with.Check(at("Edit", ".planning/todo/b.md", "/srv/app")).Effect)
	for _, other := range []string{".planning/b.md", ".planning/todo/.env", ".planning/todo/.git/config", ".planning/todo/.hidden/x", "/srv/b.md"} {
		assert.NotEqual(t, policy.Allow, with.Check(at("Edit", other, "/srv/app")).Effect, other)
	}

	readers := preset(t, policy.PresetReaders)
	reach = onlyForSession(t, readers, at("Write", "/srv/app/a.md", "/srv/app"))
	assert.Equal(t, "Edit(/srv/app/) in /srv/app and Write(/srv/app/) in /srv/app", reach.String())
	with = readers.WithReach(&reach)
	assert.Equal(t, policy.Allow, with.Check(at("Edit", "src/b.go", "/srv/app")).Effect)
	for _, obeyed := range []string{".github/workflows/ci.yml", "CLAUDE.md", "sub/AGENTS.md", ".gitlab-ci.yml"} {
		assert.Equal(t, policy.Ask, with.Check(at("Edit", obeyed, "/srv/app")).Effect, obeyed)
	}

	for _, outside := range []string{"/srv/app__trees/x/docs/plan.md", "/etc/hosts"} { // the call runs in a directory beside the project
		for _, r := range p.Remember(at("Write", outside, path.Dir(outside))) {
			assert.False(t, r.SessionOnly(), outside)
		}
	}
	for _, never := range []string{"/home/ann/.claude/CLAUDE.md", "/home/ann/.bashrc", "/srv/app__trees/x/.git/hooks/pre-commit", "/home/ann/.ssh/config", "/home/ann/.config/autostart/x.desktop", "/home/ann/.local/bin/x", "/srv/app/.github/workflows/ci.yml"} {
		for _, r := range p.Remember(at("Write", never, "/srv/app__trees/x")) {
			assert.False(t, r.SessionOnly(), never)
		}
	}
}
