package hook

import (
	"time"

	"github.com/nodbus/nod/schemas"
)

// Droid describes Factory's droid. droid runs its hook before every call of a tool, in all its modes. If the
// hook allows a call, droid runs the call without asking its user. If a hook fails with another code than 2,
// droid runs the call as if there were no hook.
func Droid() Host {
	return Host{
		Name:         "droid",
		Agent:        "droid",
		Dialect:      droid{},
		ChangesInput: true,
		Program:      "droid",
		Tested:       []string{"0.215.0"},
		Setup: Setup{
			HomeEnv: "FACTORY_HOME_OVERRIDE", Dir: ".factory", File: "hooks.json", Bare: true, Comments: true, Others: []string{"hooks/hooks.json", "settings.json"},
			Events: []string{preToolUse}, Blocks: []string{preToolUse}, Signals: []string{sessionEnd}, Matcher: "*", Off: "hooksDisabled",
			Timeout: 24 * time.Hour, Unit: time.Second,
			Note: "every call of droid is refused while nod does not run; versions of droid before 0.136 do not read hooks.json",
		},
	}
}

type droid struct{}

// droidTools are droid's own tools that rules cover. name is the tool's name in rules. plain lists the
// arguments that nod understands.
var droidTools = map[string]struct {
	name   string
	action schemas.ActionType
	plain  []string
}{
	"Execute": {"Bash", schemas.ActionCommand, []string{"command", "timeout", "fireAndForget", "riskLevel", "riskLevelReason", "summary"}},
	"Read":    {"Read", schemas.ActionFileRead, []string{"file_path", "offset", "limit", "image_quality"}},
	"Grep": {"Grep", schemas.ActionFileRead, []string{
		"pattern", "path", "output_mode", "type", "case_insensitive", "line_numbers", "context", "context_before", "context_after", "head_limit", "multiline", "fixed_string",
	}},
	"Create": {"Write", schemas.ActionFileWrite, []string{"file_path", "content"}},
	"Edit":   {"Edit", schemas.ActionFileWrite, []string{"file_path", "old_str", "new_str", "change_all"}},
}

// Read parses an input. Every command starts in the directory of the session. Read treats a call of another
// tool, or with an argument that nod does not know, as a call of an unknown tool, so that no rule allows it.
func (droid) Read(input []byte) (Call, error) {
	call, _, err := readProgram(Droid(), input, []string{"AskUser", "ExitSpecMode"})
	if err != nil || call.Signal || call.Ignore != "" {
		return call, err
	}
	call.Action = schemas.ActionMCPTool
	if tool, known := droidTools[call.ToolName]; known && call.hasOnly(tool.plain) {
		call.ToolName, call.Action = tool.name, tool.action
	}
	return call, nil
}

// Reply refuses the call if the effect is AskHost, because droid exec runs a call after the reply "ask".
func (droid) Reply(c Call, v Verdict) ([]byte, int) { return pi{}.Reply(c, v) }
