package acp

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// toolCall describes a tool call, as far as the agent has reported it.
type toolCall struct {
	kind  string // kind of tool in ACP's words
	title string
	tool  string // the agent's own name of the tool; may be empty
}

// actions maps ACP's kinds of tools to action types; the other kinds are ActionOther.
var actions = map[string]schemas.ActionType{
	"execute": schemas.ActionCommand, "fetch": schemas.ActionNetwork,
	"read": schemas.ActionFileRead, "search": schemas.ActionFileRead,
	"edit": schemas.ActionFileWrite, "delete": schemas.ActionFileWrite, "move": schemas.ActionFileWrite,
}

func (c toolCall) action() schemas.ActionType {
	if a := agents.ActionOf(c.tool); a != schemas.ActionOther {
		return a
	}
	return cmp.Or(actions[c.kind], schemas.ActionOther)
}

// name returns the tool's name for people and rules. ACP itself names only a kind, and
// a tool of kind "execute" need not be a shell on this machine. So rules about Bash
// apply only to a tool that the agent itself calls Bash; any other is named acp_KIND.
func (c toolCall) name() string {
	if c.tool != "" {
		return c.tool
	}
	if actions[c.kind] == "" {
		return "acp_other"
	}
	return "acp_" + c.kind
}

// question reports whether the call only asks its user something.
func (c toolCall) question() bool {
	return c.kind == "switch_mode" || slices.Contains([]string{"AskUserQuestion", "ExitPlanMode"}, c.tool)
}

// merge returns c with the fields of update that are not empty.
func (c toolCall) merge(update map[string]json.RawMessage) toolCall {
	meta := object(object(update["_meta"])["claudeCode"])
	return toolCall{
		kind:  cmp.Or(text(update["kind"]), c.kind),
		title: cmp.Or(text(update["title"]), c.title),
		tool:  cmp.Or(cut(text(meta["toolName"]), maxID), c.tool),
	}
}

// maxCached limits the entries of each map. A full map is emptied: people then miss
// a label, and rules miss a tool name, so that a person is asked.
const maxCached = 4096

// sessionCache holds data from earlier messages that a permission request does not
// repeat: tool calls, directories, the agent's name. It only adds to the prompt that
// people see. It is safe for concurrent use.
type sessionCache struct {
	mu       sync.Mutex
	requests map[string]editorRequest // requests of the editor without a response, by id
	dirs     map[string]string        // working directories, by session
	calls    map[[2]string]toolCall   // by session and tool call
	agent    string                   // the agent's own name
}

// editorRequest is a request of the editor whose response names the agent or a new
// session.
type editorRequest struct{ method, dir string }

func newSessionCache() *sessionCache {
	return &sessionCache{requests: map[string]editorRequest{}, dirs: map[string]string{}, calls: map[[2]string]toolCall{}}
}

// recordRequest stores a request of the editor that opens a session or initializes the
// agent, and the directory of a session that it names.
func (c *sessionCache) recordRequest(m message) {
	switch m.method {
	case methodInitialize, methodNew, methodFork, methodLoad, methodResume:
	default:
		return
	}
	params := object(m.params)
	session, dir := text(params["sessionId"]), text(params["cwd"])
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.method != methodLoad && m.method != methodResume {
		put(c.requests, m.key, editorRequest{m.method, dir})
	} else if session != "" && dir != "" {
		put(c.dirs, session, dir)
	}
}

// recordResponse stores the agent's name, or a new session's directory, from the
// agent's response to a recorded request.
func (c *sessionCache) recordResponse(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, ok := c.requests[m.key]
	if !ok {
		return
	}
	delete(c.requests, m.key)
	result := object(m.result)
	if was.method == methodInitialize {
		info := object(result["agentInfo"])
		c.agent = cmp.Or(text(info["title"]), text(info["name"]))
	} else if session := text(result["sessionId"]); session != "" && was.dir != "" {
		put(c.dirs, session, was.dir)
	}
}

func (c *sessionCache) recordUpdate(m message) {
	params := object(m.params)
	update := object(params["update"])
	if sort := text(update["sessionUpdate"]); sort != "tool_call" && sort != "tool_call_update" {
		return
	}
	id := [2]string{text(params["sessionId"]), text(update["toolCallId"])}
	c.mu.Lock()
	defer c.mu.Unlock()
	if status := text(update["status"]); status == "completed" || status == "failed" {
		delete(c.calls, id)
		return
	}
	put(c.calls, id, c.calls[id].merge(update))
}

// toolCall returns the stored data of a permission request's tool call, merged with
// the call in the request.
func (c *sessionCache) toolCall(session string, call map[string]json.RawMessage) toolCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[[2]string{session, text(call["toolCallId"])}].merge(call)
}

// session returns a session's directory and the agent's name; either may be empty.
func (c *sessionCache) session(id string) (dir, agent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dirs[id], c.agent
}

func put[K comparable, V any](m map[K]V, key K, value V) {
	if len(m) >= maxCached {
		clear(m)
	}
	m[key] = value
}
