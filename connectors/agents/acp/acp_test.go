package acp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/acp"
	"github.com/nodbus/nod/schemas"
)

// The record that this process waits ends before the agent gets its answer, because nod takes the calls of a
// killed process that has a record for calls that never ran.
func TestTheWaitEndsBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for _, turn := range []bool{false, true} {
		t.Run(fmt.Sprint("turn ", turn), func(t *testing.T) {
			ending, end := make(chan bool), make(chan bool)
			r := start(t, acp.Options{Turns: turn, Waits: func(string, string) (func(), error) {
				return sync.OnceFunc(func() { close(ending); <-end }), nil
			}})
			var asks *submission
			d := person(schemas.Allowed, "yes", schemas.AllowOnce)
			if turn {
				asks = r.turnEnds()
				d = person(schemas.Allowed, "reply", schemas.AllowOnce)
				d.Message = "go on"
				go func() { _, _ = r.editor.out.ReadString('\n') }()
			} else {
				r.agent.says(t, request("1", "s", "make"))
				asks = <-r.nod.submissions
			}
			asks.decisions <- d
			select { // nobody reads the answer yet
			case <-ending:
			case <-time.After(10 * time.Second):
				require.Fail(t, "the record has not ended before the answer")
			}
			close(end)
			require.Contains(t, r.agent.hears(t), map[bool]string{true: "go on", false: `"optionId":"yes"`}[turn])
		})
	}
}

// TestDecisionsBecomeOptions: the agent gets an option that allows ("yes", "always") only if the
// decision allows the request. If a rule allows the request but the agent offers no option for that,
// the editor asks its user.
func TestDecisionsBecomeOptions(t *testing.T) {
	t.Parallel()
	rule := func(d schemas.Decision) schemas.Decision {
		d.By = schemas.By{Kind: schemas.ByPolicy, Name: "allow X"}
		return d
	}
	edited := person(schemas.Allowed, "yes", schemas.AllowOnce)
	edited.UpdatedInput = []byte(`{"command":"ls"}`)
	const editor = "the editor"
	for name, c := range map[string]struct {
		d    schemas.Decision
		want string
	}{
		"yes":                                 {person(schemas.Allowed, "yes", schemas.AllowOnce), "yes"},
		"always":                              {person(schemas.Allowed, "always", schemas.AllowAlways), "always"},
		"a rule's":                            {rule(person(schemas.Allowed, "yes", schemas.AllowOnce)), "yes"},
		"a rule's allow without an option":    {rule(schemas.Decision{Outcome: schemas.Allowed}), "yes"},
		"an edit by a person":                 {edited, "no"},
		"an edit by a rule":                   {rule(edited), editor},
		"an option not offered":               {person(schemas.Allowed, "other", schemas.AllowOnce), "no"},
		"a rule's option that is not offered": {rule(person(schemas.Allowed, "other", schemas.AllowOnce)), editor},
		"allowed with a reject option":        {person(schemas.Allowed, "no", schemas.RejectOnce), "no"},
		"allowed with a reject kind":          {person(schemas.Allowed, "yes", schemas.RejectOnce), "no"},
		"denied":                              {person(schemas.Denied, "no", schemas.RejectOnce), "no"},
		"denied with an allow option":         {person(schemas.Denied, "yes", schemas.AllowOnce), "no"},
		"timed out":                           {person(schemas.TimedOut, "", ""), "no"},
		"dismissed":                           {person(schemas.Cancelled, "", ""), ""},
		"withdrawn elsewhere":                 {person(schemas.Withdrawn, "", ""), ""},
		"nothing":                             {schemas.Decision{}, "no"},
		"an unknown outcome":                  {person("granted", "yes", schemas.AllowOnce), "no"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, acp.Options{})
			r.nod.decided(c.d)
			asking := request("1", "s", "make")
			r.agent.says(t, asking)
			if c.want == editor {
				assert.Equal(t, asking, r.editor.hears(t))
			} else {
				assert.Equal(t, answered("1", c.want), r.agent.hears(t))
			}
			toEditor, toAgent := r.ends()
			assert.Empty(t, toEditor+toAgent)
		})
	}
}

