package mcpgate_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/mcpgate"
	"github.com/nodbus/nod/internal/testlog"
	"github.com/nodbus/nod/schemas"
)

const readCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"/a"}}}`

// refusalOf returns the text of a result that is marked as an error.
func refusalOf(t testing.TB, line string) string {
	t.Helper()
	var m struct {
		Result struct {
			IsError bool
			Content []struct{ Type, Text string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(line), &m), line)
	require.True(t, m.Result.IsError, line)
	require.Len(t, m.Result.Content, 1)
	return m.Result.Content[0].Text
}

// An allowed call reaches the server with exactly the arguments that nod allowed. People also see what
// the server claims about the tool.
func TestAnAllowedCallReachesTheServer(t *testing.T) {
	r := start(t, mcpgate.Options{Project: "/home/ann/app"})
	r.client.says(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientInfo":{"name":"claude-code","title":"Claude Code"}}}`)
	require.Contains(t, r.server.hears(t), "initialize")
	r.client.says(t, `{"params": {"arguments": {"path": "/a <b>\u00e9 é", "n": 1.50}, "name": "read", "_meta": {"x": 1}}, "id": "a\u0062", "method": "tools\/call", "jsonrpc": "2.0"}`)
	q := r.next()
	assert.Equal(t, "mcp__fs__read", q.ToolName)
	assert.Equal(t, schemas.KindToolCall, q.Kind)
	assert.Equal(t, schemas.ActionMCPTool, q.ActionType)
	assert.JSONEq(t, `{"path":"/a <b>é é","n":1.50,"beside the arguments":{"_meta":{"x":1}}}`, string(q.ActionDetails))
	assert.Equal(t, []string{"Claude Code", "devbox", "ann", "/home/ann/app", "app"}, []string{q.AgentName, q.Host, q.User, q.Project, q.SessionLabel})
	assert.Equal(t, "The server server-fs /srv did not list this tool to the client.", q.Reason)
	r.reachesOnlyPing()
	q.decisions <- allow()
	assert.Equal(t, `{"jsonrpc":"2.0","id":"a\u0062","method":"tools/call","params":{"_meta":{"x":1},"arguments":{"path":"/a <b>\u00e9 é","n":1.50},"name":"read"}}`, r.server.hears(t))
	r.server.says(t, `{"jsonrpc":"2.0","id":"ab","result":{"content":[],"odd":1}}`)
	assert.Equal(t, `{"jsonrpc":"2.0","id":"ab","result":{"content":[],"odd":1}}`, r.client.hears(t))
	assert.Empty(t, r.ends())
}

// For nod, a call without arguments has the arguments {}. The server gets the call without arguments.
func TestACallWithoutArguments(t *testing.T) {
	r := start(t, mcpgate.Options{})
	r.client.says(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list"}}`)
	q := r.next()
	assert.Equal(t, `{}`, string(q.ActionDetails))
	q.decisions <- allow()
	assert.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list"}}`, r.server.hears(t))
}

// If a person edits the arguments, the server gets the edited ones. A field "cwd" in the arguments
// keeps its name.
func TestEditedArgumentsReachTheServer(t *testing.T) {
	r := start(t, mcpgate.Options{})
	r.client.says(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"cmd":"rm","cwd":"/etc"}}}`)
	q := r.next()
	assert.JSONEq(t, `{"cmd":"rm","cwd, in the input":"/etc"}`, string(q.ActionDetails))
	d := allow()
	d.UpdatedInput = []byte(`{"cmd":"ls","cwd, in the input":"/tmp"}`)
	q.decisions <- d
	assert.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"cmd":"ls","cwd":"/tmp"},"name":"run"}}`, r.server.hears(t))
}

