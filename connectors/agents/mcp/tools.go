package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/traces"
)

const instructions = "nod asks a person, or a rule, before you act. Call request_permission for access that you lack; it waits for the answer. A denial is an answer: do not work around it."

const approveSchema = `{
	"type": "object",
	"required": ["tool_name", "input"],
	"properties": {
		"tool_name": {"type": "string", "description": "the tool that would be used"},
		"input": {"type": "object", "description": "the input that the tool would get"},
		"tool_use_id": {"type": "string"}
	}
}`

// requestSchema does not say that a request needs one of the fields permission and permissions. A
// schema can say so only by an anyOf at its top level, and some model providers reject such a schema.
const requestSchema = `{
	"type": "object",
	"required": ["reason"],
	"additionalProperties": false,
	"properties": {
		"permission": {"type": "string", "minLength": 1, "description": "@read:<absolute path>, @write:<absolute path> (reading as well), @network, or @network:<host>:<port> for one host; this or permissions is needed"},
		"permissions": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}, "description": "several of these, in one question"},
		"reason": {"type": "string", "minLength": 1, "description": "why, for the person who decides"},
		"agent_id": {"type": "string", "minLength": 1, "description": "the session that is to hold it, if not this one"},
		"agentId": {"type": "string", "minLength": 1, "description": "the same as agent_id"},
		"timeout_minutes": {"type": "number", "minimum": 1, "maximum": 60, "default": 15},
		"wait": {"type": "boolean", "default": true, "description": "false: return at once with a request_id, and get the answer with permission_status"}
	}
}`

const statusSchema = `{
	"type": "object",
	"required": ["request_id"],
	"additionalProperties": false,
	"properties": {
		"request_id": {"type": "string", "minLength": 1, "description": "the id that request_permission returned"},
		"wait_seconds": {"type": "number", "minimum": 0, "maximum": 60, "default": 0, "description": "wait this long for the answer"}
	}
}`

const grantSchema = `{
	"type": "object",
	"required": ["agentId", "permission", "reason"],
	"additionalProperties": false,
	"properties": {
		"agentId": {"type": "string", "minLength": 1, "description": "the session that is to hold it"},
		"permission": {"type": "string", "minLength": 1, "description": "one that this session holds: @read:<absolute path>, @write:<absolute path>, @network or @network:<host>:<port>"},
		"reason": {"type": "string", "minLength": 1, "description": "why"}
	}
}`

const listSchema = `{"type": "object", "additionalProperties": false, "properties": {}}`

// addTools registers the five tools. The schemas are for clients only: each tool checks its arguments
// itself, so that no byte of an input changes.
func (s *Server) addTools() {
	failedHere := func(why string) *mcp.CallToolResult { return failed(errors.New(why)) }
	s.add("approve", approveSchema,
		"Asks nod whether a tool may be used. It is for an agent program's permission prompts (--permission-prompt-tool), not for the model.",
		(*call).approve, deny)
	s.add("request_permission", requestSchema,
		"Asks a person for access that you do not have, and waits for the answer, unless wait is false.",
		(*call).requestPermission, failedHere)
	s.add("permission_status", statusSchema,
		"Returns the answer to a request_permission with wait false, or says that it is not decided yet.",
		(*call).permissionStatus, failedHere)
	s.add("grant_permission", grantSchema,
		"Lets another session hold a permission that this one holds.",
		(*call).grantPermission, failedHere)
	s.add("list_permissions", listSchema,
		"Lists what this session may do without asking.",
		(*call).listPermissions, failedHere)
}

// add registers one tool. The function run handles a call of the tool. If run panics, the function
// refuse makes the result.
func (s *Server) add(name, schema, description string, run func(*call, context.Context) *mcp.CallToolResult, refuse func(why string) *mcp.CallToolResult) {
	tool := &mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)}
	s.mcp.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (result *mcp.CallToolResult, _ error) {
		defer func() {
			if p := recover(); p != nil {
				s.opts.Log.Error("mcp: a call failed and was refused", "tool", name, "panic", p)
				result = refuse("nod failed on this call and refused it.")
			}
		}()
		return run(s.newCall(req), traced(ctx, req.Params.Meta)), nil
	})
}

// traced returns a context with the trace that the _meta of a call names. Requests with this context
// belong to the trace.
func traced(ctx context.Context, meta mcp.Meta) context.Context {
	parent, _ := meta[traces.ParentField].(string)
	state, _ := meta[traces.StateField].(string)
	return traces.Continue(ctx, parent, state)
}

func text(words string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: words}}}
}

// failed returns a tool's result with the text of err, marked as an error.
func failed(err error) *mcp.CallToolResult {
	result := text(errorText(err))
	result.IsError = true
	return result
}

// errorText returns a text about err for an agent. If nod refused the request, the text is that of
// agents.DescribeError.
func errorText(err error) string {
	var refused *schemas.Error
	if errors.As(err, &refused) {
		return agents.DescribeError(refused).Text
	}
	return err.Error()
}
