package cli

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/test/internal/rig"
)

// A contained command makes files that other programs obey, and removes a link to a secret. nod is killed
// before it can undo these changes. A running nod, the next hook or the next contained command undoes them.
func TestAKilledNodsCommandIsUndone(t *testing.T) {
	t.Parallel()
	if level, why := contain.Support(); level != contain.Namespaces {
		t.Skipf("left out: this machine cannot contain commands: %v", why)
	}
	for name, undo := range map[string]func(t *testing.T, m *rig.Machine, project string){
		"a running nod": func(_ *testing.T, m *rig.Machine, _ string) { m.StartNod() },
		"the next command": func(t *testing.T, m *rig.Machine, project string) {
			reviews(t, func() string {
				c := m.Command("exec", "--contain", "--", "true")
				c.Dir = project
				out, err := c.CombinedOutput()
				assert.NoError(t, err, string(out))
				return string(out)
			})
		},
		"the next hook": func(t *testing.T, m *rig.Machine, project string) {
			reviews(t, func() string {
				c := m.Command("hook", "claude-code", "--host-timeout", "8s")
				c.Dir = project
				out, err := c.CombinedOutput() // the hook fails, because it gets no input and nod is not running
				assert.Error(t, err)
				return string(out)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := rig.NewMachine(t)
			project := trueDir(t)
			put(t, project+"/kept.txt", "kept")
			put(t, project+"/shared/dev.txt", secretText)
			put(t, project+"/.vscode/tasks.json", "{}")
			require.NoError(t, os.Symlink("shared/dev.txt", project+"/.env"))
			c := m.Command("exec", "--contain", "--", "sh", "-c",
				"mkdir -p .claude .github/workflows; echo bad > .claude/settings.json; echo bad > .github/workflows/x.yml; rm .env; echo new > made.txt; echo made; sleep 600")
			c.Dir = project
			out, err := c.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, testprogram.Start(c))
			line, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "made\n", line)
			require.FileExists(t, project+"/.claude/settings.json")
			require.NoError(t, c.Process.Kill())
			require.Error(t, c.Wait())

			undo(t, m, project)
			require.Eventually(t, func() bool {
				_, claude := os.Lstat(project + "/.claude/settings.json")
				_, workflow := os.Lstat(project + "/.github/workflows/x.yml")
				to, err := os.Readlink(project + "/.env")
				return os.IsNotExist(claude) && os.IsNotExist(workflow) && err == nil && to == "shared/dev.txt"
			}, rig.Patience, rig.Tick)
			for _, stays := range []string{"kept.txt", "made.txt", "shared/dev.txt", ".vscode/tasks.json"} {
				require.FileExists(t, filepath.Join(project, stays))
			}
			require.Eventually(t, func() bool {
				left, err := os.ReadDir(filepath.Join(m.Dir, "contained"))
				return err == nil && !slices.ContainsFunc(left, func(f os.DirEntry) bool { return !strings.HasPrefix(f.Name(), "over-") })
			}, rig.Patience, rig.Tick, "the note is over")
		})
	}
}

// A file is secret only because a symbolic link leads to it. A contained command removes the link and still
// runs. A second command can neither see the file nor move it.
func TestASecretIsHiddenWhileAnotherCommandRuns(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAKilledNodsCommandIsUndone runs such commands, and connectors/agents/contain hides secrets")
	if level, why := contain.Support(); level != contain.Namespaces {
		t.Skipf("left out: this machine cannot contain commands: %v", why)
	}
	m := rig.NewMachine(t)
	project := trueDir(t)
	put(t, project+"/shared/dev.txt", secretText)
	put(t, project+"/other/prod.txt", secretText)
	require.NoError(t, os.Symlink("shared/dev.txt", project+"/.env"))
	require.NoError(t, os.Symlink("other/prod.txt", project+"/.env.prod"))
	contained := func(line string) *exec.Cmd {
		c := m.Command("exec", "--contain", "--", "sh", "-c", line)
		c.Dir = project
		return c
	}
	first := contained("rm .env .env.prod; echo x > .env.prod; echo removed; read end")
	in, err := first.StdinPipe()
	require.NoError(t, err)
	out, err := first.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, testprogram.Start(first))
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "removed\n", line)
	require.NoFileExists(t, project+"/.env")

	for range 2 { // the second round must not read a file that the first round has moved
		second, err := contained("mv shared a; mv other b; mv shared/dev.txt c; grep -Rs . shared other a b c; echo read").CombinedOutput()
		require.NoError(t, err, string(second))
		require.Contains(t, string(second), "read\n")
		require.NotContains(t, string(second), secretText)
	}
	require.NoError(t, in.Close())
	_ = first.Wait() // Wait fails, because the shell's input is closed
	for link, target := range map[string]string{".env": "shared/dev.txt", ".env.prod": "other/prod.txt"} {
		to, err := os.Readlink(filepath.Join(project, link))
		require.NoError(t, err)
		require.Equal(t, target, to)
	}
}

// If a power cut damages the note that nod keeps about a contained command, later commands still run.
func TestADamagedNoteStopsNoCommand(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAKilledNodsCommandIsUndone reads such a note")
	if level, why := contain.Support(); level != contain.Namespaces {
		t.Skipf("left out: this machine cannot contain commands: %v", why)
	}
	m := rig.NewMachine(t)
	put(t, filepath.Join(m.Dir, "contained", "A"), "")
	for _, said := range []string{"cannot be reviewed", ""} {
		c := m.Command("exec", "--contain", "--", "true")
		c.Dir = trueDir(t)
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		if said == "" {
			require.Empty(t, string(out))
		}
		require.Contains(t, string(out), said)
	}
}

// The function reviews calls the function run until the output says that files were moved away. This can take
// several calls, because nod reviews nothing while the kernel still kills the inner process.
func reviews(t *testing.T, run func() string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(run(), "they were moved away") }, rig.Patience, rig.Tick)
}
