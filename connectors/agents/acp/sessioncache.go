package acp

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// toolCall contains the details of a tool call that the agent has reported so far.
type toolCall struct {
	kind  string // ACP's kind of tool, such as "execute"
	title string
	tool  string // the agent's own name for the tool; may be empty
}

// actions maps ACP's kinds of tools to action types; the other kinds are ActionOther.
var actions = map[string]schemas.ActionType{
	"execute": schemas.ActionCommand, "fetch": schemas.ActionNetwork,
	"read": schemas.ActionFileRead, "search": schemas.ActionFileRead,
	"edit": schemas.ActionFileWrite, "delete": schemas.ActionFileWrite, "move": schemas.ActionFileWrite,
}

func (c toolCall) action() schemas.ActionType {
	if a := agents.ActionOf(c.tool); a != schemas.ActionOther && !c.foreign() {
		return a
	}
	return cmp.Or(actions[c.kind], schemas.ActionOther)
}

// foreign reports whether the tool's name contradicts its kind, such as the name Read with the
// kind execute.
func (c toolCall) foreign() bool {
	a, kind := agents.ActionOf(c.tool), cmp.Or(actions[c.kind], schemas.ActionOther)
	return a != schemas.ActionOther && a != schemas.ActionMCPTool && c.kind != "" && a != kind
}

// name returns the tool's name for people and rules. It is the agent's own name for the tool. It is
// acp_KIND if the agent gives no name, or if the name contradicts the kind. The name for ACP's kind
// "execute" is not Bash, because rules about Bash would then apply to a tool that is perhaps no
// shell on this machine.
func (c toolCall) name() string {
	if c.tool != "" && !c.foreign() {
		return c.tool
	}
	if actions[c.kind] == "" {
		return "acp_other"
	}
	return "acp_" + c.kind
}

// question reports whether the call only asks the user something.
func (c toolCall) question() bool {
	return c.kind == "switch_mode" || slices.Contains([]string{"AskUserQuestion", "ExitPlanMode"}, c.tool)
}

// merge returns a copy of c in which the non-empty fields of update replace those of c.
func (c toolCall) merge(update map[string]json.RawMessage) toolCall {
	meta := object(object(update["_meta"])["claudeCode"])
	return toolCall{
		kind:  cmp.Or(text(update["kind"]), c.kind),
		title: cmp.Or(text(update["title"]), c.title),
		tool:  cmp.Or(cut(text(meta["toolName"]), maxID), c.tool),
	}
}

// sessionCache remembers data from earlier messages that a permission request does not repeat: tool
// calls, working directories and the agent's name. The size of each map is limited. If the cache
// has dropped an entry, a later request lacks its project or its tool's name, and nod asks a
// person. sessionCache is safe for concurrent use.
type sessionCache struct {
	mu       sync.Mutex
	requests map[string]editorRequest // the editor's requests that have no response yet, by id key (see relay.IDKey)
	dirs     map[string]string        // working directories, by session
	calls    map[[2]string]toolCall   // running tool calls, by session and tool call id
	agent    string                   // the agent's own name
}

// editorRequest is a request of the editor whose response contains the agent's name or the id of a new
// session. dir is the working directory of that session.
type editorRequest struct{ method, dir string }

func newSessionCache() *sessionCache {
	return &sessionCache{requests: map[string]editorRequest{}, dirs: map[string]string{}, calls: map[[2]string]toolCall{}}
}

// recordRequest reads a request of the editor. If it loads or resumes a session, recordRequest stores
// the session's directory. If it initializes the agent or opens a new session, recordRequest stores
// the request, because recordResponse needs it with the response.
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
		agents.PutBounded(c.requests, m.key, editorRequest{m.method, dir})
	} else if session != "" && dir != "" {
		agents.PutBounded(c.dirs, session, dir)
	}
}

// recordResponse reads the agent's response to a recorded request, and stores the agent's
// name or the new session's directory.
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
		agents.PutBounded(c.dirs, session, was.dir)
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
	agents.PutBounded(c.calls, id, c.calls[id].merge(update))
}

// toolCall returns the stored details of a tool call, updated with call, the details in a permission
// request.
func (c *sessionCache) toolCall(session string, call map[string]json.RawMessage) toolCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[[2]string{session, text(call["toolCallId"])}].merge(call)
}

// session returns a session's working directory and the agent's name. Each is empty if it is not in
// the cache.
func (c *sessionCache) session(id string) (dir, agent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dirs[id], c.agent
}
