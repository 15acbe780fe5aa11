package hook

import (
	_ "embed"
	"time"

	"github.com/nodbus/nod/schemas"
)

// openClawPlugin is the part of nod's plugin for OpenClaw that differs from the extension for pi.
//
//go:embed openclaw.ts
var openClawPlugin string

// OpenClaw describes OpenClaw. Its hooks are functions of plugins. nod has a plugin that runs nod's hook
// before every call. OpenClaw loads this plugin only if OpenClaw's settings name its file; see LoadPlugin.
func OpenClaw() Host {
	return Host{
		Name:         "openclaw",
		Agent:        "OpenClaw",
		Dialect:      openClaw{},
		ChangesInput: true,
		Program:      "openclaw",
		Tested:       []string{"2026.9.6"},
		Setup: Setup{
			DirEnv: "OPENCLAW_STATE_DIR", Dir: ".openclaw", File: "nod.ts",
			Script: pluginScript("plugin for OpenClaw", "openclaw", openClawPlugin),
			Events: []string{preToolUse}, Blocks: []string{preToolUse}, Signals: []string{sessionEnd}, Flat: true,
			Timeout: 24 * time.Hour, Unit: time.Second,
			Note: "every call of OpenClaw's own tools is refused while nod does not run",
		},
	}
}

type openClaw struct{}

// openClawActions are the tools of OpenClaw that rules cover. plain lists those arguments of a tool that
// nod understands. None of them moves the call to another directory, machine or user.
var openClawActions = map[string]struct {
	action schemas.ActionType
	plain  []string
}{
	"exec": {schemas.ActionCommand, []string{"command", "title", "yieldMs", "background", "timeoutSeconds", "pty"}},
	"read": {schemas.ActionFileRead, []string{"path", "offset", "limit"}}, "write": {schemas.ActionFileWrite, []string{"path", "content"}},
}

// Read parses an input. The input names no directory, so that allow rules about paths of the project do
// not apply. If a call has an argument that nod does not know, such as the machine on which a command
// runs, its tool counts as unknown, so that no rule allows the call.
func (openClaw) Read(input []byte) (Call, error) {
	call, _, err := readProgram(OpenClaw(), input, nil)
	if err != nil || call.Signal || call.Ignore != "" {
		return call, err
	}
	tool := openClawActions[call.ToolName]
	call.Action = tool.action
	if call.Action == "" || !call.hasOnly(tool.plain) || call.Action != schemas.ActionCommand && !plainPath(call.Input) {
		call.Action = schemas.ActionMCPTool
	}
	if call.Action == schemas.ActionCommand {
		call.ToolName = "Bash" // no rule is about a tool named exec, because in other agents such a tool runs no shell
	}
	return call, nil
}

// Reply refuses the call if the effect is AskHost, because a plugin cannot make OpenClaw ask its user as
// it would without the plugin.
func (openClaw) Reply(c Call, v Verdict) ([]byte, int) { return pi{}.Reply(c, v) }
