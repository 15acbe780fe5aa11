package acp

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// ownCall is a tool call in the words of an agent that nod knows, so that rules for the agent's own tools
// apply. The input is exactly the input that the agent runs.
type ownCall struct {
	tool    string
	action  schemas.ActionType
	details json.RawMessage // the input, with the directory in which the call runs as "cwd"
	reason  string          // the agent's own explanation
}

// drops tells which calls an agent drops after a denial, although their permission requests are open or
// still come.
type drops int

const (
	dropsNone  drops = iota
	dropsCalls       // the calls of the session that the agent has announced
	dropsTurn        // all calls until the end of the turn
)

// knownAgent describes an agent, by the name in its response to initialize. All agents without a
// description have the zero knownAgent.
type knownAgent struct {
	// own returns the call of a permission request. asked has the fields of the request's tool call, and
	// dir is the directory of the session, or "" if it is unknown. ok is false if nod cannot be sure
	// that the request is about exactly this call; nod then uses ACP's own words, for which no rule
	// exists. own is nil if nod does not know the agent's tools.
	own   func(c toolCall, asked map[string]json.RawMessage, dir string) (_ ownCall, ok bool)
	drops drops
}

func agentNamed(name string) knownAgent {
	switch name {
	case "OpenCode":
		return knownAgent{own: openCodeCall, drops: dropsCalls}
	case "codex-acp":
		return knownAgent{own: codexCall, drops: dropsTurn}
	case "qwen-code":
		return knownAgent{own: qwenCall}
	}
	return knownAgent{}
}

// openCodeTools are OpenCode's own tools that nod judges, each with the field of a permission request
// that must be the same as in the tool's input.
var openCodeTools = map[string]struct {
	kind  string
	field string
}{
	"bash": {"execute", "command"}, "webfetch": {"fetch", "url"}, "edit": {"edit", "filepath"}, "write": {"edit", "filepath"},
}

// openCodeCall reads a request of OpenCode. The request has a part of the input; the update before it
// has the whole input, with the session's directory as "cwd" unless the model wrote a field of that name.
// The name of the tool is the title with which OpenCode announced the call.
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

// codexFields are the fields in the input of a request of codex-acp that do not change what runs.
var codexFields = []string{"call_id", "approval_id", "turn_id", "started_at_ms", "command", "cwd", "reason", "proposed_execpolicy_amendment", "available_decisions", "parsed_cmd"}

// codexCall reads a request of codex-acp for a command, which names the shell and the directory. The
// directory is the one in which Codex runs the command.
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

// qwenTools are Qwen Code's own tools that nod judges. Tools of MCP servers have names with mcp__.
var qwenTools = map[string]string{"run_shell_command": "execute", "write_file": "edit", "edit": "edit", "web_fetch": "fetch"}

// qwenCall reads a request of Qwen Code, which names its tool and has the whole input. Qwen Code starts a
// shell for each command, in the session's directory or in the one that the input names.
func qwenCall(c toolCall, asked map[string]json.RawMessage, dir string) (own ownCall, ok bool) {
	tool, input := text(object(asked["_meta"])["toolName"]), asked["rawInput"]
	kind, known := qwenTools[tool]
	if !known || dir == "" || kind != c.kind || len(object(input)) == 0 {
		return own, false
	}
	details, err := agents.WithCwd(input, dir)
	return ownCall{tool: tool, action: actions[kind], details: details}, err == nil
}
