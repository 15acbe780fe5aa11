//go:build linux

package agents_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// If the hook is killed while it waits, the host does not run the call, and nod withdraws the
// hook's request. If the program of the hook is missing, the host does not run the call either.
func TestNoCallRunsIfItsHookIsKilledOrMissing(t *testing.T) {
	for how, gone := range map[string]func(x *machine, c *exec.Cmd) *agent{
		"killed": func(x *machine, c *exec.Cmd) *agent {
			a := x.starts(c)
			x.asked(a)
			require.NoError(x.t, syscall.Kill(x.hook(), syscall.SIGKILL))
			return a
		},
		"no launcher": func(x *machine, c *exec.Cmd) *agent {
			require.NoError(x.t, os.Remove(x.launcher()))
			return x.starts(c)
		},
		"no nod": func(x *machine, c *exec.Cmd) *agent {
			require.NoError(x.t, os.Remove(x.launcher()))
			require.NoError(x.t, os.Symlink(filepath.Join(x.home, "nod"), x.launcher()))
			return x.starts(c)
		},
	} {
		for _, u := range printRigs() {
			t.Run(u.host.Name+" "+how, func(t *testing.T) {
				each(t, u.host, u.pkg, func(t *testing.T, program string) {
					x := newMachine(t, newModel(t, u.shell(touch)))
					u.install(x, program)
					a := gone(x, u.command(x, program))
					x.until("the agent ends", a.hasEnded)
					assert.NoFileExists(t, x.ran)
					assert.Regexp(t, "(?i)blocked|denied", x.model.heard())
					x.until("the question is withdrawn", func() bool { return len(x.pending()) == 0 })
				})
			})
		}
	}
}

func (x *machine) launcher() string {
	return filepath.Join(x.home, ".local", "share", "nod", "launcher", "nod")
}

// hook waits until a hook is running on this machine. It returns the hook's process id.
func (x *machine) hook() (pid int) {
	x.until("there is a hook", func() bool {
		all, err := filepath.Glob("/proc/[0-9]*/cmdline")
		require.NoError(x.t, err)
		for _, path := range all {
			line, err := os.ReadFile(path)
			if err == nil && bytes.HasPrefix(line, []byte(x.launcher()+"\x00hook\x00")) {
				pid, err = strconv.Atoi(filepath.Base(filepath.Dir(path)))
				require.NoError(x.t, err)
			}
		}
		return pid != 0
	})
	return pid
}

const copilotPackage = "@github/copilot"

func copilotShell(line string) call {
	return call{"bash", map[string]any{"command": line, "description": "leave a file", "mode": "sync", "shellId": "1"}}
}

// copilot returns a command that runs Copilot CLI with the fake model.
func (x *machine) copilot(program string, args ...string) *exec.Cmd {
	c := x.command(program, args...)
	c.Env = append(c.Env, "COPILOT_PROVIDER_BASE_URL="+x.model.URL, "COPILOT_PROVIDER_TYPE=anthropic", "COPILOT_PROVIDER_API_KEY=none",
		"COPILOT_MODEL=claude-sonnet-4", "COPILOT_OFFLINE=true")
	return c
}
