package hook

import (
	"time"

	"github.com/nodbus/nod/schemas"
)

// Qwen describes Qwen Code. Qwen Code runs its hook before every call, in all its modes. If the hook allows
// a call, Qwen Code runs the call without asking its user.
func Qwen() Host {
	return Host{
		Name:    "qwen-code",
		Agent:   "Qwen Code",
		Dialect: qwen{},
		Program: "qwen",
		Tested:  []string{"0.24.4"},
		Setup: Setup{
			Dir: ".qwen", File: "settings.json", Comments: true,
			Events: []string{preToolUse}, Blocks: []string{preToolUse}, Signals: []string{sessionEnd}, Newer: []string{userPromptSubmit, postToolUse},
			Notices: []string{userPromptSubmit, postToolUse}, Matcher: "*", Off: "disableAllHooks",
			Timeout: 24 * time.Hour, Unit: time.Millisecond, // Qwen Code takes a number of 1000 or more for milliseconds
			Note: "every call of Qwen Code is refused while nod does not run; its flags --safe-mode and --bare run no hook at all",
		},
	}
}

type qwen struct{}

// qwenTools are the tools of Qwen Code that rules cover. The name of an MCP server's tool contains
// mcp__. nod does not know tools with other names.
var qwenTools = map[string]bool{
	"run_shell_command": true, "read_file": true, "list_directory": true, "glob": true, "grep_search": true,
	"write_file": true, "edit": true, "web_fetch": true, "ask_user_question": true, "exit_plan_mode": true,
}

func (qwen) Read(input []byte) (Call, error) {
	call, _, err := readProgram(Qwen(), input, []string{"ask_user_question", "exit_plan_mode"})
	if err == nil && !call.Signal && !qwenTools[call.ToolName] {
		call.Action = schemas.ActionMCPTool
	}
	return call, err
}

// Reply refuses the call if the effect is AskHost, because Qwen Code without a terminal has no user to
// ask. It also refuses a call with an edited input, because Qwen Code ignores a changed input.
func (qwen) Reply(c Call, v Verdict) ([]byte, int) {
	v = v.withoutEdits("Qwen Code")
	switch {
	case v.Effect == Leave:
		return claudeNotices(c, v.Notices)
	case c.Event != preToolUse:
		return claudeBlock(v.Reason)
	case v.Effect != Allow:
		v.Effect = Deny
	}
	return jsonReply(map[string]any{"hookSpecificOutput": claudePreTool(v)})
}