// Only an allow of exactly this call sends the call to the server. After any other outcome, the client
// gets a result that is marked as an error.
func TestNothingButAnAllowLetsACallThrough(t *testing.T) {
	denied := byAnn(schemas.Denied)
	denied.Message = "use make clean"
	edited := allow()
	edited.UpdatedInput = []byte(`[]`)
	for name, row := range map[string]struct {
		d    schemas.Decision
		err  error
		says string
	}{
		"denied":             {denied, nil, "Denied by Ann: use make clean"},
		"timed out":          {schemas.Decision{Outcome: schemas.TimedOut}, nil, "Permission request timed out."},
		"no outcome":         {schemas.Decision{}, nil, "no usable decision"},
		"a rejecting option": {chooses(schemas.Allowed, "reject_once", schemas.RejectOnce), nil, ""},
		"an edit of no kind": {edited, nil, "cannot be carried out"},
		"nod is not running": {schemas.Decision{}, errors.New("nod is not running: start it with nod up"), "nod is not running"},
		"no approver":        {schemas.Decision{}, schemas.Errorf(schemas.CodeUndeliverable, "no approver is set"), "No approver could be asked: no approver is set"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, mcpgate.Options{})
			r.client.says(t, readCall)
			if q := r.next(); row.err != nil {
				q.errors <- row.err
			} else {
				q.decisions <- row.d
			}
			assert.Contains(t, refusalOf(t, r.client.hears(t)), row.says)
			r.reachesOnlyPing()
		})
	}
}

// If another reader could find a different call in a message than the gate does, the message does not
// reach the server.
func TestNothingUnjudgedReachesTheServer(t *testing.T) {
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
	}
	for name, line := range map[string]string{
		"the method twice":               `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"x"}}`,
		"the method twice, escaped":      `{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call","params":{"name":"x"}}`,
		"the method in another case":     `{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"x"}}`,
		"both":                           `{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call","params":{"name":"x"}}`,
		"tools/call in another case":     `{"jsonrpc":"2.0","id":1,"method":"Tools/Call","params":{"name":"x"}}`,
		"with a space":                   `{"jsonrpc":"2.0","id":1,"method":"tools/call ","params":{"name":"x"}}`,
		"with a zero":                    `{"jsonrpc":"2.0","id":1,"method":"tools/call\u0000","params":{"name":"x"}}`,
		"with a letter that looks alike": `{"jsonrpc":"2.0","id":1,"method":"tools/cal\u217c","params":{"name":"x"}}`,
		"a method that is a list":        `{"jsonrpc":"2.0","id":1,"method":["tools/call"],"params":{"name":"x"}}`,
		"a method that is null":          `{"jsonrpc":"2.0","id":1,"method":null,"params":{"name":"x"}}`,
		"a request and a response":       `{"jsonrpc":"2.0","id":1,"method":"tools/call","result":{},"params":{"name":"x"}}`,
		"params twice":                   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"},"params":{"name":"y"}}`,
		"the name twice":                 call(`{"name":"x","name":"y"}`),
		"the method before a zero":       `{"jsonrpc":"2.0","id":1,"method\u0000":"tools/call","method":"ping","params":{"name":"x"}}`,
		"the name in another case":       call(`{"name":"x","Name":"y"}`),
		"the arguments in another case":  call(`{"name":"x","arguments":{},"ARGUMENTS":{"a":1}}`),
		"an unknown parameter":           call(`{"name":"x","args":{"a":1}}`),
		"an argument twice":              call(`{"name":"x","arguments":{"a":1,"a":2}}`),
		"an inner argument twice":        call(`{"name":"x","arguments":{"a":[{"b":1,"b":2}]}}`),
		"no name":                        call(`{"arguments":{}}`),
		"a name that is a number":        call(`{"name":7}`),
		"arguments that are a list":      call(`{"name":"x","arguments":[]}`),
		"arguments that are a text":      call(`{"name":"x","arguments":"{}"}`),
		"params that are a list":         call(`["x"]`),
		"no params":                      `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`,
		"broken JSON":                    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}`,
		"two messages in a line":         ping + readCall,
		"after a zero":                   "\x00" + readCall,
		"after a byte order mark":        "\ufeff" + readCall,
		"not UTF-8":                      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + "\xff" + `"}}`,
		"a text":                         `"tools/call"`,
		"an empty batch":                 `[]`,
		"a batch in a batch":             `[[` + readCall + `]]`,
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, mcpgate.Options{})
			r.nod.decides(func(schemas.Request) *schemas.Decision { assert.Fail(t, "nod was asked"); d := allow(); return &d })
			r.client.says(t, line)
			assert.Contains(t, r.client.hears(t), `"error":{"code":-32`)
			r.reachesOnlyPing()
		})
	}
}

// A tools/call without an id gets no answer, and does not reach the server.
func TestACallWithoutAnIDIsDropped(t *testing.T) {
	for _, id := range []string{``, `"id":null,`, `"id":{},`, `"id":true,`} {
		r := start(t, mcpgate.Options{})
		r.client.says(t, `{"jsonrpc":"2.0",`+id+`"method":"tools/call","params":{"name":"x"}}`)
		r.reachesOnlyPing()
		assert.Empty(t, r.nod.asked)
		assert.Empty(t, r.ends())
	}
}

