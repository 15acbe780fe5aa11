package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// verdict is the result of the tool approve, in Claude Code's format. Claude Code treats any other
// result as a denial.
type verdict struct {
	Behavior string          `json:"behavior"` // the decision: allow or deny
	Input    json.RawMessage `json:"updatedInput,omitempty"`
	Message  string          `json:"message,omitempty"`
	// Updates change Claude Code's permissions, such as its mode.
	Updates []json.RawMessage `json:"updatedPermissions,omitempty"`
}

// result returns v as the result of a tool. It does not mark a denial as an error, because Claude Code
// expects denials.
func (v verdict) result() *mcp.CallToolResult {
	out, err := schemas.Encode(v)
	if err != nil {
		out = []byte(`{"behavior":"deny","message":"nod failed on this call and refused it."}`)
	}
	return text(string(out))
}

func deny(why string) *mcp.CallToolResult {
	return verdict{Behavior: "deny", Message: why}.result()
}

// toolUse is the tool call for which Claude Code asks permission.
type toolUse struct {
	tool, id string
	input    json.RawMessage
}

// readToolUse parses the arguments of the tool approve. It compares their names exactly, because
// decoding into a struct would accept "Input" for "input".
func readToolUse(raw json.RawMessage) (u toolUse, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return u, errors.New("the arguments are not a JSON object")
	}
	for name, to := range map[string]*string{"tool_name": &u.tool, "tool_use_id": &u.id} {
		if value, ok := fields[name]; ok && json.Unmarshal(value, to) != nil {
			return u, fmt.Errorf("%s is not a string", name)
		}
	}
	u.input = fields["input"]
	switch {
	case u.tool == "":
		return u, errors.New("the arguments name no tool_name")
	case !agents.IsObject(u.input):
		return u, errors.New("input is not a JSON object")
	}
	return u, nil
}

// approve asks nod whether Claude Code may run a tool call, and returns nod's verdict.
func (c *call) approve(ctx context.Context) *mcp.CallToolResult {
	use, err := readToolUse(c.Params.Arguments)
	if err != nil {
		return deny("nod refused the call: " + err.Error())
	}
	switch use.tool {
	case askUserQuestion:
		return c.question(ctx, use)
	case exitPlanMode:
		return c.plan(ctx, use)
	}
	r, cwd, err := c.toolRequest(use)
	if err != nil {
		return deny("nod refused the call: " + err.Error())
	}
	r.Contain = c.server.opts.containable()
	r.SetNod(c.server.opts.Nod)
	d, err := c.ask(ctx, &r)
	if err != nil {
		return deny("Not allowed, because nod could not get a decision: " + errorText(err))
	}
	heard := agents.DescribeDecision(&r, &d)
	if !heard.Allowed {
		return deny(heard.Text)
	}
	input := use.input
	if d.UpdatedInput != nil {
		if input, err = agents.WithoutCwd(d.UpdatedInput, use.input, cwd); err != nil {
			return deny("Allowed with an edit that cannot be carried out: " + err.Error())
		}
	}
	return verdict{Behavior: "allow", Input: input}.result()
}

// containable returns the value of the field Contain for requests of the tool approve.
func (o *Options) containable() string {
	if o.Contain == schemas.ContainPossible && !o.InProject {
		return "nod mcp was not told --in-project, so the call's directory is not known and it cannot run contained"
	}
	return o.Contain
}

// toolRequest returns the request for a tool call, and the directory in which the call runs. Claude Code
// does not send this directory. With Options.InProject it is the project's directory. Otherwise it is "".
func (c *call) toolRequest(use toolUse) (r schemas.Request, cwd string, err error) {
	r = c.request()
	if c.server.opts.InProject {
		cwd = r.Project
	}
	r.PendingID, r.ToolCallID = agents.ID(use.id), use.id
	r.Kind, r.ToolName, r.ActionType = schemas.KindToolCall, use.tool, agents.ActionOf(use.tool)
	r.Title = agents.Title(r.ActionType)
	r.Rejoin = use.id != "" // after a restart, the client may send the same call again
	r.ActionDetails, err = agents.WithCwd(use.input, cwd)
	return r, cwd, err
}