// TestALastingOptionDoesNotReplaceAMissingOne: if the agent's only option to deny is permanent, a
// denial of one call becomes "cancelled". If the agent's only option to allow is "always", a rule's
// allow of one call does not become "always".
func TestALastingOptionDoesNotReplaceAMissingOne(t *testing.T) {
	t.Parallel()
	r := start(t, acp.Options{})
	r.nod.decided(person(schemas.TimedOut, "", ""))
	r.agent.says(t, strings.Replace(request("1", "s", "make"), `"kind":"reject_once"`, `"kind":"reject_always"`, 1))
	assert.Equal(t, answered("1", ""), r.agent.hears(t))

	r.nod.decided(schemas.Decision{Outcome: schemas.Allowed, By: schemas.By{Kind: schemas.ByPolicy}})
	onlyAlways := strings.Replace(request("2", "s", "make"), `{"optionId":"yes","name":"Yes","kind":"allow_once"},`, "", 1)
	r.agent.says(t, onlyAlways)
	assert.Equal(t, onlyAlways, r.editor.hears(t), "a rule's allow is no always")
	r.ends()
}

// TestTheEditorIsAskedIfNodIsUnavailable: if nod is unavailable, the editor asks its user. After
// another failure of nod, the editor asks its user only with Race; without Race, the sidecar refuses
// the request. With Deny, the sidecar refuses the request after every failure.
func TestTheEditorIsAskedIfNodIsUnavailable(t *testing.T) {
	t.Parallel()
	down := schemas.Errorf(schemas.CodeUnavailable, "nod is not running")
	failing := func(err error) func(*fakeNod) acp.Connect {
		return func(nod *fakeNod) acp.Connect { nod.fails(err); return nod.connect }
	}
	unconnected := func(err error) func(*fakeNod) acp.Connect {
		return func(*fakeNod) acp.Connect {
			return func(context.Context) (acp.Nod, error) { return nil, err }
		}
	}
	for name, c := range map[string]struct {
		connect   func(*fakeNod) acp.Connect
		options   acp.Options
		editor    bool
		withdrawn bool
	}{
		"not running":             {unconnected(down), acp.Options{}, true, false},
		"not running, deny":       {unconnected(down), acp.Options{Deny: true}, false, false},
		"not running, race":       {unconnected(down), acp.Options{Race: true}, true, false},
		"not running, race, deny": {unconnected(down), acp.Options{Race: true, Deny: true}, false, false},
		"keys refused":            {unconnected(errors.New("these keys are refused")), acp.Options{}, false, false},
		"nothing":                 {unconnected(nil), acp.Options{}, false, false},
		"went away":               {failing(down), acp.Options{}, true, true},
		"went away, deny":         {failing(down), acp.Options{Deny: true}, false, true},
		"refused":                 {failing(schemas.Errorf(schemas.CodeValidation, "request: is too long")), acp.Options{}, false, false},
		"refused, race":           {failing(schemas.Errorf(schemas.CodeForbidden, "no")), acp.Options{Race: true}, true, false},
		"no approver is set":      {failing(schemas.Errorf(schemas.CodeUndeliverable, "no approver")), acp.Options{}, false, false},
		"the connection broke":    {failing(errors.New("connection reset")), acp.Options{}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			nod := newNod(t)
			r := startWith(t, nod, c.connect(nod), c.options)
			asking := request("1", "s", "make")
			r.agent.says(t, asking)
			if c.editor {
				assert.Equal(t, asking, r.editor.hears(t))
			} else {
				assert.Equal(t, answered("1", "no"), r.agent.hears(t))
			}
			toEditor, toAgent := r.ends()
			assert.Empty(t, toEditor+toAgent)
			assert.Len(t, nod.withdrawn, map[bool]int{true: 1}[c.withdrawn])
		})
	}
}

// TestTheSidecarConnectsAgainForTheNextRequest: if the sidecar could not connect to nod for one
// request, it tries again for the next request.
func TestTheSidecarConnectsAgainForTheNextRequest(t *testing.T) {
	t.Parallel()
	nod, tries := newNod(t), 0
	r := startWith(t, nod, func(context.Context) (acp.Nod, error) {
		if tries++; tries == 1 {
			return nil, schemas.Errorf(schemas.CodeUnavailable, "not running")
		}
		return nod, nil
	}, acp.Options{})
	r.agent.says(t, request("1", "s", "make"))
	r.editor.hears(t)
	for _, id := range []string{"2", "3"} {
		r.agent.says(t, request(id, "s", "make"))
		(<-nod.submissions).decisions <- person(schemas.Allowed, "yes", schemas.AllowOnce)
		assert.Equal(t, answered(id, "yes"), r.agent.hears(t))
	}
	assert.Equal(t, 2, tries, "once connected it stays so")
	r.ends()
}

