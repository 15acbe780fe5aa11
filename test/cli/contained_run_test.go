package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy/contained"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// startContained starts nod with the preset "contained". It skips the test if the machine cannot contain
// commands.
func startContained(t *testing.T) *rig.Machine {
	t.Helper()
	if level, err := contain.Support(); level != contain.Namespaces {
		t.Skipf("left out: this machine cannot contain commands: %v", err)
	}
	m := rig.NewMachine(t)
	m.StartNod()
	settings := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(settings, rig.Apart(`{"permissions":{"preset":"contained"}}`), 0o600))
	_, stderr, code := m.Run("settings", "apply", settings)
	require.Zero(t, code, stderr)
	return m
}

// A hook lets Claude Code run a command line contained. The line can write only the project, and runs only
// once. nod then shows the changes of the run.
func TestAHookLetsALineRunContained(t *testing.T) {
	t.Parallel()
	m := startContained(t)

	project, outside, bin := trueDir(t), trueDir(t), trueDir(t)
	testprogram.Write(t, bin+"/nod", "echo another nod") // the host's shell finds this program under the name nod
	require.NoError(t, os.WriteFile(project+"/task.sh", fmt.Appendf(nil, "echo made > made.txt; echo out > %s/escaped; cat made.txt; printf 'CONNECT example.com:443 HTTP/1.1\\r\\n\\r\\n' | bash -c 'exec 3<>/dev/tcp/127.0.0.1/61280; cat >&3; head -1 <&3'; getent ahosts db.example.org; exit 3\n", outside), 0o600))
	environ := func(c *exec.Cmd) *exec.Cmd {
		c.Dir = project
		c.Env = append(c.Env, "CLAUDE_PROJECT_DIR="+project, "PATH="+bin+":"+os.Getenv("PATH"))
		return c
	}
	hook := environ(m.Command("hook", "claude-code"))
	hook.Stdin = bytes.NewReader(fmt.Appendf(nil, `{"hook_event_name":"PreToolUse","session_id":"S","tool_use_id":"T1","cwd":%q,"tool_name":"Bash","tool_input":{"command":"bash task.sh"}}`, project))
	out, err := hook.Output()
	require.NoError(t, err)
	var reply struct {
		HookSpecificOutput struct {
			PermissionDecision string
			UpdatedInput       struct{ Command string }
		}
	}
	require.NoError(t, json.Unmarshal(out, &reply), string(out))
	require.Equal(t, "allow", reply.HookSpecificOutput.PermissionDecision, string(out))
	line := reply.HookSpecificOutput.UpdatedInput.Command
	program, err := filepath.EvalSymlinks(m.Nod)
	require.NoError(t, err)
	require.Equal(t, contained.Quote(program)+" --data "+contained.Quote(m.Dir)+" exec --run S.T1 -- bash -c 'bash task.sh'", line)

	run := func() (string, int) {
		c := exec.Command("bash", "-c", line)
		c.Env = append(m.Command().Env, "NOD_DATA=") // the host's shell may lack variables that the host's hooks have
		text, err := environ(c).CombinedOutput()
		if _, ok := err.(*exec.ExitError); err != nil && !ok {
			require.NoError(t, err)
		}
		return string(text), c.ProcessState.ExitCode()
	}
	text, exit := run()
	require.Equal(t, 3, exit, text)
	require.NotContains(t, text, "another nod")
	require.Contains(t, text, "nod: the command could not reach example.com:443, which is not granted; to get it: nod ask --session S --permission @network:example.com:443 --reason WHY")
	require.Contains(t, text, "nod: the command looked up db.example.org; only programs that use the proxy in http_proxy reach hosts, and only granted ones; to get one: nod ask --session S --permission @network:HOST:PORT --reason WHY")
	require.Contains(t, text, "made\n")
	made, err := os.ReadFile(project + "/made.txt")
	require.NoError(t, err)
	require.Equal(t, "made\n", string(made))
	require.NoFileExists(t, outside+"/escaped")

	text, exit = run()
	require.Equal(t, agents.CodeRefused, exit)
	require.Contains(t, text, "has run already")
	shown, _, _ := m.Run("show", "T1", "--session", "S", "--json")
	var row struct{ Run schemas.ContainedRun }
	require.NoError(t, json.Unmarshal([]byte(shown), &row))
	require.Equal(t, []string{"made.txt"}, row.Run.Report.Changed)
	shown, _, _ = m.Run("show", "T1", "--session", "S")
	require.Contains(t, strings.Join(strings.Fields(shown), " "), "ran contained: exit code 3, 1 file changed (made.txt); refused: example.com:443, db.example.org")
	summed, stderr, _ := m.Run("session", "show", "S")
	require.Contains(t, summed, "ran      1 call contained, 1 failed; 1 file changed; 2 hosts refused", stderr)
}

