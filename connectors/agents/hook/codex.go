package hook

import (
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// Codex describes OpenAI's Codex CLI. `codex exec` never asks its user, and therefore never runs the
// hook PermissionRequest. Only a strict installation, which adds PreToolUse, lets nod decide the calls
// of `codex exec`.
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
			Signals: []string{stopped}, Newer: []string{interrupted, sessionEnd, userPromptSubmit},
			Turns: []string{stopped}, TurnSince: "0.169.0",
			Notices: []string{userPromptSubmit, preToolUse},
			Matcher: "*",
			Timeout: 24 * time.Hour, Unit: time.Second,
			Note: "Codex silently skips hooks that its user has not trusted: start codex and trust nod's hooks with /hooks",
		},
	}
}

type codex struct{}

// interrupted is the event after the user has stopped a turn. Codex kills the hooks of the turn before
// this event.
const interrupted = "Interrupt"

func (codex) Read(input []byte) (Call, error) {
	call, in, err := readProgram(Codex(), input, []string{"request_user_input"})
	if err == nil && call.Event == stopped {
		call.TurnOver = func() *agents.Turn {
			if !codexByUser(in.Transcript, in.TurnID) {
				return nil
			}
			return &agents.Turn{Message: in.LastMessage}
		}
	}
	if call.Project = call.Cwd; err == nil && !call.Signal && call.Action == schemas.ActionCommand {
		call.Cwd = call.commandDir() // if the directory is unknown, allow rules that depend on it do not apply
	}
	return call, err
}

// Reply sends only fields that Codex supports. If a reply had any other field, Codex would ignore the
// whole decision and run the tool.
func (codex) Reply(c Call, v Verdict) ([]byte, int) {
	if v.Effect == Leave {
		return claudeNotices(c, v.Notices)
	}
	v = v.withoutEdits("Codex")
	switch c.Event {
	case stopped:
		if v.Effect != Prompt {
			return []byte("{}"), 0
		}
		return jsonReply(nextPrompt(v))
	case permissionRequest:
		if v.Effect == AskHost { // without a decision, Codex shows its own prompt
			return []byte("{}"), 0
		}
		return jsonReply(map[string]any{"hookSpecificOutput": claudePermission(Verdict{Effect: v.Effect, Reason: v.Reason})})
	case preToolUse:
		if v.Effect == Allow { // an empty reply lets the call run, because Codex does not support "allow" at this event
			return codexContext(v.Notices)
		}
		// Codex does not support the reply "ask" at PreToolUse, so that AskHost becomes a refusal.
		return jsonReply(map[string]any{"hookSpecificOutput": claudeSpecific{Event: preToolUse, Verdict: "deny", Reason: v.Reason}})
	}
	return claudeBlock(v.Reason)
}

// codexContext returns a reply at PreToolUse that lets the call run and gives the model the notices.
func codexContext(notices []string) ([]byte, int) {
	if len(notices) == 0 {
		return []byte("{}"), 0
	}
	return jsonReply(map[string]any{"hookSpecificOutput": map[string]string{"hookEventName": preToolUse, "additionalContext": forModel(notices)}})
}