// TestAnErrorAfterTheReceiptRefusesTheRequest: if nod fails after it has stored a request, the sidecar
// refuses the request. With Race the request stays open, because the editor already shows it.
func TestAnErrorAfterTheReceiptRefusesTheRequest(t *testing.T) {
	t.Parallel()
	for _, race := range []bool{false, true} {
		t.Run(fmt.Sprint("race=", race), func(t *testing.T) {
			r := start(t, acp.Options{Race: race})
			asking := request("1", "s", "make")
			r.agent.says(t, asking)
			a := <-r.nod.submissions
			if race {
				assert.Equal(t, asking, r.editor.hears(t))
			}
			a.errors <- schemas.Errorf(schemas.CodeNotFound, "nod no longer knows it")
			if race {
				r.editor.says(t, answered("1", "always"))
				assert.Equal(t, answered("1", "always"), r.agent.hears(t))
			} else {
				assert.Equal(t, answered("1", "no"), r.agent.hears(t))
			}
			toEditor, toAgent := r.ends()
			assert.Empty(t, toEditor+toAgent)
		})
	}
}

func TestAPanicRefuses(t *testing.T) {
	t.Parallel()
	r := start(t, acp.Options{})
	r.nod.next <- func(context.Context, *submission) (acp.Waiting, error) { panic("boom") }
	r.agent.says(t, request("1", "s", "make"))
	assert.Equal(t, answered("1", "no"), r.agent.hears(t))
	r.ends()
	assert.NotContains(t, r.log.String(), "make", "what was asked is not logged")
}

// TestARequestThatNodCannotShowGoesToTheEditor: if nod cannot show a request to a person in full, the
// sidecar passes the request to the editor unchanged.
func TestARequestThatNodCannotShowGoesToTheEditor(t *testing.T) {
	t.Parallel()
	whole := request("1", "s", "make")
	for name, line := range map[string]string{
		"no id":          strings.Replace(whole, `"id":1,`, "", 1),
		"a null id":      strings.Replace(whole, `"id":1`, `"id":null`, 1),
		"an odd id":      strings.Replace(whole, `"id":1`, `"id":{}`, 1),
		"no session":     strings.Replace(whole, `"sessionId":"s"`, `"sessionid":"s"`, 1),
		"no call":        strings.Replace(whole, `"toolCall":`, `"toolcall":`, 1),
		"no options":     `{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c","title":"T"},"options":[]}}`,
		"only noes":      strings.ReplaceAll(strings.ReplaceAll(whole, "allow_once", "reject_once"), "allow_always", "reject_always"),
		"one id twice":   strings.Replace(whole, `"optionId":"always"`, `"optionId":"yes"`, 1),
		"nothing said":   `{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}`,
		"another case":   strings.Replace(whole, `"method":`, `"Method":`, 1),
		"a batch":        "[" + whole + "]",
		"not UTF-8":      strings.Replace(whole, "make", "m\xffke", 1),
		"too many":       strings.Replace(whole, `"options":[`, `"options":[`+strings.Repeat(`{"optionId":"N","name":"n","kind":"reject_always"},`, 20), 1),
		"not whole":      whole[:len(whole)-1],
		"another method": strings.Replace(whole, "request_permission", "request_permissions", 1),
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, acp.Options{})
			for i := range 20 { // the options need distinct ids
				line = strings.Replace(line, `"optionId":"N"`, fmt.Sprintf(`"optionId":"n%d"`, i), 1)
			}
			r.agent.says(t, line)
			assert.Equal(t, line, r.editor.hears(t))
			toEditor, toAgent := r.ends()
			assert.Empty(t, toEditor+toAgent)
			assert.Empty(t, r.nod.submissions)
		})
	}
}

