package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// By default, nod hardens a git command that reads, on three conditions: git's configuration names a program
// that the command may run, the call is made on nod's machine, and the host accepts changed inputs. The
// decision names what the hardened git leaves out.
func TestGitReadsAreHardenedByDefault(t *testing.T) {
	t.Parallel()
	home, project := t.TempDir(), t.TempDir()
	env := rig.Start(t, func(s *rig.Setup) { s.Engine = engine.Options{Host: "here", Home: home} })
	ada := env.Agent("ada")
	id := 0
	gets := func(host, contain, command string) schemas.Decision {
		id++
		r := rig.Call("Bash", "S", "p"+string(rune('a'+id)))
		r.ActionType, r.ActionDetails = schemas.ActionCommand, []byte(`{"command":"`+command+`","cwd":"`+project+`"}`)
		r.Host, r.Project, r.Contain = host, project, contain
		d := ada.Gets(r)
		env.Equal(schemas.Allowed, d.Outcome)
		return d
	}
	config := filepath.Join(project, ".git", "config")
	require.NoError(t, os.MkdirAll(filepath.Join(project, ".git", "objects"), 0o755))
	for file, text := range map[string]string{config: "[core]\n\tbare = false\n", filepath.Join(project, ".git", "HEAD"): "ref: refs/heads/main\n"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	const changes = "this machine cannot run it contained"
	d := gets("here", changes, "git diff")
	env.Nil(d.UpdatedInput, "no program is configured")
	env.Empty(d.Message)

	require.NoError(t, os.WriteFile(config, []byte("[core] FSMonitor = /x\n[diff \"go\"]\n\ttextconv=/y\r\n"), 0o644))
	d = gets("here", changes, "git diff")
	env.Contains(runsAs(env, d), "--no-textconv")
	env.Contains(d.Message, "git runs without core.fsmonitor of "+config+", a textconv of "+config)
	env.Contains(d.Message, "harden_git")
	env.Nil(gets("here", changes, "ls").UpdatedInput)
	env.Nil(gets("here", "", "git diff").UpdatedInput, "the host cannot change an input")
	env.Nil(gets("there", changes, "git diff").UpdatedInput, "the configuration of another machine is unknown")

	require.NoError(t, os.WriteFile(config, nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[pager]\n\tdiff = less\n"), 0o644))
	env.Contains(gets("here", changes, "git log -1").Message, "the pager of "+home+"/.gitconfig")

	env.Apply(`{"permissions":{"harden_git":false},"approvers":{"people":[{"name":"Ann","identities":[{"connector":"terminal","user_id":"ann"}]}]}}`)
	env.Nil(gets("here", changes, "git diff").UpdatedInput)
}

// If the host accepts changed inputs, nod makes git leave out the secrets that the repository tracks, and the
// decision names them. For any other host, nod asks a person about the call.
func TestGitLeavesOutTrackedSecrets(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("left out: git is not installed")
	}
	home, project := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(project, "server.key"), []byte("k\n"), 0o600))
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@x", "commit", "-qm", "key"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = project, append(os.Environ(), "HOME="+home, "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	env := rig.Start(t, func(s *rig.Setup) { s.Engine = engine.Options{Host: "here", Home: home} })
	ada := env.Agent("ada")
	call := func(id, host, contain, command string) schemas.Request {
		r := rig.Call("Bash", "S", id)
		r.ActionType, r.ActionDetails = schemas.ActionCommand, []byte(`{"command":"`+command+`","cwd":"`+project+`"}`)
		r.Host, r.Project, r.Contain = host, project, contain
		return r
	}
	const changes = "this machine cannot run it contained"
	d := ada.Gets(call("p1", "here", changes, "git log -p"))
	env.Contains(runsAs(env, d), "log --no-ext-diff --no-textconv -p ':(top,exclude,literal)server.key'")
	env.Contains(d.Message, "git leaves out server.key, because of secrets")
	env.Nil(ada.Gets(call("p2", "here", changes, "git log")).UpdatedInput)
	env.Nil(ada.Gets(call("p3", "there", changes, "git log -p")).UpdatedInput, "another machine's repository is unknown")

	ada.Asks(call("p4", "here", "", "git log -p"))
	ada.Asks(call("p5", "here", changes, "git stash show -p"))
	env.Apply(`{"permissions":{"harden_git":false},"approvers":{"people":[{"name":"Ann","identities":[{"connector":"terminal","user_id":"ann"}]}]}}`)
	ada.Asks(call("p6", "here", changes, "git log -p"))
}
