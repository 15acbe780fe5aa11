package hook

import (
	"encoding/json"
	"time"

	"github.com/nodbus/nod/schemas"
)

// The hook events of Copilot CLI that nod handles. nod withdraws no request at userPromptSubmitted,
// because a sub-agent of the preceding prompt may still wait for its request.
const (
	copilotRequest = "permissionRequest"
	copilotPrompt  = "userPromptSubmitted"
	copilotEnd     = "sessionEnd"
)

// Copilot describes GitHub's Copilot CLI. Before Copilot CLI applies its own rules, it runs its
// permission hook for every call except file reads. It reads every file in its hooks directory, so that
// nod's hooks have a file of their own.
func Copilot() Host {
	return Host{
		Name:    "copilot",
		Agent:   "Copilot CLI",
		Dialect: copilot{},
		Program: "copilot",
		Tested:  []string{"1.0.102"},
		Setup: Setup{
			DirEnv: "COPILOT_HOME", Dir: ".copilot", ProjectDir: ".github", File: "hooks/nod.json",
			Events: []string{copilotRequest}, Blocks: []string{copilotRequest}, Signals: []string{copilotPrompt, copilotEnd}, Notices: []string{copilotPrompt}, Off: "disableAllHooks",
			Flat: true, CommandField: "bash", TimeoutField: "timeoutSec", Version: 1,
			Timeout: 24 * time.Hour, Unit: time.Second,
			Note: "Copilot CLI asks no hook about reading files; every other call is refused while nod does not run",
		},
	}
}

type copilot struct{}

// Read parses an input, which does not name its event. An input is a signal (see Call.Signal) if it has a
// reason or a prompt, but not both, and no field of a tool call. Any other input is a permission request.
func (copilot) Read(input []byte) (Call, error) {
	call := Call{Event: copilotRequest}
	var in struct {
		SessionID string          `json:"sessionId"`
		Cwd       string          `json:"cwd"`
		ToolName  string          `json:"toolName"`
		ToolInput json.RawMessage `json:"toolInput"`
		ToolArgs  json.RawMessage `json:"toolArgs"`
		HookName  string          `json:"hookName"`
		Reason    *string         `json:"reason"`
		Prompt    *string         `json:"prompt"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return call, inputError(err)
	}
	if in.ToolName == "" && in.HookName == "" && in.ToolInput == nil && in.ToolArgs == nil && (in.Reason != nil) != (in.Prompt != nil) {
		call.Signal, call.SessionID, call.Event = true, in.SessionID, copilotPrompt
		if in.Reason != nil {
			call.Event, call.HostResolved = copilotEnd, schemas.HostResolved{WholeSession: true, AgentName: Copilot().Agent, Reason: "the session has ended"}
		}
		return call, nil
	}
	if in.ToolInput == nil { // at some events, toolArgs contains the tool's input
		in.ToolInput = in.ToolArgs
	}
	var text string // some models write the arguments as a string with a JSON object in it
	if json.Unmarshal(in.ToolInput, &text) == nil {
		in.ToolInput = json.RawMessage(text)
	}
	call.SessionID, call.Cwd, call.Input = in.SessionID, in.Cwd, in.ToolInput
	call.nameTool(in.ToolName, []string{"ask_user", "exit_plan_mode"})
	return call, nil
}

// Reply refuses the call if the effect is AskHost. Without a decision, Copilot CLI would apply its own
// rules, which run every call if --allow-all-tools is set. Exit code 2 is a refusal for Copilot CLI.
func (copilot) Reply(c Call, v Verdict) ([]byte, int) {
	v = v.withoutEdits("Copilot CLI")
	refusal := map[string]string{"behavior": "deny", "message": v.Reason}
	switch {
	case v.Effect == Leave && len(v.Notices) > 0:
		return jsonReply(map[string]string{"additionalContext": forModel(v.Notices)})
	case v.Effect == Leave:
		return []byte("{}"), 0
	case c.Event == "":
		return blockReply(refusal)
	case v.Effect == Allow:
		return jsonReply(map[string]string{"behavior": "allow"})
	}
	return jsonReply(refusal)
}
