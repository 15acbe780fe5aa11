package hosts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/test/internal/rig"
)

// gate is an event at which a host waits for its hook's decision. It has the host's name, the hook's input,
// and the hook's whole output for an allow and for a denial.
type gate struct{ host, input, allow, deny string }

// The function gates returns the gates of all hosts. The keys are "HOST EVENT".
func gates() map[string]gate {
	const (
		shell     = `"session_id":"SESSION","cwd":"/srv/app","tool_name":"Bash","tool_input":{"command":"COMMAND"}`
		requested = `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"REASON"}}}`
		preTool   = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"REASON"}}`
	)
	return map[string]gate{
		"claude-code PermissionRequest": {
			"claude-code", `{"hook_event_name":"PermissionRequest",` + shell + `}`,
			`{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow","updatedInput":{"command":"COMMAND"}}}}`, requested,
		},
		"claude-code PreToolUse": {
			"claude-code", `{"hook_event_name":"PreToolUse","tool_use_id":"ID",` + shell + `}`,
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"Allowed through nod."}}`, preTool,
		},
		"codex PermissionRequest": {
			"codex", `{"hook_event_name":"PermissionRequest",` + shell + `}`,
			`{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}`, requested,
		},
		"codex PreToolUse": {"codex", `{"hook_event_name":"PreToolUse","tool_use_id":"ID",` + shell + `}`, `{}`, preTool},
		"gemini BeforeTool": {
			"gemini", `{"hook_event_name":"BeforeTool",` + strings.Replace(shell, "Bash", "run_shell_command", 1) + `}`,
			`{"decision":"allow"}`, `{"decision":"deny","reason":"REASON"}`,
		},
		"qwen-code PreToolUse": {
			"qwen-code", `{"hook_event_name":"PreToolUse","tool_use_id":"ID",` + strings.Replace(shell, "Bash", "run_shell_command", 1) + `}`,
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"Allowed through nod."}}`, preTool,
		},
		"vscode PreToolUse": {
			"vscode", `{"hookEventName":"PreToolUse","sessionId":"SESSION","cwd":"/srv/app","tool_name":"run_in_terminal","tool_input":{"command":"COMMAND"},"tool_use_id":"ID"}`,
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"Allowed through nod."}}`, preTool,
		},
		"droid PreToolUse": {
			"droid", `{"hook_event_name":"PreToolUse","permission_mode":"auto-low",` + strings.Replace(shell, "Bash", "Execute", 1) + `}`,
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"Allowed through nod."}}`, preTool,
		},
		"pi PreToolUse": {
			"pi", `{"hook_event_name":"PreToolUse","tool_use_id":"ID",` + strings.Replace(shell, "Bash", "bash", 1) + `}`,
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"Allowed through nod."}}`, preTool,
		},
		"openclaw PreToolUse": {
			"openclaw", `{"hook_event_name":"PreToolUse","tool_use_id":"ID","session_id":"SESSION","tool_name":"exec","tool_input":{"command":"COMMAND"}}`,
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"Allowed through nod."}}`, preTool,
		},
		"cursor preToolUse": {
			"cursor", `{"conversation_id":"SESSION","hook_event_name":"preToolUse","workspace_roots":["/srv/app"],"tool_name":"Shell","tool_input":{"command":"COMMAND","cwd":"/srv/app"},"tool_use_id":"ID","cwd":""}`,
			`{"permission":"allow"}`, `{"agent_message":"REASON","permission":"deny","user_message":"REASON"}`,
		},
		"copilot permissionRequest": {
			"copilot", `{"sessionId":"SESSION","cwd":"/srv/app","toolName":"bash","toolInput":{"command":"COMMAND"}}`,
			`{"behavior":"allow"}`, `{"behavior":"deny","message":"REASON"}`,
		},
	}
}

// usualGates are two gates of different hosts, because all hosts read the same decision. With -long, they are
// all gates.
func usualGates() map[string]gate {
	all := gates()
	if *rig.Long {
		return all
	}
	return map[string]gate{"claude-code PreToolUse": all["claude-code PreToolUse"], "gemini BeforeTool": all["gemini BeforeTool"]}
}

// hookRun is a running hook process. The test acts as its host.
type hookRun struct {
	t         *testing.T
	gate      gate
	command   string
	cmd       *exec.Cmd
	out, errs strings.Builder
}

// startHook starts a hook as its host does before the host runs the command. The string id is the id of the
// tool call in the session, and patience is the host's timeout for the hook.
func startHook(m *rig.Machine, t *testing.T, g gate, session, id, command, patience string) *hookRun {
	h := &hookRun{t: t, gate: g, command: command}
	h.cmd = m.Command("hook", g.host, "--host-timeout", patience)
	input := strings.NewReplacer("SESSION", session, "ID", session+"-"+id, "COMMAND", command).Replace(g.input)
	if g.host == "codex" {
		input = strings.Replace(input, "{", fmt.Sprintf(`{"transcript_path":%q,`, rollout(t, session+"-"+id, command)), 1)
	}
	h.cmd.Stdin = strings.NewReader(input)
	h.cmd.Stdout, h.cmd.Stderr = &h.out, &h.errs
	require.NoError(t, h.cmd.Start())
	t.Cleanup(func() { _ = h.cmd.Process.Kill() }) // Kill fails if the hook has ended
	return h
}

