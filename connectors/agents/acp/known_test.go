package acp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/connectors/agents/acp"
	"github.com/nodbus/nod/schemas"
)

// initializes makes the agent report this name, and open a session with the id s in the directory /p.
func (r *rig) initializes(name string) {
	r.passes(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}`, `{"jsonrpc":"2.0","id":"i","result":{"agentInfo":{"name":"`+name+`"}}}`)
	r.passes(`{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"cwd":"/p"}}`, `{"jsonrpc":"2.0","id":"n","result":{"sessionId":"s"}}`)
}

// passes sends a request of the editor and the agent's response through the sidecar. If the request or
// the response is empty, passes does not send it.
func (r *rig) passes(request, response string) {
	if request != "" {
		r.editor.says(r.t, request)
		r.agent.hears(r.t)
	}
	if response != "" {
		r.agent.says(r.t, response)
		r.editor.hears(r.t)
	}
}

// updates sends an update about a tool call of the session s.
func (r *rig) updates(fields string) {
	r.passes("", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{`+fields+`}}}`)
}

// asks sends a permission request about a tool call of the session s.
func (r *rig) asks(id, fields string) {
	r.agent.says(r.t, `{"jsonrpc":"2.0","id":`+id+`,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{`+fields+
		`},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}`)
}

const (
	announcedBash = `"sessionUpdate":"tool_call","toolCallId":"c","title":"bash","kind":"execute","status":"pending","rawInput":{"cwd":"/p"}`
	runsBash      = `"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress","kind":"execute","title":"make x",`
	asksBash      = `"toolCallId":"c","title":"make x","kind":"execute","status":"pending","rawInput":{"command":"make x"}`
)

