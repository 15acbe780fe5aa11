package acp

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// toolCall is what a tool call is, as far as the agent has said so.
type toolCall struct {
	kind  string // ACP's
	title string
	tool  string // the agent's own name of the tool, where it tells it
}

// actions are the effects of ACP's kinds of tool; the others have none that is
// known.
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

// name is the tool's, for people and rules. ACP has none, only a kind, and what
// runs under "execute" need not be a shell on this machine: rules about Bash
// count for what the agent itself calls Bash, and everything else asks.
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

// with is c with what an update says of it anew.
func (c toolCall) merge(update map[string]json.RawMessage) toolCall {
	meta := object(object(update["_meta"])["claudeCode"])
	return toolCall{
		kind:  cmp.Or(text(update["kind"]), c.kind),
		title: cmp.Or(text(update["title"]), c.title),
		tool:  cmp.Or(cut(text(meta["toolName"]), maxID), c.tool),
	}
}

// maxCached bounds what is remembered of each sort. Past it all of that sort is
// forgotten, which costs people a label and rules a name, so that they ask.
const maxCached = 4096

// known is what earlier messages said that a permission request leaves out. It
// only adds to what people are shown: it is safe for concurrent use.
type sessionCache struct {
	mu       sync.Mutex
	requests map[string]editorRequest // what the editor has asked, by the request's id
	dirs     map[string]string        // a session's directory
	calls    map[[2]string]toolCall   // by session and tool call
	agent    string                   // the agent's own name
}

// asked is a request of the editor's whose answer says something.
type editorRequest struct{ method, dir string }

func newSessionCache() *sessionCache {
	return &sessionCache{requests: map[string]editorRequest{}, dirs: map[string]string{}, calls: map[[2]string]toolCall{}}
}

// request notes what the editor asks of the agent.
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

// response notes what the agent answers to that.
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

// update notes what the agent tells of its tool calls.
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

// call is what is known of the tool call that a permission is asked for.
func (c *sessionCache) toolCall(session string, call map[string]json.RawMessage) toolCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[[2]string{session, text(call["toolCallId"])}].merge(call)
}

// session is where a session works and who works there; either may be empty.
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
