package acp

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// toolCall contains what the agent has reported so far about a tool call.
type toolCall struct {
	id        string // the agent's id of the call
	kind      string // ACP's kind of tool, such as "execute"
	title     string
	tool      string          // the agent's own name for the tool; may be empty
	announced string          // the title with which the agent announced the call
	input     json.RawMessage // the tool's input, as far as the agent has reported it
	over      bool            // the call has ended, or the agent has dropped it
}

// maxInput is the largest input of a tool call, in bytes, that the cache keeps. nod names a call with a
// larger input by its kind, so that no rule about the agent's own tools applies.
const maxInput = 64 << 10

// actions gives the action type for each of ACP's kinds of tools. The other kinds have the type
// ActionOther.
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

// foreign reports whether the tool's name contradicts its kind. An example is the name Read with the
// kind execute.
func (c toolCall) foreign() bool {
	a, kind := agents.ActionOf(c.tool), cmp.Or(actions[c.kind], schemas.ActionOther)
	return a != schemas.ActionOther && a != schemas.ActionMCPTool && c.kind != "" && a != kind
}

// name returns the tool's name for people and rules, which is the agent's own name for the tool. If the
// agent gives no name, or the name contradicts the kind, the result is acp_KIND. The kind "execute"
// does not become Bash, because rules about Bash would then apply to a tool that may not be a shell on
// this machine.
func (c toolCall) name() string {
	if c.tool != "" && !c.foreign() {
		return c.tool
	}
	if actions[c.kind] == "" {
		return "acp_other"
	}
	return "acp_" + c.kind
}

// question reports whether the call does nothing except to ask the user something.
func (c toolCall) question() bool {
	return c.kind == "switch_mode" || slices.Contains([]string{"AskUserQuestion", "ExitPlanMode"}, c.tool)
}

// merge returns a copy of c. Its id, kind, title and tool are replaced by those in update that are not
// empty.
func (c toolCall) merge(update map[string]json.RawMessage) toolCall {
	meta := object(object(update["_meta"])["claudeCode"])
	c.id = cmp.Or(text(update["toolCallId"]), c.id)
	c.kind = cmp.Or(text(update["kind"]), c.kind)
	c.title = cmp.Or(text(update["title"]), c.title)
	c.tool = cmp.Or(agents.Cut(text(meta["toolName"]), maxID), c.tool)
	return c
}

// announcedBy returns c with the title and the input in an update of the agent. A permission request
// cannot change them, because merge keeps both.
func (c toolCall) announcedBy(update map[string]json.RawMessage) toolCall {
	if text(update["sessionUpdate"]) == "tool_call" {
		c.announced, c.over = agents.Cut(text(update["title"]), maxID), false
	}
	if input := update["rawInput"]; len(object(input)) > 0 {
		c.input = nil
		if len(input) <= maxInput {
			c.input = input
		}
	}
	return c
}

// sessionCache keeps data from earlier messages that a permission request does not repeat: the tool
// calls, the working directories and the agent's name. Each map has a limited size. If an entry is
// lost, a later request has no project or not the tool's own name, and nod asks a person. sessionCache
// is safe for concurrent use.
type sessionCache struct {
	mu       sync.Mutex
	requests map[string]editorRequest // the editor's requests that have no response yet, by id key (see relay.IDKey)
	dirs     map[string]string        // working directories, by session
	calls    map[[2]string]toolCall   // tool calls, by session and tool call id
	dropped  map[string]bool          // the sessions in which the agent drops all further calls of the turn
	agent    string                   // the name that the agent reports, for people
	known    knownAgent
}

// editorRequest is a request of the editor to which the response is important. The response contains the
// agent's name or the id of a new session, or ends a turn. dir is the directory of the new session, and
// session is the session whose turn ends.
type editorRequest struct{ method, dir, session string }

func newSessionCache() *sessionCache {
	return &sessionCache{requests: map[string]editorRequest{}, dirs: map[string]string{}, calls: map[[2]string]toolCall{}, dropped: map[string]bool{}}
}

