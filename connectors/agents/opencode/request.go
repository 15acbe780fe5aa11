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

// alwaysOption is OpenCode's own "always".
const alwaysOption = "opencode_always"

// maxRuleName bounds what is offered: a rule that cannot be shown whole is not.
const maxRuleName = 200

// actions are the effects of OpenCode's own tools. Any other tool is a server's,
// whatever it is called, so that no rule takes it for one of these.
var actions = map[string]schemas.ActionType{
	"bash": schemas.ActionCommand,
	"edit": schemas.ActionFileWrite, "write": schemas.ActionFileWrite, "multiedit": schemas.ActionFileWrite,
	"patch": schemas.ActionFileWrite, "apply_patch": schemas.ActionFileWrite,
	"read": schemas.ActionFileRead, "glob": schemas.ActionFileRead, "grep": schemas.ActionFileRead, "list": schemas.ActionFileRead,
	"webfetch": schemas.ActionNetwork, "websearch": schemas.ActionNetwork, "codesearch": schemas.ActionNetwork,
	"task": schemas.ActionOther, "skill": schemas.ActionOther, "lsp": schemas.ActionOther, "question": schemas.ActionOther,
	"todowrite": schemas.ActionOther, "todoread": schemas.ActionOther,
}

// request is what nod is asked about p, which stays the same however often it is
// made, so that a restarted nod opencode takes up where it was.
func (f *follower) request(p permission, c call, own, root session) (*schemas.Request, error) {
	r := &schemas.Request{
		Type: schemas.TypeRequest, Kind: schemas.KindToolCall,
		SessionID: agents.ID(root.ID), PendingID: agents.ID(p.ID), ToolCallID: p.ID,
		AgentName: "OpenCode", Host: f.opts.Host, User: f.opts.User,
		Project: own.Directory, SessionLabel: root.Title,
		Options: schemas.DefaultOptions(), HostAsks: true, Rejoin: true, CreatedAt: time.Now().UTC(),
	}
	if own.ID != root.ID {
		r.TaskID = own.ID
	}
	if name, ok := alwaysName(p); ok {
		r.Options = append(r.Options, schemas.Option{OptionID: alwaysOption, Name: name, Kind: schemas.AllowAlways})
	}
	// A loop is no call to judge by its input: it is the repeating that is asked
	// about.
	details, ok := withCwd(c.Input, own.Directory)
	if ok && c.Tool != "" && p.Name != "doom_loop" {
		r.ToolName, r.ActionDetails = c.Tool, details
		r.ActionType, ok = actions[c.Tool]
		if !ok {
			r.ActionType = schemas.ActionMCPTool
		}
		r.Title = title(p, r.ActionType)
		return r, nil
	}
	// Without the call's input, what OpenCode says of it is shown, in fields that
	// no rule knows: a person is asked.
	r.ToolName, r.ActionType, r.Title = p.Name, schemas.ActionOther, title(p, schemas.ActionOther)
	shown := map[string]any{"permission": p.Name, "patterns": p.Patterns, "directory of the session": own.Directory}
	if len(p.Metadata) > 0 {
		shown["metadata"] = p.Metadata
	}
	var err error
	if r.ActionDetails, err = schemas.Encode(shown); err != nil {
		return nil, fmt.Errorf("show what is asked: %w", err)
	}
	return r, nil
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

// alwaysName puts OpenCode's own "always" into words; ok is false where it
// cannot be shown whole.
func alwaysName(p permission) (name string, ok bool) {
	covers := strings.Join(p.Always, ", ")
	odd := strings.ContainsFunc(covers, func(r rune) bool { return !unicode.IsPrint(r) })
	if covers == "" || odd || !utf8.ValidString(covers) || utf8.RuneCountInString(covers) > maxRuleName/2 || utf8.RuneCountInString(p.Name) > 40 {
		return "", false
	}
	return fmt.Sprintf("Always allow %s: %s (OpenCode remembers it until it is closed; nod cannot revoke it)", p.Name, covers), true
}

// withCwd is a tool's input, byte for byte, with the session's directory at its
// end. It is not ok where the input is no object, or names a "cwd" of its own.
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
