package hook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nodbus/nod/schemas"
)

// VSCode describes VS Code's own agent, which VS Code calls Local. nod follows the documents about its
// hooks, and was not tested with VS Code itself. If a hook fails with a code other than 2, VS Code runs
// the call as if there were no hook. Copilot CLI reads the same folder of hooks.
func VSCode() Host {
	return Host{
		Name:    "vscode",
		Agent:   "VS Code",
		Dialect: vsCode{},
		Program: "code",
		Traces:  []string{".vscode"},
		Setup: Setup{
			Dir: ".copilot", ProjectDir: ".github", File: "hooks/nod-vscode.json", Flat: true,
			Events: []string{preToolUse}, Blocks: []string{preToolUse},
			Timeout: 24 * time.Hour, Unit: time.Second,
			Note: "nod was not run with VS Code: let its agent try a harmless tool first. Every call of its Local agent asks you and is refused while nod does not run. " +
				"Copilot CLI reads the same folder, and then asks twice",
		},
	}
}

type vsCode struct{}

// Read parses an input. The documents of VS Code write the names of the common fields in two ways. They
// name neither the tools nor their inputs, and a terminal keeps its directory between commands. The tool
// of every call therefore counts as unknown, so that no rule allows the call.
func (vsCode) Read(input []byte) (Call, error) {
	var in struct {
		Event      string          `json:"hook_event_name"`
		OldEvent   string          `json:"hookEventName"`
		Session    string          `json:"session_id"`
		OldSession string          `json:"sessionId"`
		Cwd        string          `json:"cwd"`
		ToolName   string          `json:"tool_name"`
		ToolInput  json.RawMessage `json:"tool_input"`
		ToolUseID  string          `json:"tool_use_id"`
	}
	err := json.Unmarshal(input, &in)
	call := Call{Event: cmp.Or(in.Event, in.OldEvent)}
	if in.Event != "" && in.OldEvent != "" && in.Event != in.OldEvent {
		call.Event, err = "", errors.New("the hook's input names two events")
	}
	switch {
	case err != nil:
		return call, inputError(err)
	case call.Event == "":
		return call, errNoEvent
	case call.Event != preToolUse:
		call.Ignore = fmt.Sprintf("hook event %q is not one that nod answers", call.Event)
		return call, nil
	}
	call.nameTool(in.ToolName, []string{"vscode_askQuestions"})
	call.SessionID, call.ToolCallID, call.Input, call.Project = cmp.Or(in.Session, in.OldSession), in.ToolUseID, in.ToolInput, in.Cwd
	call.Action = schemas.ActionMCPTool
	return call, nil
}

// Reply refuses a call with an edited input. If such an input does not match the tool's schema, VS Code
// ignores it and runs the agent's own.
func (vsCode) Reply(c Call, v Verdict) ([]byte, int) { return pi{}.Reply(c, v.withoutEdits("VS Code")) }
