package acp

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// ownCall is a tool call of an agent that nod knows, with the agent's own name for the tool, so that
// rules about the agent's own tools apply. Its input is exactly the input that the agent runs.
type ownCall struct {
	tool    string
	action  schemas.ActionType
	details json.RawMessage // the input, with the directory in which the call runs as "cwd"
	reason  string          // the agent's reason for the call
}

// drops says which other calls an agent gives up after a denial of one of its calls. The agent does not
// withdraw their permission requests, and may even send more such requests.
type drops int

const (
	dropsNone  drops = iota
	dropsCalls       // the agent gives up all calls that it has announced in the session
	dropsTurn        // the agent gives up all calls until the end of the turn
)

// knownAgent describes an agent that nod recognizes by the name in its response to the ACP request
// initialize. It is the zero value for all other agents.
type knownAgent struct {
	// own returns the call of a permission request, with the agent's own name for the tool. c is what
	// the agent has reported about the call, asked contains the fields of the call in the request, and
	// dir is the session's directory or "". If ok is false, nod cannot be sure which call runs. nod then
	// names the tool by its kind in ACP, about which there are no rules. If nod does not know the
	// agent's tools, own is nil.
	own   func(c toolCall, asked map[string]json.RawMessage, dir string) (_ ownCall, ok bool)
	drops drops
	// forgets is true if the agent takes an "always" for an allow of one call only.
	forgets bool
}

func agentNamed(name string) knownAgent {
	switch name {
	case "OpenCode":
		return knownAgent{own: openCodeCall, drops: dropsCalls}
	case "codex-acp":
		return knownAgent{own: codexCall, drops: dropsTurn}
	case "qwen-code":
		return knownAgent{own: qwenCall}
	case "cline":
		return knownAgent{own: clineCall, forgets: true}
	}
	return knownAgent{}
}

// openCodeTools are the tools of OpenCode that nod recognizes. kind is the tool's kind in ACP. field is
// the field in which a permission request and the tool's input must agree.
var openCodeTools = map[string]struct {
	kind  string
	field string
}{
	"bash": {"execute", "command"}, "webfetch": {"fetch", "url"}, "edit": {"edit", "filepath"}, "write": {"edit", "filepath"},
}

// openCodeCall reads a request of OpenCode. The request contains only a part of the tool's input. The
// preceding update contains the whole input, and the session's directory as "cwd", unless the model
// wrote a field "cwd" itself. The name of the tool is the title with which OpenCode announced the call.
func openCodeCall(c toolCall, asked map[string]json.RawMessage, dir string) (own ownCall, ok bool) {
	tool, known := openCodeTools[c.announced]
	input, part := object(c.input), object(asked["rawInput"])
	if !known || dir == "" || text(asked["kind"]) != tool.kind || input == nil {
		return own, false
	}
	want, said := text(part[tool.field]), text(input[tool.field])
	if tool.field == "filepath" {
		if said = text(input["filePath"]); said != "" && !filepath.IsAbs(said) {
			said = filepath.Join(dir, said)
		}
	}
	if said == "" || want != said {
		return own, false
	}
	details, err := agents.WithoutCwd(c.input, json.RawMessage("{}"), dir)
	if err == nil {
		details, err = agents.WithCwd(details, dir)
	}
	return ownCall{tool: c.announced, action: actions[tool.kind], details: details}, err == nil
}

// codexFields are the fields in a request of codex-acp that nod knows. No other field may be set,
// because it could change what runs.
var codexFields = []string{"call_id", "approval_id", "turn_id", "started_at_ms", "command", "cwd", "reason", "proposed_execpolicy_amendment", "available_decisions", "parsed_cmd"}

// codexCall reads a request of codex-acp to run a command. The request names the shell, and the
// directory in which Codex runs the command.
func codexCall(_ toolCall, asked map[string]json.RawMessage, _ string) (own ownCall, ok bool) {
	input := object(asked["rawInput"])
	for name, value := range input {
		if !slices.Contains(codexFields, name) && string(value) != "null" {
			return own, false
		}
	}
	var argv []string
	cwd := text(input["cwd"])
	if json.Unmarshal(input["command"], &argv) != nil || len(argv) != 3 || !filepath.IsAbs(cwd) {
		return own, false
	}
	shells := []string{"/bin/bash", "/usr/bin/bash", "/bin/zsh", "/usr/bin/zsh"}
	if !slices.Contains(shells, argv[0]) || argv[1] != "-lc" && argv[1] != "-c" {
		return own, false
	}
	details, err := schemas.Encode(map[string]string{"command": argv[2], "cwd": cwd})
	return ownCall{tool: "Bash", action: schemas.ActionCommand, details: details, reason: text(input["reason"])}, err == nil
}

// qwenTools are the tools of Qwen Code that nod recognizes, with their kinds in ACP. A tool of an MCP
// server cannot have one of these names, because its name contains mcp__.
var qwenTools = map[string]string{"run_shell_command": "execute", "write_file": "edit", "edit": "edit", "web_fetch": "fetch"}

// qwenCall reads a request of Qwen Code. The request contains the tool's name and its whole input. Qwen
// Code starts a new shell for each command, in the directory that the input names or else in the
// session's directory.
func qwenCall(c toolCall, asked map[string]json.RawMessage, dir string) (own ownCall, ok bool) {
	tool, input := text(object(asked["_meta"])["toolName"]), asked["rawInput"]
	kind, known := qwenTools[tool]
	if !known || dir == "" || kind != c.kind || len(object(input)) == 0 {
		return own, false
	}
	details, err := agents.WithCwd(input, dir)
	return ownCall{tool: tool, action: actions[kind], details: details}, err == nil
}

// clineCommands is the beginning of the title of each call of Cline's tool for commands. No title of an
// MCP server's tool begins like this, because its name contains "__".
const clineCommands = "run_commands: "

// clineCall reads a request of Cline to run one command. Cline runs each command in a new bash, in the
// session's directory. If a call has several commands, clineCall returns false, because Cline runs them
// at the same time instead of one after another.
func clineCall(_ toolCall, asked map[string]json.RawMessage, dir string) (own ownCall, ok bool) {
	var commands []string
	input := object(asked["rawInput"])
	if json.Unmarshal(input["commands"], &commands) != nil || len(commands) != 1 || commands[0] == "" || len(input) != 1 {
		return own, false
	}
	if dir == "" || runtime.GOOS == "windows" || text(asked["kind"]) != "execute" || !strings.HasPrefix(text(asked["title"]), clineCommands) {
		return own, false
	}
	details, err := schemas.Encode(map[string]string{"command": commands[0], "cwd": dir})
	return ownCall{tool: "Bash", action: schemas.ActionCommand, details: details}, err == nil
}
