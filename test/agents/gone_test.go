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

	"github.com/nodbus/nod/connectors/agents/hook"
)

// unattendedHost is a host with a flag that makes it run every call without asking its user.
// With this flag the host asks only nod's hook.
type unattendedHost struct {
	host  hook.Host
	pkg   string
	call  call
	start func(x *machine, program string) *exec.Cmd
}

func unattendedHosts() []unattendedHost {
	return []unattendedHost{
		{hook.ClaudeCode(), claudePackage, claudeTouch, func(x *machine, program string) *exec.Cmd {
			x.does("install", "claude-code", "--strict")
			return x.claude(program, "-p", "go on", "--allowedTools", "Bash")
		}},
		{hook.Codex(), "@openai/codex", codexTouch, func(x *machine, program string) *exec.Cmd {
			x.codexUsesTheModel()
			x.does("install", "codex", "--strict")
			return x.codex(program, "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "go on")
		}},
		{hook.Gemini(), geminiPackage, geminiTouch, func(x *machine, program string) *exec.Cmd {
			x.geminiUsesAKey()
			x.does("install", "gemini")
			return x.gemini(program, "--yolo", "-p", "go on")
		}},
		{hook.Qwen(), qwenPackage, qwenTouch, func(x *machine, program string) *exec.Cmd {
			x.qwenAsksNod()
			return x.qwen(program, "--yolo", "-p", "go on")
		}},
		{hook.Copilot(), copilotPackage, copilotTouch, func(x *machine, program string) *exec.Cmd {
			x.does("install", "copilot")
			return x.copilot(program, "-p", "go on", "--allow-all-tools")
		}},
		{hook.Pi(), piPackage, piTouch, func(x *machine, program string) *exec.Cmd {
			x.does("install", "pi")
			return x.pi(program)
		}},
	}
}

// If a hook is killed while it waits, the host does not run the call, and nod withdraws the hook's
// request. If the hook's program is missing, the host does not run the call either.
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
		for _, u := range unattendedHosts() {
			t.Run(u.host.Name+" "+how, func(t *testing.T) {
				each(t, u.host, u.pkg, func(t *testing.T, program string) {
					x := newMachine(t, newModel(t, u.call))
					a := gone(x, u.start(x, program))
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

var (
	codexTouch   = call{"exec_command", map[string]any{"cmd": touch}}
	copilotTouch = call{"bash", map[string]any{"command": touch, "description": "leave a file", "mode": "sync", "shellId": "1"}}
)

// copilot returns a command that runs Copilot CLI with the fake model.
func (x *machine) copilot(program string, args ...string) *exec.Cmd {
	c := x.command(program, args...)
	c.Env = append(c.Env, "COPILOT_PROVIDER_BASE_URL="+x.model.URL, "COPILOT_PROVIDER_TYPE=anthropic", "COPILOT_PROVIDER_API_KEY=none",
		"COPILOT_MODEL=claude-sonnet-4", "COPILOT_OFFLINE=true")
	return c
}