// TestLongTextsAreShortened: the sidecar cuts a title that is too long, and puts the whole title into
// the details. It leaves out an option whose name is too long. It replaces the id of a tool call by a
// hash if the id is too long.
func TestLongTextsAreShortened(t *testing.T) {
	t.Parallel()
	r := start(t, acp.Options{AgentName: "Mine"})
	long := strings.Repeat("ü", 600)
	line := strings.Replace(request("1", "s", "make"), `"title":"Run it"`, `"title":"`+long+`"`, 1)
	line = strings.Replace(line, `"rawInput":{"command":"make"}`, `"rawInput":{}`, 1)
	line = strings.Replace(line, `"name":"Always"`, `"name":"Always `+long+`"`, 1)
	line = strings.Replace(line, `"toolCallId":"call-s"`, `"toolCallId":"`+long+`"`, 1)
	r.agent.says(t, line)
	a := <-r.nod.submissions
	assert.Equal(t, long[:2*511]+"…", a.Title)
	assert.JSONEq(t, `{"title":"`+long+`"}`, string(a.ActionDetails))
	assert.Equal(t, "Mine", a.AgentName)
	assert.Len(t, a.Options, 2)
	assert.Regexp(t, "^h-", a.ToolCallID)
	a.decisions <- person(schemas.Allowed, "yes", schemas.AllowOnce)
	assert.Equal(t, answered("1", "yes"), r.agent.hears(t))
	r.ends()
}

// TestAHugeLinePassesUnchanged: the sidecar passes a line of 8 MB unchanged. It sends nod a permission
// request of 8 MB like any other.
func TestAHugeLinePassesUnchanged(t *testing.T) {
	t.Parallel()
	r := start(t, acp.Options{})
	huge := strings.Repeat("x", 8<<20)
	line := `{"jsonrpc":"2.0","method":"session/update","params":{"blob":"` + huge + `"}}`
	go r.agent.says(t, line)
	require.True(t, line == r.editor.hears(t))
	go r.editor.says(t, line)
	require.True(t, line == r.agent.hears(t))
	r.nod.fails(schemas.Errorf(schemas.CodeValidation, "request: is too long"))
	go r.agent.says(t, strings.Replace(request("1", "s", "make"), `"rawInput":{`, `"rawInput":{"blob":"`+strings.Repeat("x", 200<<10)+`",`, 1))
	assert.Equal(t, answered("1", "no"), r.agent.hears(t))
	toEditor, _ := r.ends()
	assert.Empty(t, toEditor)
}

// TestRequestUsesEarlierUpdates: the request for nod contains the tool's name and kind from earlier updates
// about the same tool call. If an earlier call with the same id has ended, its updates have no effect.
func TestRequestUsesEarlierUpdates(t *testing.T) {
	t.Parallel()
	r := start(t, acp.Options{})
	update := func(fields string) {
		line := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"toolCallId":"call-s",` + fields + `}}}`
		r.agent.says(t, line)
		assert.Equal(t, line, r.editor.hears(t))
	}
	ask := func(id string) schemas.Request {
		r.nod.decided(person(schemas.Denied, "no", schemas.RejectOnce))
		r.agent.says(t, strings.Replace(request(id, "s", "make"), `"kind":"execute",`, "", 1))
		r.agent.hears(t)
		return (<-r.nod.submissions).Request
	}
	update(`"sessionUpdate":"tool_call","kind":"edit"`)
	update(`"sessionUpdate":"tool_call_update","_meta":{"claudeCode":{"toolName":"Write"}}`)
	update(`"sessionUpdate":"plan","kind":"execute"`)
	asked := ask("1")
	assert.Equal(t, "Write", asked.ToolName)
	assert.Equal(t, schemas.ActionFileWrite, asked.ActionType)
	update(`"sessionUpdate":"tool_call_update","status":"completed"`)
	asked = ask("2")
	assert.Equal(t, "acp_other", asked.ToolName)
	assert.Equal(t, schemas.ActionOther, asked.ActionType)
	r.ends()
}

// TestACwdInTheInputIsRenamed: the sidecar renames a field "cwd" in the tool's input. Rules would
// otherwise take its value for the host's working directory.
func TestACwdInTheInputIsRenamed(t *testing.T) {
	t.Parallel()
	r := start(t, acp.Options{})
	r.nod.decided(person(schemas.Denied, "no", schemas.RejectOnce))
	r.agent.says(t, strings.Replace(request("1", "s", "make"), `"rawInput":{`, `"_meta":{"claudeCode":{"toolName":"Bash"}},"rawInput":{ "\u0063wd":"/etc", "n":1.50,`, 1))
	r.agent.hears(t)
	a := <-r.nod.submissions
	assert.Equal(t, "Bash", a.ToolName)
	assert.Equal(t, `{ "cwd, in the input":"/etc", "n":1.50,"command":"make"}`, string(a.ActionDetails))
	r.ends()
}