// recordRequest reads a request of the editor. If the request loads or resumes a session, recordRequest
// stores the session's directory. If the session already had another directory, recordRequest forgets
// the directory instead. If the request initializes the agent, opens a new session or starts a turn,
// recordRequest stores the request for recordResponse.
func (c *sessionCache) recordRequest(m message) {
	switch m.method {
	case methodInitialize, methodNew, methodFork, methodLoad, methodResume, methodPrompt:
	default:
		return
	}
	params := object(m.params)
	session, dir := text(params["sessionId"]), text(params["cwd"])
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.method == methodPrompt { // in a new turn, an agent may use the ids of ended calls again
		delete(c.dropped, session)
		maps.DeleteFunc(c.calls, func(id [2]string, call toolCall) bool { return id[0] == session && call.over })
	}
	if m.method != methodLoad && m.method != methodResume {
		agents.PutBounded(c.requests, m.key, editorRequest{m.method, dir, session})
	} else if known, there := c.dirs[session]; there && known != dir {
		c.dirs[session] = "" // some agents keep the old directory if the session already runs
	} else if session != "" && dir != "" {
		agents.PutBounded(c.dirs, session, dir)
	}
}

// recordResponse reads the agent's response to a stored request. It stores the agent's name, or the
// directory of the new session. If the response ends a turn, the result is the session of this turn.
func (c *sessionCache) recordResponse(m message) (turnOver string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, ok := c.requests[m.key]
	if !ok {
		return ""
	}
	delete(c.requests, m.key)
	result := object(m.result)
	switch was.method {
	case methodPrompt:
		delete(c.dropped, was.session)
		return was.session
	case methodInitialize:
		info := object(result["agentInfo"])
		c.agent, c.known = cmp.Or(text(info["title"]), text(info["name"])), agentNamed(text(info["name"]))
		return ""
	}
	if session := text(result["sessionId"]); session != "" && was.dir != "" {
		agents.PutBounded(c.dirs, session, was.dir)
	}
	return ""
}

// prompting reports whether a prompt of the session has no response yet.
func (c *sessionCache) prompting(session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		if r.method == methodPrompt && r.session == session {
			return true
		}
	}
	return false
}

// recordUpdate stores an update of the agent about a tool call. ended is true if the update says that
// the call has ended.
func (c *sessionCache) recordUpdate(m message) (session, call string, ended bool) {
	params := object(m.params)
	update := object(params["update"])
	if sort := text(update["sessionUpdate"]); sort != "tool_call" && sort != "tool_call_update" {
		return "", "", false
	}
	session, call = text(params["sessionId"]), text(update["toolCallId"])
	id := [2]string{session, call}
	c.mu.Lock()
	defer c.mu.Unlock()
	if status := text(update["status"]); status == "completed" || status == "failed" {
		if delete(c.calls, id); c.known.drops != dropsNone { // an agent that drops no calls may use the id again
			agents.PutBounded(c.calls, id, toolCall{over: true})
		}
		return session, call, true
	}
	agents.PutBounded(c.calls, id, c.calls[id].merge(update).announcedBy(update))
	return session, call, false
}

// toolCall returns what the cache contains about a tool call, together with the fields in a permission
// request. over is true if the call has ended, or if the agent drops it.
func (c *sessionCache) toolCall(session string, call map[string]json.RawMessage) (_ toolCall, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.calls[[2]string{session, text(call["toolCallId"])}].merge(call)
	return told, told.over || c.dropped[session]
}

// denied records that somebody denied a call of the session. drops reports whether the agent now drops
// the session's other calls.
func (c *sessionCache) denied(session string) (drops bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known.drops == dropsNone {
		return false
	}
	for id, call := range c.calls {
		if id[0] == session {
			call.over = true
			c.calls[id] = call
		}
	}
	if c.known.drops == dropsTurn {
		agents.PutBounded(c.dropped, session, true)
	}
	return true
}

// own returns the call of a permission request with the agent's own name for the tool. See the field
// own of knownAgent.
func (c *sessionCache) own(told toolCall, asked map[string]json.RawMessage, dir string) (own ownCall, ok bool) {
	c.mu.Lock()
	known := c.known
	c.mu.Unlock()
	if known.own == nil {
		return own, false
	}
	return known.own(told, asked, dir)
}

// offered returns the options without "always", if the agent takes an "always" for an allow of one call
// only.
func (c *sessionCache) offered(options []schemas.Option) []schemas.Option {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known.forgets {
		return options
	}
	return slices.DeleteFunc(options, func(o schemas.Option) bool { return o.Kind == schemas.AllowAlways })
}

// session returns the working directory of a session, and the agent's name. A value that is not in the
// cache is "".
func (c *sessionCache) session(id string) (dir, agent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dirs[id], c.agent
}
