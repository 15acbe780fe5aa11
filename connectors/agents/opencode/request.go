package opencode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

const alwaysOption = "opencode_always"

// The connector offers an option for OpenCode's answer "always" only if a prompt can show the option's
// whole name. These are the largest numbers of characters of the tool and of the patterns in this name.
const (
	maxAlwaysTool     = 40
	maxAlwaysPatterns = 100
)

// actions contains the action type of each of OpenCode's own tools. Any other tool counts as a tool of
// an MCP server, so that no rule about OpenCode's own tools covers it.
var actions = map[string]schemas.ActionType{
	"bash": schemas.ActionCommand,
	"edit": schemas.ActionFileWrite, "write": schemas.ActionFileWrite, "multiedit": schemas.ActionFileWrite,
	"patch": schemas.ActionFileWrite, "apply_patch": schemas.ActionFileWrite,
	"read": schemas.ActionFileRead, "glob": schemas.ActionFileRead, "grep": schemas.ActionFileRead, "list": schemas.ActionFileRead,
	"webfetch": schemas.ActionNetwork, "websearch": schemas.ActionNetwork, "codesearch": schemas.ActionNetwork,
	"task": schemas.ActionOther, "skill": schemas.ActionOther, "lsp": schemas.ActionOther, "question": schemas.ActionOther,
	"todowrite": schemas.ActionOther, "todoread": schemas.ActionOther,
}

// request returns the request for p. Its ids are always the same for the same p, so that `nod opencode`
// waits for the same request again after a crash.
func (f *follower) request(p permission, c call, own, root session) (*schemas.Request, error) {
	r := &schemas.Request{
		Type: schemas.TypeRequest, Kind: schemas.KindToolCall,
		SessionID: agents.ID(root.ID), PendingID: agents.ID(p.ID), ToolCallID: p.ID,
		AgentName: f.opts.Agent, Host: f.opts.Host, User: f.opts.User,
		Project: own.Directory, SessionLabel: agents.Cut(root.Title, agents.MaxLabel),
		Options: schemas.DefaultOptions(), HostAsks: true, Rejoin: true, CreatedAt: time.Now().UTC(),
	}
	if own.ID != root.ID {
		r.TaskID = own.ID
	}
	if name, ok := alwaysName(p); ok {
		r.Options = append(r.Options, schemas.Option{OptionID: alwaysOption, Name: name, Kind: schemas.AllowAlways})
	}
	// A doom_loop permission is about a repetition of calls, which the input of one call does not describe.
	details, ok := withCwd(c.Input, own.Directory)
	if ok && c.Tool != "" && p.Name != "doom_loop" {
		r.ToolName, r.ActionDetails = c.Tool, details
		r.ActionType = actionOf(c.Tool, p.Name)
		r.Title = title(p, r.ActionType)
		return r, nil
	}
	// If the connector does not know the call's input, the request contains OpenCode's own description
	// of the permission. No rule matches this description, so nod asks a person.
	r.ToolName, r.ActionType, r.Title = p.Name, schemas.ActionOther, title(p, schemas.ActionOther)
	shown := map[string]any{"permission": p.Name, "patterns": p.Patterns, "directory of the session": own.Directory}
	if len(p.Metadata) > 0 {
		shown["metadata"] = p.Metadata
	}
	var err error
	if r.ActionDetails, err = schemas.Encode(shown); err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return r, nil
}

// actionOf returns the action type of a tool for which OpenCode asks the given permission. A tool of an MCP
// server or a plugin may have the name of one of OpenCode's own tools, but it needs another permission. For
// such a tool, actionOf returns ActionMCPTool, so that no rule about OpenCode's own tool covers the call.
func actionOf(tool, permission string) schemas.ActionType {
	a, known := actions[tool]
	own := tool
	if a == schemas.ActionFileWrite {
		own = "edit"
	}
	if !known || permission != own && permission != "external_directory" {
		return schemas.ActionMCPTool
	}
	return a
}

func title(p permission, a schemas.ActionType) string {
	switch {
	case p.Name == "external_directory":
		return "Access Outside the Project"
	case p.Name == "doom_loop":
		return "The Same Call Again and Again"
	case a == schemas.ActionCommand:
		return "Command Execution Approval"
	case a == schemas.ActionFileWrite:
		return "File Write Approval"
	case a == schemas.ActionFileRead:
		return "File Read Approval"
	case a == schemas.ActionNetwork:
		return "Network Access Approval"
	case a == schemas.ActionMCPTool:
		return "MCP Tool Approval"
	}
	return "Tool Use Approval"
}

// alwaysName returns the name of the option for OpenCode's answer "always". ok is false if p does not
// offer "always", or if the name is unprintable or too long for a prompt.
func alwaysName(p permission) (name string, ok bool) {
	covers := strings.Join(p.Always, ", ")
	odd := strings.ContainsFunc(covers, func(r rune) bool { return !unicode.IsPrint(r) })
	if covers == "" || odd || !utf8.ValidString(covers) || utf8.RuneCountInString(covers) > maxAlwaysPatterns || utf8.RuneCountInString(p.Name) > maxAlwaysTool {
		return "", false
	}
	return fmt.Sprintf("Always allow %s: %s (OpenCode remembers it until it is closed; nod cannot revoke it)", p.Name, covers), true
}

// withCwd adds a last field "cwd" with the session's directory to the input of a tool. It keeps all
// other bytes. ok is false if the input is not an object, or has a field "cwd" already.
func withCwd(input json.RawMessage, cwd string) (json.RawMessage, bool) {
	input = bytes.TrimSpace(input)
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil || fields == nil || fields["cwd"] != nil {
		return nil, false
	}
	if cwd == "" {
		return input, true
	}
	dir, err := schemas.Encode(cwd)
	if err != nil {
		return nil, false
	}
	out := bytes.Clone(input[:len(input)-1])
	if len(fields) > 0 {
		out = append(out, ',')
	}
	return append(append(append(out, `"cwd":`...), dir...), '}'), true
}
