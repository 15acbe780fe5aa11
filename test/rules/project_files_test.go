package rules

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// writeRules writes a project's own settings. Each value of the parameter at gives the file another
// modification time, so that the write looks like a change.
func writeRules(t *testing.T, project, settings string, at int) {
	t.Helper()
	file := filepath.Join(project, ".nod", "settings.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o644))
	when := time.Unix(int64(1_000_000+at), 0)
	require.NoError(t, os.Chtimes(file, when, when))
}

// The engine reads a project's own settings file. The file's rules tighten the policy and never loosen it.
func TestProjectFilesTighten(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	sub := filepath.Join(project, "a", "b")
	require.NoError(t, os.MkdirAll(sub, 0o755))
	base, err := policy.New(schemas.Permissions{})
	require.NoError(t, err)
	var files engine.ProjectFiles
	effect := func(dir, command string) policy.Effect {
		p, err := files.Tighten(base, dir)
		require.NoError(t, err)
		return p.Check(policy.Call{ToolName: "Bash", Input: []byte(`{"command":"` + command + `"}`), Cwd: dir, Project: dir}).Effect
	}
	require.Equal(t, policy.Allow, effect(project, "git log"))

	writeRules(t, project, `{"permissions":{"deny":["Bash(git log:*)"],"ask":["Bash(ls:*)"],"allow":["Bash(rm:*)"],"preset":"project"}}`, 1)
	for _, dir := range []string{project, sub} { // the rules apply in all directories of the project
		for command, want := range map[string]policy.Effect{"git log": policy.Deny, "ls": policy.Ask, "cat x": policy.Allow, "rm x": policy.Ask} {
			require.Equal(t, want, effect(dir, command), "%s in %s", command, dir)
		}
	}
	require.Equal(t, policy.Allow, effect(t.TempDir(), "git log"), "another project")

	writeRules(t, project, `{"permissions":{"ask":["Bash(cat:*)"]}}`, 2)
	require.Equal(t, policy.Allow, effect(sub, "git log"), "the file has changed")
	require.Equal(t, policy.Ask, effect(sub, "cat x"))

	for i, bad := range []string{`{`, ``, `{"permissions":{"deny":["("]}}`, `{"permisions":{}}`, strings.Repeat(" ", 65<<10) + `{}`} {
		writeRules(t, project, bad, 3+i)
		_, err := files.Tighten(base, sub)
		require.ErrorContains(t, err, "the project's rules", "%.20q", bad)
		require.ErrorContains(t, err, filepath.Join(project, ".nod"))
	}
	require.NoError(t, os.Remove(filepath.Join(project, ".nod", "settings.json")))
	require.NoError(t, os.Mkdir(filepath.Join(project, ".nod", "settings.json"), 0o755))
	_, err = files.Tighten(base, sub)
	require.Error(t, err, "a directory is no file of rules")
	require.NoError(t, os.Remove(filepath.Join(project, ".nod", "settings.json")))
	require.Equal(t, policy.Allow, effect(sub, "git log"))
	p, err := files.Tighten(base, "relative")
	require.NoError(t, err)
	require.Same(t, base, p)

	other := t.TempDir()
	writeRules(t, project, `{"permissions":{"deny":["Bash(ls:*)"]}}`, 20)
	writeRules(t, other, `{"permissions":{"ask":["Bash(cat:*)"]}}`, 20)
	for _, dirs := range [][]string{{project, other}, {other, sub, "relative", project}} {
		p, err := files.Tighten(base, dirs...)
		require.NoError(t, err)
		again, err := files.Tighten(base, dirs...)
		require.NoError(t, err)
		require.Same(t, p, again, "the combined policy is cached")
		for command, want := range map[string]policy.Effect{"ls": policy.Deny, "cat x": policy.Ask, "git log": policy.Allow} {
			require.Equal(t, want, p.Check(policy.Call{ToolName: "Bash", Input: []byte(`{"command":"` + command + `"}`), Cwd: project, Project: project}).Effect, command)
		}
	}
}

// An engine applies the project files of its own machine, and only to calls on this machine. If a
// project's file is invalid, the engine asks about every call in the project.
func TestAnEngineReadsOnlyProjectsOfItsOwnHost(t *testing.T) {
	t.Parallel()
	home, project := t.TempDir(), t.TempDir()
	env := rig.Start(t, func(s *rig.Setup) {
		s.Engine = engine.Options{Host: "here", Home: home, Own: []string{filepath.Join(home, "keep")}, Projects: &engine.ProjectFiles{}}
	})
	ada := env.Agent("ada")
	id := 0
	ask := func(host, command string) schemas.Request {
		id++
		r := rig.Call("Bash", "S", "p"+string(rune('a'+id)))
		r.ActionType, r.ActionDetails = schemas.ActionCommand, []byte(`{"command":"`+command+`","cwd":"`+project+`"}`)
		r.Host, r.Project = host, project
		return r
	}
	env.Equal(schemas.Allowed, ada.Gets(ask("here", "ls")).Outcome)
	env.Equal(schemas.Denied, ada.Gets(ask("here", "rm -rf ~/keep")).Outcome, "the engine resolves ~ and knows nod's own paths")
	ada.Asks(ask("there", "rm -rf ~/keep"))

	exposed := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(exposed, "server.key"), []byte("x"), 0o600))
	search := func(host string) schemas.Request {
		r := ask(host, "rg TOKEN")
		r.Project, r.ActionDetails = exposed, []byte(`{"command":"rg TOKEN","cwd":"`+exposed+`"}`)
		return r
	}
	ada.Asks(search("here"))
	env.Equal(schemas.Allowed, ada.Gets(search("there")).Outcome, "the engine does not see the files of another machine")
	env.Equal(schemas.Allowed, ada.Gets(ask("here", "rg TOKEN")).Outcome, "a project without such a file")

	// The directory has too many secrets to list. The engine still knows that a search of a small
	// subdirectory shows no secrets.
	exposed = t.TempDir()
	for i := range 65 {
		require.NoError(t, os.WriteFile(filepath.Join(exposed, strconv.Itoa(i)+".key"), nil, 0o600))
	}
	for _, dir := range []string{"src", "keys"} {
		require.NoError(t, os.Mkdir(filepath.Join(exposed, dir), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(exposed, "keys", "client.key"), nil, 0o600))
	for line, allowed := range map[string]bool{
		"rg TOKEN src": true, "rg TOKEN src/missing src": true, "cd src && rg TOKEN": false, "rg TOKEN keys": false, "rg TOKEN .": false,
		"rg TOKEN s*": false, "rg TOKEN src src/..": false, "rg TOKEN src/1 src/2 src/3 src/4 src/5 src/6 src/7 src/8 src/9": true,
	} {
		r := ask("here", line)
		r.Project, r.ActionDetails = exposed, []byte(`{"command":"`+line+`","cwd":"`+exposed+`"}`)
		if allowed {
			env.Equal(schemas.Allowed, ada.Gets(r).Outcome, line)
		} else {
			ada.Asks(r).Drop()
		}
	}

	writeRules(t, project, `{"permissions":{"deny":["Bash(ls:*)"]}}`, 1)
	env.Equal(schemas.Denied, ada.Gets(ask("here", "ls")).Outcome)
	env.Equal(schemas.Denied, ada.Gets(ask("", "ls")).Outcome)
	env.Equal(schemas.Allowed, ada.Gets(ask("there", "ls")).Outcome)

	// A session names one project, but its calls may run in other directories. Both the rules of the project
	// and the rules of the call's directory apply.
	other := t.TempDir()
	writeRules(t, other, `{"permissions":{"deny":["Bash(cat:*)"]}}`, 1)
	env.Equal(schemas.Allowed, ada.Gets(ask("here", "cat x")).Outcome)
	env.Equal(schemas.Denied, ada.Gets(ask("here", "cd "+other+" && cat x")).Outcome)
	elsewhere := ask("here", "cat x")
	elsewhere.Project = other
	env.Equal(schemas.Denied, ada.Gets(elsewhere).Outcome)
	elsewhere = ask("here", "ls")
	elsewhere.Project = other
	env.Equal(schemas.Denied, ada.Gets(elsewhere).Outcome, "naming another project does not disable the rules of the call's directory")

	writeRules(t, project, `{"permissions":{"deny":["("]}}`, 2)
	r := ask("here", "ls")
	ada.Asks(r)
	env.Contains(strings.Join(env.Stored(schemas.Key("S", r.PendingID)).Record.Reasons, " "), "the project's rules")
}