// Readers differ in the characters that end a line. A message of the gate contains none of these
// characters, so that no reader takes a part of the message for a whole message.
func TestAMessageHasNoHiddenLines(t *testing.T) {
	r := start(t, mcpgate.Options{})
	r.client.says(t, `{"jsonrpc":"2.0","id":2,"method":"ping","params":`+"\r"+readCall+"\r"+`}`)
	assert.Equal(t, `{"jsonrpc":"2.0","id":2,"method":"ping","params":`+readCall+`}`, r.server.hears(t))
	r.client.says(t, `{"jsonrpc":"2.0","id":3,"method":"ping","params":{"a":"`+"\u2028\u2029\u0085"+`"}}`)
	assert.Equal(t, `{"jsonrpc":"2.0","id":3,"method":"ping","params":{"a":"\u2028\u2029\u0085"}}`, r.server.hears(t))
}

// nod decides each call in a batch separately.
func TestACallInABatchIsJudged(t *testing.T) {
	r := start(t, mcpgate.Options{})
	go r.client.says(t, `[`+ping+`,`+readCall+`,`+strings.Replace(readCall, `"id":1`, `"id":2`, 1)+`]`)
	assert.Equal(t, ping, r.server.hears(t))
	one, two := r.next(), r.next()
	one.decisions <- allow()
	assert.Contains(t, r.server.hears(t), `"method":"tools/call"`)
	two.decisions <- byAnn(schemas.Denied)
	refusalOf(t, r.client.hears(t))
	r.reachesOnlyPing()
}

// The gate refuses both of two open requests with the same id, because the client could take the answer
// to one for the answer to the other.
func TestAnIDThatIsUsedTwiceIsRefused(t *testing.T) {
	for name, second := range map[string]string{
		"a call":         strings.Replace(readCall, `"id":1`, `"id":1.0`, 1),
		"another method": `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`,
	} {
		t.Run("after a request that the server has, "+name, func(t *testing.T) {
			r := start(t, mcpgate.Options{})
			r.client.says(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			r.server.hears(t)
			r.client.says(t, second)
			assert.Contains(t, r.client.hears(t), "its id is that of another request")
			assert.Empty(t, r.nod.asked)
			r.reachesOnlyPing()
		})
		t.Run(name, func(t *testing.T) {
			r := start(t, mcpgate.Options{})
			r.client.says(t, readCall)
			q := r.next()
			r.client.says(t, second)
			assert.Contains(t, refusalOf(t, r.client.hears(t)), "another request with the same id")
			assert.Contains(t, r.client.hears(t), "its id is that of another request")
			assert.Equal(t, left{q.PendingID, "the client sent another request with the same id", false}, <-r.nod.left)
			q.decisions <- allow()
			r.reachesOnlyPing()
		})
	}
}

// A server cannot answer a call that it did not get. It can neither send the answer before the call,
// nor use another id that some clients take for that of the call.
func TestAServerCannotAnswerAnUndecidedCall(t *testing.T) {
	r := start(t, mcpgate.Options{})
	const forged = `,"result":{"content":[{"type":"text","text":"forged"}]}}`
	r.server.says(t, `{"jsonrpc":"2.0","id":1`+forged)
	r.client.says(t, readCall)
	q := r.next()
	for _, id := range []string{`1.0`, `"1"`, `"1.0"`, `" 1"`, `true`, `[1]`, `null`, `""`} {
		r.server.says(t, `{"jsonrpc":"2.0","id":`+id+forged)
	}
	r.server.says(t, `{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":"forged"}}`)
	r.server.says(t, `{"jsonrpc":"2.0"`+forged)
	r.server.says(t, "debug: not a message")
	r.server.says(t, `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
	assert.Contains(t, r.client.hears(t), "notifications/message")
	q.decisions <- byAnn(schemas.Denied)
	assert.Equal(t, "Denied by Ann.", refusalOf(t, r.client.hears(t)))
}

// A server can answer each request only once. It may also report that it could not read a request.
func TestAServerAnswersOnce(t *testing.T) {
	r := start(t, mcpgate.Options{})
	r.client.says(t, ping)
	r.server.hears(t)
	unread := `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"unread"}}`
	r.server.says(t, unread)
	assert.Equal(t, unread, r.client.hears(t))
	answer := `{"jsonrpc":"2.0","id":"ping","result":{}}`
	r.server.says(t, answer)
	assert.Equal(t, answer, r.client.hears(t))
	r.server.says(t, answer)
	assert.Empty(t, r.ends())
}

// If a client cancels a call, nod's question ends. The client gets no answer, and the server gets
// neither the call nor the cancellation. If the client's time limit ended the call, the question stays
// pending, for a repetition of the call.
func TestACancelledCall(t *testing.T) {
	for reason, want := range map[string]left{
		`"McpError: MCP error -32001: Request timed out"`: {"", "the client no longer waits for the answer", true},
		`"context deadline exceeded"`:                     {"", "the client no longer waits for the answer", true},
		`"AbortError: This operation was aborted"`:        {"", "the client cancelled the call", false},
		`7`: {"", "the client cancelled the call", false},
	} {
		t.Run(reason, func(t *testing.T) {
			r := start(t, mcpgate.Options{})
			r.client.says(t, readCall)
			q := r.next()
			r.client.says(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":`+reason+`}}`)
			want.id = q.PendingID
			assert.Equal(t, want, <-r.nod.left)
			q.decisions <- allow()
			r.reachesOnlyPing()
			assert.Empty(t, r.ends())
		})
	}
	t.Run("a call that the server has", func(t *testing.T) {
		r := start(t, mcpgate.Options{})
		r.nod.decides(func(schemas.Request) *schemas.Decision { d := allow(); return &d })
		r.client.says(t, readCall)
		r.server.hears(t)
		cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
		r.client.says(t, cancelled)
		assert.Equal(t, cancelled, r.server.hears(t))
	})
}