// rollout writes Codex's log of a session, in which the model runs the command in the session's directory.
func rollout(t *testing.T, id, command string) string {
	file := filepath.Join(t.TempDir(), "rollout.jsonl")
	line := fmt.Sprintf(`{"type":"response_item","payload":{"type":"function_call","name":"exec_command","call_id":%q,"arguments":%q}}`, id, fmt.Sprintf(`{"cmd":%q}`, command))
	require.NoError(t, os.WriteFile(file, []byte(line+"\n"), 0o600))
	return file
}

// The method ends waits until the hook has ended. It requires the exit code 0 and the given stdout. The
// string stderr is the only line that the hook must have written to stderr, without the line's prefix, or ""
// for no line.
func (h *hookRun) ends(stdout, stderr string) {
	h.t.Helper()
	require.NoError(h.t, h.cmd.Wait(), "%s", &h.errs)
	assert.Equal(h.t, stdout+"\n", h.out.String())
	if stderr != "" {
		stderr = "nod hook " + h.gate.host + ": " + stderr + "\n"
	}
	assert.Equal(h.t, stderr, h.errs.String())
}

func (h *hookRun) isAllowed() {
	h.t.Helper()
	h.ends(strings.Replace(h.gate.allow, "COMMAND", h.command, 1), "")
}

func (h *hookRun) isDenied(reason, stderr string) {
	h.t.Helper()
	h.ends(strings.ReplaceAll(h.gate.deny, "REASON", reason), stderr)
}

// The table of gates has exactly the events at which a host in hook.Hosts waits.
func TestTheTableHoldsEveryEventOfEachHost(t *testing.T) {
	known := gates()
	for _, host := range hook.Hosts() {
		for _, event := range append(host.Setup.Events, host.Setup.Strict...) {
			require.Contains(t, known, host.Name+" "+event)
			delete(known, host.Name+" "+event)
		}
	}
	require.Empty(t, known)
}

// Each host gets the right output from its hook in four cases: a person allows the call by a lasting rule;
// the deadline passes before the answer, and the host repeats the call; the hook gets SIGTERM; nod restarts
// while the hook waits.
func TestEveryHostGetsTheRightHookOutput(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	allow := func(t *testing.T, args ...string) {
		_, stderr, code := m.Run(append([]string{"allow"}, args...)...)
		require.Zero(t, code, stderr)
	}
	session := func(name, of string) string { return strings.ReplaceAll(name, " ", "-") + "-" + of }
	const command = "make release"
	gates := usualGates()
	late := map[string]*hookRun{}
	for name, g := range gates {
		late[name] = startHook(m, t, g, session(name, "late"), "1", command, "24s") // all hooks start now, so that their waits of 12 s run at the same time
	}
	for name, g := range gates {
		if g.host == "openclaw" || g.host == "vscode" {
			continue // OpenClaw names no directory and no project, and VS Code's tools are unknown, so nod offers no rule for a command
		}
		t.Run("always "+name, func(t *testing.T) {
			s := session(name, "always")
			own := "make " + s // each subtest has a different command, because the rule applies in every session
			h := startHook(m, t, g, s, "1", own, "1h")
			id := m.Pending(s)
			_, shown, _ := m.Run("allow", id, "--always")
			_, rule, ok := strings.Cut(shown, "--rule '")
			require.True(t, ok, shown)
			rule, _, _ = strings.Cut(rule, "'")
			allow(t, id, "--always", "--yes", "--rule", rule)
			h.isAllowed()
			startHook(m, t, g, s, "2", own, "1h").isAllowed() // the rule allows the call without a person
		})
	}
	for name, g := range gates {
		t.Run("deadline, asked again, stopped "+name, func(t *testing.T) {
			s := session(name, "late")
			late[name].isDenied("No approver answered in time, so this call is denied for now. The request stays open: if it is approved later, make the same call again and it is allowed.", "no approver answered before the hook's deadline")
			allow(t, m.Pending(s))
			startHook(m, t, g, s, "2", command, "1h").isAllowed()

			h := startHook(m, t, g, s, "3", command, "1h") // nod asks again, because the late approval covers only one call
			id := m.Pending(s)
			require.NoError(t, h.cmd.Process.Signal(syscall.SIGTERM))
			h.isDenied("Not allowed, because nod could not get a decision: terminated signal received", "terminated signal received")
			stdout, _, _ := m.Run("show", id)
			assert.Contains(t, stdout, "Withdrawn")
		})
	}
	waiting, ids := map[string]*hookRun{}, map[string]string{}
	for name, g := range gates {
		waiting[name] = startHook(m, t, g, session(name, "waits"), "1", command, "1h")
		ids[name] = m.Pending(session(name, "waits"))
	}
	m.Kill()
	m.StartNod()
	for name, h := range waiting {
		allow(t, ids[name])
		h.isAllowed()
	}
}