// If nod knows the agent and is sure of the whole call, rules about the agent's own tools apply.
// Otherwise nod names the tool by its kind, about which there are no rules.
func TestCallsOfKnownAgents(t *testing.T) {
	t.Parallel()
	codexInput := `"toolCallId":"c","title":"make x","kind":"execute","rawInput":{"call_id":"c","command":["/bin/bash","-lc","make x"],"cwd":"/q","reason":"to build"%s}`
	for name, c := range map[string]struct {
		agent         string
		updates       []string
		asks          string
		tool, details string
	}{
		"OpenCode's bash":           {"OpenCode", []string{announcedBash, runsBash + `"rawInput":{"command":"make x","description":"d","cwd":"/p"}`}, asksBash, "bash", `{"command":"make x","description":"d","cwd":"/p"}`},
		"OpenCode in another place": {"OpenCode", []string{announcedBash, runsBash + `"rawInput":{"command":"make x","workdir":"/q","cwd":"/p"}`}, asksBash, "bash", `{"command":"make x","workdir":"/q","cwd":"/p"}`},
		"a cwd of the model":        {"OpenCode", []string{announcedBash, runsBash + `"rawInput":{"command":"make x","workdir":"/q","cwd":"/nowhere"}`}, asksBash, "acp_execute", `{"command":"make x"}`},
		"another command":           {"OpenCode", []string{announcedBash, runsBash + `"rawInput":{"command":"ls","cwd":"/p"}`}, asksBash, "acp_execute", `{"command":"make x"}`},
		"no update":                 {"OpenCode", nil, asksBash, "acp_execute", `{"command":"make x"}`},
		"an MCP server's tool":      {"OpenCode", []string{`"sessionUpdate":"tool_call","toolCallId":"c","title":"server_bash","kind":"execute","status":"pending"`, runsBash + `"rawInput":{"command":"make x","cwd":"/p"}`}, asksBash, "acp_execute", `{"command":"make x"}`},
		"a directory outside":       {"OpenCode", []string{announcedBash, runsBash + `"rawInput":{"command":"make x","workdir":"/q","cwd":"/p"}`}, `"toolCallId":"c","title":"make x","kind":"other","rawInput":{"command":"make x","directories":["/q"]}`, "acp_other", `{"command":"make x","directories":["/q"]}`},
		"OpenCode's write": {"OpenCode", []string{`"sessionUpdate":"tool_call","toolCallId":"c","title":"write","kind":"edit","status":"pending","rawInput":{}`, `"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress","kind":"edit","title":"write","rawInput":{"content":"b","filePath":"x.txt"}`},
			`"toolCallId":"c","title":"/p/x.txt","kind":"edit","rawInput":{"filepath":"/p/x.txt","diff":"+b"}`, "write", `{"content":"b","filePath":"x.txt","cwd":"/p"}`},
		"a write of another file": {"OpenCode", []string{`"sessionUpdate":"tool_call","toolCallId":"c","title":"write","kind":"edit","status":"pending","rawInput":{}`, `"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress","kind":"edit","title":"write","rawInput":{"content":"b","filePath":"x.txt"}`},
			`"toolCallId":"c","title":"/p/y","kind":"edit","rawInput":{"filepath":"/p/y","diff":"+b"}`, "acp_edit", `{"filepath":"/p/y","diff":"+b"}`},
		"Codex":                      {"codex-acp", nil, fmt.Sprintf(codexInput, ""), "Bash", `{"command":"make x","cwd":"/q"}`},
		"Codex and more than a line": {"codex-acp", nil, fmt.Sprintf(codexInput, `,"additional_permissions":{"network":true}`), "acp_execute", `{"call_id":"c","command":["/bin/bash","-lc","make x"],"cwd, in the input":"/q","reason":"to build","additional_permissions":{"network":true}}`},
		"Codex and another program":  {"codex-acp", nil, `"toolCallId":"c","title":"x","kind":"execute","rawInput":{"command":["/tmp/bash","-lc","make x"],"cwd":"/q"}`, "acp_execute", `{"command":["/tmp/bash","-lc","make x"],"cwd, in the input":"/q"}`},
		"Qwen Code":                  {"qwen-code", nil, asksBash + `,"_meta":{"toolName":"run_shell_command"}`, "run_shell_command", `{"command":"make x","cwd":"/p"}`},
		"Qwen Code's MCP tool":       {"qwen-code", nil, asksBash + `,"_meta":{"toolName":"mcp__x__run_shell_command"}`, "acp_execute", `{"command":"make x"}`},
		"Cline":                      {"cline", nil, `"toolCallId":"c","title":"run_commands: make x","kind":"execute","rawInput":{"commands":["make x"]}`, "Bash", `{"command":"make x","cwd":"/p"}`},
		"Cline and two commands":     {"cline", nil, `"toolCallId":"c","title":"run_commands: ls","kind":"execute","rawInput":{"commands":["ls","make x"]}`, "acp_execute", `{"commands":["ls","make x"]}`},
		"Cline and another field":    {"cline", nil, `"toolCallId":"c","title":"run_commands: ls","kind":"execute","rawInput":{"commands":["ls"],"cwd":"/q"}`, "acp_execute", `{"commands":["ls"],"cwd, in the input":"/q"}`},
		"Cline and no command":       {"cline", nil, `"toolCallId":"c","title":"run_commands: ","kind":"execute","rawInput":{"commands":[""]}`, "acp_execute", `{"commands":[""]}`},
		"Cline's MCP tool":           {"cline", nil, `"toolCallId":"c","title":"s__run_commands: ls","kind":"execute","rawInput":{"commands":["ls"]}`, "acp_execute", `{"commands":["ls"]}`},
		"an agent nod does not know": {"other", []string{announcedBash, runsBash + `"rawInput":{"command":"make x","cwd":"/p"}`}, asksBash, "acp_execute", `{"command":"make x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, acp.Options{})
			r.initializes(c.agent)
			for _, u := range c.updates {
				r.updates(u)
			}
			r.asks("1", c.asks)
			a := <-r.nod.submissions
			assert.Equal(t, c.tool, a.ToolName)
			assert.JSONEq(t, c.details, string(a.ActionDetails))
			assert.Equal(t, "/p", a.Project)
			a.decisions <- person(schemas.Denied, "no", schemas.RejectOnce)
			r.agent.hears(t)
			r.ends()
		})
	}
}

// After a denial, OpenCode and Codex drop their other open calls. The sidecar withdraws the requests
// for these calls at once, so that nobody allows a call that never runs. If the agent still asks about
// such a call, the sidecar asks nobody.
func TestADenialEndsTheCallsThatTheAgentDrops(t *testing.T) {
	t.Parallel()
	for agent, drops := range map[string]bool{"OpenCode": true, "codex-acp": true, "other": false} {
		t.Run(agent, func(t *testing.T) {
			r := start(t, acp.Options{})
			r.initializes(agent)
			r.passes(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"s"}}`, "")
			for _, id := range []string{"a", "b", "late"} {
				r.updates(`"sessionUpdate":"tool_call","toolCallId":"` + id + `","title":"bash","kind":"execute","status":"pending"`)
			}
			r.asks("1", `"toolCallId":"a","title":"A"`)
			first := <-r.nod.submissions
			r.asks("2", `"toolCallId":"b","title":"B"`)
			second := <-r.nod.submissions
			first.decisions <- person(schemas.Denied, "no", schemas.RejectOnce)
			assert.Equal(t, answered("1", "no"), r.agent.hears(t))
			if !drops {
				second.decisions <- person(schemas.Allowed, "yes", schemas.AllowOnce)
				assert.Equal(t, answered("2", "yes"), r.agent.hears(t))
				r.ends()
				return
			}
			assert.Equal(t, answered("2", ""), r.agent.hears(t))
			assert.Equal(t, withdrawal{second.PendingID, "after a denial the agent drops its other open calls"}, <-r.nod.withdrawn)
			assert.True(t, r.nod.abandons(second.PendingID))
			r.asks("3", `"toolCallId":"late","title":"Late"`)
			assert.Equal(t, answered("3", ""), r.agent.hears(t))

			r.passes("", `{"jsonrpc":"2.0","id":"p","result":{"stopReason":"end_turn"}}`)
			r.passes(`{"jsonrpc":"2.0","id":"q","method":"session/prompt","params":{"sessionId":"s"}}`, "")
			r.asks("4", `"toolCallId":"b","title":"New"`) // the previous turn used this id too
			third := <-r.nod.submissions
			third.decisions <- person(schemas.Allowed, "yes", schemas.AllowOnce)
			assert.Equal(t, answered("4", "yes"), r.agent.hears(t), "the next turn is asked about")
			r.ends()
			assert.Empty(t, r.nod.submissions)
		})
	}
}

