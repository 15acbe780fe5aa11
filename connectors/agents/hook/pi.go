package hook

import (
	_ "embed"
	"encoding/json"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// piExtension is the part of nod's extension for pi that differs from the plugin for OpenClaw.
//
//go:embed pi.ts
var piExtension string

// Pi describes the coding agent pi. pi has no settings for hooks, but loads extensions from a directory.
// nod's extension runs the hook before every call. It contains settings for hooks in the format of other
// hosts.
func Pi() Host {
	return Host{
		Name:         "pi",
		Agent:        "pi",
		Dialect:      pi{},
		ChangesInput: true,
		Program:      "pi",
		Tested:       []string{"0.73.1"},
		Setup: Setup{
			DirEnv: "PI_CODING_AGENT_DIR", Dir: ".pi/agent", ProjectDir: ".pi", File: "extensions/nod.ts", Script: pluginScript("extension for pi", "pi", piExtension),
			Events: []string{preToolUse}, Blocks: []string{preToolUse}, Signals: []string{sessionEnd}, Flat: true,
			Timeout: 24 * time.Hour, Unit: time.Second,
			Note: "every call of pi is refused while nod does not run; pi --no-extensions asks nobody",
		},
	}
}

type pi struct{}

// piActions are the tools of pi that rules cover. All other tools belong to extensions.
var piActions = map[string]schemas.ActionType{
	"bash": schemas.ActionCommand, "read": schemas.ActionFileRead, "grep": schemas.ActionFileRead, "write": schemas.ActionFileWrite, "edit": schemas.ActionFileWrite,
}

// Read parses an input. pi changes some paths before it uses them: it removes an @ at the beginning,
// replaces ~ by the home directory and unusual spaces by plain ones, and tries other spellings of names
// with an apostrophe or with characters outside ASCII. The tool of a call with such a path counts as
// unknown, so that no rule allows the call.
func (pi) Read(input []byte) (Call, error) {
	call, _, err := readProgram(Pi(), input, nil)
	if err != nil || call.Signal || call.Ignore != "" {
		return call, err
	}
	call.Action = piActions[call.ToolName]
	if call.Action == "" || call.Action != schemas.ActionCommand && !plainPath(call.Input) {
		call.Action = schemas.ActionMCPTool
	}
	return call, nil
}

// plainPath reports whether pi does not change the path in an input.
func plainPath(input json.RawMessage) bool {
	var in struct {
		Path *string `json:"path"`
	}
	if json.Unmarshal(input, &in) != nil {
		return false
	}
	if in.Path == nil {
		return true
	}
	p := *in.Path
	return !strings.HasPrefix(p, "@") && !strings.HasPrefix(p, "~") && !strings.ContainsFunc(p, func(r rune) bool { return r >= 0x80 || r == '\'' })
}

// Reply refuses the call if the effect is AskHost, because pi without a terminal has no user to ask.
func (pi) Reply(c Call, v Verdict) ([]byte, int) {
	switch {
	case v.Effect == Leave:
		return []byte("{}"), 0
	case c.Event != preToolUse:
		return claudeBlock(v.Reason)
	case v.Effect != Allow:
		v.Effect = Deny
	}
	return jsonReply(map[string]any{"hookSpecificOutput": claudePreTool(v.withReason())})
}
