package hook

import "time"

// Codex is OpenAI's Codex CLI. It never asks its user where it was told not to
// (`codex exec`): there only its PreToolUse gates a call, which a strict
// installation adds.
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
			Note: "Codex runs no hook that its user has not trusted, and says nothing: start codex and trust nod's with /hooks",
		},
	}
}

type codex struct{}

// interrupted is the event of a turn that its user has stopped. Codex kills the hooks
// of that turn first.
const interrupted = "Interrupt"

func (codex) Read(input []byte) (Call, error) {
	return readProgram(Codex(), input, []string{"request_user_input"})
}

// Reply never says more than Codex reads: one field that it does not support
// voids the whole decision, and the tool runs.
func (codex) Reply(c Call, v Verdict) ([]byte, int) {
	if v.Effect == Leave {
		return []byte("{}"), 0
	}
	v = v.withoutEdits("Codex")
	switch c.Event {
	case permissionRequest:
		if v.Effect == AskHost { // no decision: Codex's own prompt comes
			return []byte("{}"), 0
		}
		return jsonReply(map[string]any{"hookSpecificOutput": claudePermission(Verdict{Effect: v.Effect, Reason: v.Reason})})
	case preToolUse:
		if v.Effect == Allow { // Codex has no word for it here, and goes on
			return []byte("{}"), 0
		}
		// Nor has it one for asking, so that AskHost refuses.
		return jsonReply(map[string]any{"hookSpecificOutput": claudeSpecific{Event: preToolUse, Verdict: "deny", Reason: v.Reason}})
	}
	return claudeBlock(v.Reason)
}