// If the command of a hook names servers and a key file, the command line that the hook returns names them
// too, because the host's shell has no such settings.
func TestAContainedLineNamesTheServersOfItsHook(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAHookLetsALineRunContained runs the same line")
	m := startContained(t)
	run, err := bus.ReadRun(m.Dir)
	require.NoError(t, err)
	project, other, keys := trueDir(t), trueDir(t), trueDir(t)
	require.NoError(t, os.WriteFile(project+"/task.sh", []byte("echo made > made.txt\n"), 0o600))
	key, err := os.ReadFile(filepath.Join(m.Dir, "keys", "agent-local.nk"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(keys+"/my agent.nk", key, 0o600))
	program, err := filepath.EvalSymlinks(m.Nod)
	require.NoError(t, err)

	hook := m.Command("hook", "claude-code", "--data", other, "--nats-url", run.URL, "--creds", keys+"/my agent.nk")
	hook.Dir, hook.Env = project, append(hook.Env, "CLAUDE_PROJECT_DIR="+project)
	hook.Stdin = strings.NewReader(fmt.Sprintf(`{"hook_event_name":"PreToolUse","session_id":"S","tool_use_id":"T1","cwd":%q,"tool_name":"Bash","tool_input":{"command":"bash task.sh"}}`, project))
	out, err := hook.Output()
	require.NoError(t, err)
	var reply struct {
		HookSpecificOutput struct{ UpdatedInput struct{ Command string } }
	}
	require.NoError(t, json.Unmarshal(out, &reply), string(out))
	line := reply.HookSpecificOutput.UpdatedInput.Command
	require.Equal(t, contained.Quote(program)+" --data "+contained.Quote(other)+" --nats-url "+contained.Quote(run.URL)+" --creds "+contained.Quote(keys+"/my agent.nk")+
		" exec --run S.T1 -- bash -c 'bash task.sh'", line, string(out))

	c := exec.Command("bash", "-c", line)
	c.Dir, c.Env = project, append(m.Command().Env, "NOD_DATA=")
	text, err := c.CombinedOutput()
	require.NoError(t, err, string(text))
	require.FileExists(t, project+"/made.txt")
}

// If users of a machine cannot make namespaces, nod asks a person, and no command runs contained. The test
// simulates such a machine with the command unshare.
func TestAMachineWithoutNamespacesAsks(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAHookLetsALineRunContained runs the same line with namespaces")
	if level, err := contain.Support(); level != contain.Namespaces {
		t.Skipf("left out: this machine cannot contain commands, so the test cannot make one that is different: %v", err)
	}
	m := rig.NewMachine(t)
	m.StartNod()
	settings := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(settings, rig.Apart(`{"permissions":{"preset":"contained"}}`), 0o600))
	_, stderr, code := m.Run("settings", "apply", settings)
	require.Zero(t, code, stderr)
	project, cache := trueDir(t), t.TempDir()
	inside := func(args ...string) *exec.Cmd {
		c := exec.Command("unshare", append([]string{"--user", "--map-root-user", "sh", "-c", `echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"`, "sh", m.Nod}, args...)...)
		c.Env = append(m.Command().Env, "CLAUDE_PROJECT_DIR="+project, "XDG_CACHE_HOME="+cache)
		c.Dir = project
		return c
	}
	for _, id := range []string{"T1", "T2"} { // the first hook stores that it cannot contain commands, and the second hook reads this
		hook := inside("hook", "claude-code")
		hook.Stdin = strings.NewReader(fmt.Sprintf(`{"hook_event_name":"PreToolUse","session_id":"S","tool_use_id":%q,"cwd":%q,"tool_name":"Bash","tool_input":{"command":"make test"}}`, id, project))
		var errs bytes.Buffer
		hook.Stderr = &errs
		require.NoError(t, hook.Start())
		require.Eventually(t, func() bool {
			shown, _, _ := m.Run("show", id, "--session", "S")
			return strings.Contains(strings.Join(strings.Fields(shown), " "), "this machine cannot run it contained")
		}, time.Minute, 50*time.Millisecond, &errs)
		m.Run("deny", id, "--session", "S")
		require.NoError(t, hook.Wait(), &errs)
	}
	out, err := inside("exec", "--contain", "--", "true").CombinedOutput()
	var ended *exec.ExitError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, agents.CodeRefused, ended.ExitCode(), string(out))
	require.FileExists(t, cache+"/nod/containment.json")
}
