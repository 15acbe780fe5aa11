package hook

import (
	"time"

	"github.com/nodbus/nod/schemas"
)

// Codex describes OpenAI's Codex CLI. `codex exec` never asks its user, and so never
// calls the PermissionRequest hook: nod decides its calls only in a strict installation,
// which adds PreToolUse.
func Codex() Host {
	return Host{
		Name:    "codex",
		Agent:   "Codex",
		Dialect: codex{},
		Program: "codex",
		Tested:  []string{"0.169.0"},
		Setup: Setup{
			DirEnv: "CODEX_HOME", Dir: ".codex", File: "hooks.json",
			Events: []string{permissionRequest}, Strict: []string{preToolUse}, Blocks: []string{preToolUse},
			Signals: []string{stopped}, Newer: []string{interrupted, sessionEnd},
			Matcher: "*",
			Timeout: 24 * time.Hour, Unit: time.Second,
			Note: "Codex silently skips hooks that its user has not trusted: start codex and trust nod's hooks with /hooks",
		},
	}
}

type codex struct{}

// interrupted is the event of a turn that the user has stopped. Codex kills the turn's
// hooks before it sends the event.
const interrupted = "Interrupt"

func (codex) Read(input []byte) (Call, error) {
	call, err := readProgram(Codex(), input, []string{"request_user_input"})
	if call.Project = call.Cwd; err == nil && !call.Signal && call.Action == schemas.ActionCommand {
		call.Cwd, _ = call.commandDir() // if unknown, rules allow nothing that depends on it
	}
	return call, err
}

// Reply sends only fields that Codex supports. If a reply has another field, Codex
// ignores the whole decision and runs the tool.
func (codex) Reply(c Call, v Verdict) ([]byte, int) {
	if v.Effect == Leave {
		return []byte("{}"), 0
	}
	v = v.withoutEdits("Codex")
	switch c.Event {
	case permissionRequest:
		if v.Effect == AskHost { // without a decision, Codex shows its own prompt
			return []byte("{}"), 0
		}
		return jsonReply(map[string]any{"hookSpecificOutput": claudePermission(Verdict{Effect: v.Effect, Reason: v.Reason})})
	case preToolUse:
		if v.Effect == Allow { // an empty reply lets the call run; Codex does not support "allow" at this event
			return []byte("{}"), 0
		}
		// Codex does not support "ask" at this event either, so AskHost refuses.
		return jsonReply(map[string]any{"hookSpecificOutput": claudeSpecific{Event: preToolUse, Verdict: "deny", Reason: v.Reason}})
	}
	return claudeBlock(v.Reason)
}