// If the client or the server is gone, or the gate stops, the gate withdraws its questions. An allow
// that comes later has no effect.
func TestQuestionsEndWithTheirPeers(t *testing.T) {
	for name, row := range map[string]struct {
		goes   func(*rig)
		reason string
	}{
		"the client": {func(r *rig) { _ = r.client.in.Close() }, "the client is gone"},
		"the server": {func(r *rig) { _ = r.server.in.Close() }, "the MCP server is gone"},
		"the gate":   {func(r *rig) { r.stop(errors.New("terminated signal received")) }, "terminated signal received"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, mcpgate.Options{})
			r.client.says(t, readCall)
			q := r.next()
			row.goes(r)
			assert.Equal(t, left{q.PendingID, row.reason, false}, <-r.nod.left)
			q.decisions <- allow()
			rest, _ := r.server.out.ReadString('\n') // ReadString returns at the end of the server's input
			assert.Empty(t, rest)
			assert.Empty(t, r.ends())
		})
	}
}

// While a call waits, a client that asked for progress gets notifications. Another client gets none.
func TestProgressWhileACallWaits(t *testing.T) {
	r := start(t, mcpgate.Options{Progress: time.Millisecond})
	r.client.says(t, strings.Replace(readCall, `"params":{`, `"params":{"_meta":{"progressToken":"p1"},`, 1))
	q := r.next()
	for range 3 {
		line := r.client.hears(t)
		assert.Contains(t, line, `"method":"notifications/progress"`)
		assert.Contains(t, line, `"progressToken":"p1"`)
	}
	q.decisions <- byAnn(schemas.Denied)
	for line := r.client.hears(t); !strings.Contains(line, "isError"); line = r.client.hears(t) {
		assert.Contains(t, line, "notifications/progress")
	}
	assert.Empty(t, r.ends(), "no notification follows the answer")

	r = start(t, mcpgate.Options{Progress: time.Millisecond})
	r.client.says(t, readCall)
	q = r.next()
	r.client.says(t, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	r.server.hears(t)
	q.decisions <- byAnn(schemas.Denied)
	assert.Contains(t, r.client.hears(t), "isError")
	assert.Empty(t, r.ends())
}

// The gate passes the server's requests on to the client, and logs them. The prompt for the next call
// shows them.
func TestRequestsOfTheServerAreShown(t *testing.T) {
	var log testlog.Buffer
	r := start(t, mcpgate.Options{Log: logTo(&log)})
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[]}}`,
		`{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"message":"your key?"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"elicitation/create","params":{"message":"your key?"}}`,
	} {
		r.server.says(t, line)
		assert.Equal(t, line, r.client.hears(t))
	}
	r.client.says(t, `{"jsonrpc":"2.0","id":2,"result":{"action":"accept","content":{"key":"k"}}}`)
	assert.Contains(t, r.server.hears(t), `"accept"`)
	r.client.says(t, readCall)
	q := r.next()
	assert.Contains(t, q.Reason, "answered by the client's model (sampling/createMessage, 1 so far)")
	assert.Contains(t, q.Reason, "questions of its own (elicitation/create, 2 so far)")
	assert.Contains(t, log.String(), "elicitation/create")
	assert.NotContains(t, log.String(), "your key")
}

func TestCheckName(t *testing.T) {
	for _, good := range []string{"fs", "my-server", "a_b", "A.1", "x_1_y"} {
		assert.NoError(t, mcpgate.CheckName(good), good)
	}
	for _, bad := range []string{"", "_a", "a_", "a__b", "a b", "a*", "ä", "a/b", "..", strings.Repeat("a", 101)} {
		assert.Error(t, mcpgate.CheckName(bad), bad)
	}
}

// Besides the arguments, people see the other parameters of a call, except those that only identify the
// call. If a person edits those parameters, nod denies the call.
func TestParametersBesideTheArguments(t *testing.T) {
	call := func(more string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"a":1},` + more + `}}`
	}
	for more, want := range map[string]string{
		`"_meta":{"progressToken":1,"claudecode/toolUseId":"toolu_1"}`:            `{"a":1}`,
		`"_meta":{"progressToken":1,"mode":"unsafe"}`:                             `{"a":1,"beside the arguments":{"_meta":{"mode":"unsafe"}}}`,
		`"_meta":{"traceparent":"` + strings.Repeat("x", 2000) + `"}`:             `{"a":1,"beside the arguments":{"_meta":{"traceparent":"` + strings.Repeat("x", 2000) + `"}}}`,
		`"inputResponses":{"q":{"action":"accept"}},"requestState":"s","task":{}`: `{"a":1,"beside the arguments":{"inputResponses":{"q":{"action":"accept"}},"requestState":"s","task":{}}}`,
	} {
		r := start(t, mcpgate.Options{})
		r.client.says(t, call(more))
		q := r.next()
		assert.JSONEq(t, want, string(q.ActionDetails))
		q.decisions <- allow()
		sent := r.server.hears(t)
		assert.Contains(t, sent, `"arguments":{"a":1}`)
		assert.NotContains(t, sent, "beside")
	}
	for edit, want := range map[string]string{
		`{"a":2,"beside the arguments":{"_meta":{"mode":"unsafe"}}}`: `{"a":2}`,
		`{"a":2,"beside the arguments":{"_meta":{"mode":"other"}}}`:  "",
		`{"a":2}`: "",
	} {
		r := start(t, mcpgate.Options{})
		r.client.says(t, call(`"_meta":{"mode":"unsafe"}`))
		d := allow()
		d.UpdatedInput = []byte(edit)
		r.next().decisions <- d
		if want == "" {
			assert.Contains(t, refusalOf(t, r.client.hears(t)), "cannot be changed")
			continue
		}
		assert.Contains(t, r.server.hears(t), `"params":{"_meta":{"mode":"unsafe"},"arguments":`+want)
	}
	r := start(t, mcpgate.Options{})
	r.client.says(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"beside the arguments":1},"requestState":"s"}}`)
	assert.Contains(t, refusalOf(t, r.client.hears(t)), "nod reserves")
}

// People see what the server asked the client's user or the model. A prompt quotes it as words of the
// server.
func TestTheWordsOfTheServersRequestsAreShown(t *testing.T) {
	r := start(t, mcpgate.Options{})
	r.server.says(t, `{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"Your password?","requestedSchema":{}}}`)
	r.client.hears(t)
	r.server.says(t, `{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"say `+strings.Repeat("x", 500)+`"}}]}}`)
	r.client.hears(t)
	r.client.says(t, readCall)
	q := r.next()
	assert.Contains(t, q.Reason, `asks the client's user questions of its own (elicitation/create, 1 so far). Its last words there: "Your password?".`)
	assert.Contains(t, q.Reason, `(sampling/createMessage, 1 so far). Its last words there: "say xxx`)
	assert.Less(t, len(q.Reason), 700)
	q.decisions <- byAnn(schemas.Denied)
	r.client.hears(t)
}