// If a person allows a call after the call or its turn has ended, the sidecar tells nod that the call
// never runs. The agent does not get the allow.
func TestAnAllowOfAnEndedCallIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ ends, why string }{
		"the call": {`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed"}}}`, "the agent ended the call"},
		"the turn": {`{"jsonrpc":"2.0","id":"p","result":{"stopReason":"cancelled"}}`, "the agent's turn is over"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, acp.Options{})
			r.initializes("other")
			r.passes(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"s"}}`, "")
			heldBack := make(chan bool)
			r.nod.next <- r.nod.allowsAfter(heldBack)
			r.asks("1", `"toolCallId":"c","title":"A"`)
			a := <-r.nod.submissions
			r.passes("", c.ends)
			assert.Equal(t, answered("1", ""), r.agent.hears(t))
			close(heldBack) // the sidecar gets the person's allow only now
			assert.Equal(t, withdrawal{a.PendingID, c.why}, <-r.nod.withdrawn)
			assert.True(t, r.nod.abandons(a.PendingID))
			r.asks("2", `"toolCallId":"d","title":"B"`)
			(<-r.nod.submissions).decisions <- person(schemas.Allowed, "yes", schemas.AllowOnce)
			assert.Equal(t, answered("2", "yes"), r.agent.hears(t))
			r.ends()
		})
	}
}

// An editor may load a session that already runs, with another directory. Some agents then keep the old
// directory. nod therefore does not know the session's directory, and no rule of a project applies.
func TestASessionThatIsLoadedElsewhereHasNoDirectory(t *testing.T) {
	t.Parallel()
	r := start(t, acp.Options{})
	r.initializes("cline")
	for _, dir := range []string{"/q", "/p"} {
		r.passes(`{"jsonrpc":"2.0","id":"l`+dir+`","method":"session/load","params":{"sessionId":"s","cwd":"`+dir+`"}}`, `{"jsonrpc":"2.0","id":"l`+dir+`","result":{}}`)
	}
	r.asks("1", `"toolCallId":"c","title":"run_commands: make x","kind":"execute","rawInput":{"commands":["make x"]}`)
	a := <-r.nod.submissions
	assert.Equal(t, "acp_execute", a.ToolName)
	assert.Empty(t, a.Project)
	a.decisions <- person(schemas.Denied, "no", schemas.RejectOnce)
	r.agent.hears(t)
	r.ends()
}
