//go:build unix

package codex_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/codex"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

// approval returns an approval request for a command, as Codex 0.169 sends it. more is JSON text for
// further params.
func approval(id, more string) string {
	return `{"id":` + id + `,"method":"item/commandExecution/requestApproval","params":{"kind":"command","threadId":"thr-1","turnId":"turn-1","itemId":"call_1",` +
		`"startedAtMs":1,"environmentId":"local","command":"/bin/bash -lc 'make release'","cwd":"/p/deep"` + more + "}}\n"
}

const (
	begins  = `{"method":"item/started","params":{"threadId":"thr-1","turnId":"turn-1","item":{"type":"fileChange","id":"call_1","status":"inProgress","changes":[{"path":"/p/a","kind":{"type":"add"},"diff":"x\n"}]}}}` + "\n"
	changes = `{"id":7,"method":"item/fileChange/requestApproval","params":{"threadId":"thr-1","turnId":"turn-1","itemId":"call_1","startedAtMs":1,"reason":"needs to"}}` + "\n"
)

func TestCodexGetsThePersonsAnswer(t *testing.T) {
	t.Parallel()
	always := nodtest.Answer{Kind: schemas.AllowAlways}
	edited := nodtest.Answer{Kind: schemas.AllowOnce, Input: []byte(`{"command":"ls","cwd":"/p/deep"}`)}
	for name, c := range map[string]struct {
		id, more string
		answer   nodtest.Answer
		want     string
	}{
		"allow":       {`0`, ``, nodtest.Allow(), "accept"},
		"a text's id": {`"a\u0062-1"`, ``, nodtest.Allow(), "accept"},
		"deny":        {`12`, ``, nodtest.Deny("no"), "decline"},
		"for session": {`1`, `,"availableDecisions":["accept","acceptForSession","cancel"]`, always, "acceptForSession"},
		"edited":      {`1`, ``, edited, "decline"},
		"null fields": {`1`, `,"networkApprovalContext":null,"additionalPermissions":null,"approvalId":null`, nodtest.Allow(), "accept"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, codex.Options{})
			r.says(approval(c.id, c.more))
			p := r.asked()
			r.answers <- c.answer
			assert.Equal(t, fmt.Sprintf(`{"id":%s,"result":{"decision":%q}}`+"\n", c.id, c.want), r.heard())
			assert.JSONEq(t, `{"command":"make release","cwd":"/p/deep"}`, string(p.Request.ActionDetails))
			assert.Equal(t, []string{"Bash", "thr-1", "call_1", "Codex", "devbox", "ann", "/p"}, []string{
				p.Request.ToolName, p.SessionID, p.Request.ToolCallID, p.Request.AgentName, p.Request.Host, p.Request.User, p.Request.Project,
			})
		})
	}
}

func TestRulesAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, codex.Options{})
	r.says(strings.Replace(approval("1", ""), "make release", "echo hello", 1))
	assert.Contains(t, r.heard(), `"accept"`)
	assert.Empty(t, r.prompts)
}

// If an approval request is not for exactly one command in a known project, no rule decides it. A
// person decides, and sees all fields of the request.
func TestRulesDecideOnlySingleCommands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to string }{
		"network":     {`"startedAtMs":1`, `"networkApprovalContext":{"host":"x.test","protocol":"https"}`},
		"permissions": {`"startedAtMs":1`, `"additionalPermissions":{"network":{"enabled":true}}`},
		"stdin":       {`"kind":"command"`, `"kind":"stdin"`},
		"odd kind":    {`"kind":"command"`, `"kind":7`},
		"elsewhere":   {`"environmentId":"local"`, `"environmentId":"box"`},
		"no command":  {`"command":"/bin/bash -lc 'echo hello'"`, `"command":null`},
		"no cwd":      {`"cwd":"/p/deep"`, `"cwd":null`},
		"no project":  {`"threadId":"thr-1"`, `"threadId":"thr-2"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, codex.Options{})
			r.says(strings.Replace(strings.Replace(approval("1", ""), "make release", "echo hello", 1), c.from, c.to, 1))
			p := r.asked()
			r.answers <- nodtest.Deny("no")
			assert.Contains(t, r.heard(), `"decline"`)
			assert.Equal(t, "codex_approval", p.Request.ToolName)
			assert.Contains(t, string(p.Request.ActionDetails), c.to)
		})
	}
}

// Codex runs a command by a shell. The sidecar shows the command without the shell if the command is a
// single argument with simple quoting. Otherwise it shows everything.
func TestTheShellAroundACommandIsRemoved(t *testing.T) {
	t.Parallel()
	for command, shown := range map[string]string{
		`/bin/bash -lc 'make release'`:       `make release`,
		`/usr/bin/zsh -c make`:               `make`,
		`/bin/bash -lc "make $(x)"`:          `/bin/bash -lc "make $(x)"`,
		`/bin/bash -lc 'make' 'x'`:           `/bin/bash -lc 'make' 'x'`,
		`/bin/bash -lc 'make '\''a'\'' b'`:   `/bin/bash -lc 'make '\''a'\'' b'`,
		`/tmp/bash -lc 'make'`:               `/tmp/bash -lc 'make'`,
		`/bin/bash -lc make; rm -rf /`:       `/bin/bash -lc make; rm -rf /`,
		`/bin/bash --rcfile /tmp/x -lc make`: `/bin/bash --rcfile /tmp/x -lc make`,
	} {
		r := newRig(t, codex.Options{})
		encoded, err := json.Marshal(command)
		require.NoError(t, err)
		r.says(strings.Replace(approval("1", ""), `"/bin/bash -lc 'make release'"`, string(encoded), 1))
		p := r.asked()
		r.answers <- nodtest.Deny("no")
		assert.Contains(t, r.heard(), `"decline"`)
		var details struct{ Command string }
		require.NoError(t, json.Unmarshal(p.Request.ActionDetails, &details))
		assert.Equal(t, shown, details.Command)
	}
}

// The prompt for file changes shows the changes that Codex reported when it started them. If Codex has
// reported none in this turn, the client gets the approval request.
func TestFileChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t, codex.Options{})
	r.says(changes)
	assert.Equal(t, changes, r.reads())
	r.says(begins)
	assert.Equal(t, begins, r.reads())
	r.says(changes)
	p := r.asked()
	r.answers <- nodtest.Allow()
	assert.Equal(t, `{"id":7,"result":{"decision":"accept"}}`+"\n", r.heard())
	assert.JSONEq(t, `{"changes":[{"path":"/p/a","kind":{"type":"add"},"diff":"x\n"}]}`, string(p.Request.ActionDetails))
	assert.Equal(t, schemas.ActionFileWrite, p.Request.ActionType)
	assert.Equal(t, "needs to", p.Request.Reason)
	assert.Equal(t, []string{"/p", "p"}, []string{p.Request.Project, p.Request.SessionLabel})

	done := `{"method":"turn/completed","params":{"threadId":"thr-1","turn":{"id":"turn-1"}}}` + "\n"
	r.says(done)
	assert.Equal(t, done, r.reads())
	r.says(changes)
	assert.Equal(t, changes, r.reads(), "what a turn began is over with it")
}

// If the sidecar does not know the directory of a thread, nod does not know the settings of the
// project, and no rule decides about file changes.
func TestFileChangesInAnUnknownProject(t *testing.T) {
	t.Parallel()
	r := newRig(t, codex.Options{})
	elsewhere := strings.NewReplacer("thr-1", "thr-9")
	r.says(elsewhere.Replace(begins))
	r.reads()
	r.says(elsewhere.Replace(changes))
	p := r.asked()
	r.answers <- nodtest.Allow()
	assert.Equal(t, `{"id":7,"result":{"decision":"accept"}}`+"\n", r.heard())
	assert.Equal(t, "codex_approval", p.Request.ToolName)
	assert.Contains(t, string(p.Request.ActionDetails), "/p/a")
}

func TestEveryOtherLinePassesUnchanged(t *testing.T) {
	t.Parallel()
	r := newRig(t, codex.Options{})
	for _, line := range []string{
		"\n", "no json\n", "{}\r\n", "\xff\x00\n", `{"id":1,"method":"item/tool/requestUserInput","params":{}}` + "\n",
		`{"method":"item/commandExecution/requestApproval","params":{"threadId":"t"}}` + "\n", strings.Repeat("x", 1<<20) + "\n",
		` { "id" : 1.0e0 , "result" : {} }` + "\n",
	} {
		if !strings.Contains(line, "\xff") { // the orders to the fake Codex are JSON, which cannot contain the byte 0xff
			r.says(line)
			assert.Equal(t, line, r.reads())
		}
		if line != "\n" && !strings.Contains(line, "\xff") {
			r.sends(line)
			assert.Equal(t, line, r.heard())
		}
	}
}

// When Codex no longer waits for the answer to an approval request, the sidecar withdraws the request
// and sends Codex nothing.
func TestARequestThatCodexNoLongerNeedsIsWithdrawn(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"resolved": `{"method":"serverRequest/resolved","params":{"threadId":"thr-1","requestId":1}}`,
		"item":     `{"method":"item/completed","params":{"threadId":"thr-1","turnId":"turn-1","item":{"type":"commandExecution","id":"call_1"}}}`,
		"turn":     `{"method":"turn/completed","params":{"threadId":"thr-1","turn":{"id":"turn-1","status":"interrupted"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, codex.Options{})
			r.says(approval("1", ""))
			p := r.asked()
			other := strings.NewReplacer("thr-1", "thr-2", `"requestId":1`, `"requestId":"1"`).Replace(line) + "\n"
			r.says(other) // an event about another approval request must not withdraw this one
			assert.Equal(t, other, r.reads())
			r.says(line + "\n")
			assert.Equal(t, line+"\n", r.reads())
			r.answers <- nodtest.Answer{}
			assert.Equal(t, "no longer needed by Codex", r.withdrawn(p))
			r.sends("last\n")
			assert.Equal(t, "last\n", r.heard(), "nothing was answered")
		})
	}
}

// When Codex has resolved a request, the sidecar no longer sends a decision about it.
func TestALateDecisionIsNotSentToCodex(t *testing.T) {
	t.Parallel()
	r := newRig(t, codex.Options{})
	asked, decided := make(chan bool), make(chan bool)
	var calls atomic.Int32
	r.decides = func(q schemas.Request) (schemas.Decision, bool) {
		if calls.Add(1) == 1 {
			asked <- true
			<-decided
		}
		return schemas.Decision{SessionID: q.SessionID, PendingID: q.PendingID, Outcome: schemas.Allowed}, true
	}
	r.says(approval("1", ""))
	<-asked
	resolved := `{"method":"serverRequest/resolved","params":{"threadId":"thr-1","requestId":1}}` + "\n"
	r.says(resolved)
	assert.Equal(t, resolved, r.reads())
	decided <- true
	require.Eventually(t, func() bool { return r.abandoned.Load() == 1 }, waitAtMost, time.Millisecond, "nod hears that the allowed call never runs")
	for id := 2; id < 20; id++ { // if the sidecar sent a late answer, it would be among these answers
		r.says(approval(fmt.Sprint(id), ""))
		assert.Equal(t, fmt.Sprintf(`{"id":%d,"result":{"decision":"accept"}}`+"\n", id), r.heard())
	}
}

func TestRequestsAreWithdrawnIfEitherSideEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(r *rig)
		why  string
		exit int
	}{
		"Codex ends":     {func(r *rig) { r.sends(`{"exit":42}` + "\n") }, "the Codex server is gone", 42},
		"Codex dies":     {func(r *rig) { r.sends(`{"die":true}` + "\n") }, "the Codex server is gone", 137},
		"the client":     {func(r *rig) { _ = r.in.Close() }, "the client of the Codex server is gone", 0},
		"it is stopped":  {func(r *rig) { r.cancel() }, "the Codex server is gone", 143},
		"half an answer": {func(r *rig) { _, _ = io.WriteString(r.in, `{"exit":3}`); _ = r.in.Close() }, "the client of the Codex server is gone", 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, codex.Options{})
			r.says(approval("1", ""))
			p := r.asked()
			c.end(r)
			assert.Equal(t, c.exit, r.ended())
			r.answers <- nodtest.Answer{}
			assert.Equal(t, c.why, r.withdrawn(p))
		})
	}
}

func TestHalfALineAtTheEndPasses(t *testing.T) {
	t.Parallel()
	r := newRig(t, codex.Options{})
	r.says(`{"id":1,"meth`)
	r.sends(`{"exit":0}` + "\n")
	assert.Equal(t, `{"id":1,"meth`, r.reads())
}

// The sidecar declines both of two open requests with the same id, because Codex could not distinguish
// their answers.
func TestAnIDThatIsUsedTwiceIsDeclined(t *testing.T) {
	t.Parallel()
	r := newRig(t, codex.Options{})
	r.says(approval("1", ""))
	p := r.asked()
	r.says(approval("1", ""))
	for range 2 {
		assert.Equal(t, `{"id":1,"result":{"decision":"decline"}}`+"\n", r.heard())
	}
	r.answers <- nodtest.Answer{}
	assert.Equal(t, "replaced by a request of Codex with the same id", r.withdrawn(p))
}

func TestWithoutNodTheHostAsksItsUser(t *testing.T) {
	t.Parallel()
	r := newRig(t, codex.Options{})
	r.missing.Store(true)
	r.says(approval("1", ""))
	assert.Equal(t, approval("1", ""), r.reads(), "the client asks")
	r.sends(`{"id":1,"result":{"decision":"accept"}}` + "\n")
	assert.Equal(t, `{"id":1,"result":{"decision":"accept"}}`+"\n", r.heard())

	r = newRig(t, codex.Options{Deny: true})
	r.missing.Store(true)
	r.says(approval("1", ""))
	assert.Equal(t, `{"id":1,"result":{"decision":"decline"}}`+"\n", r.heard())
	r.says(changes)
	assert.Equal(t, `{"id":7,"result":{"decision":"decline"}}`+"\n", r.heard())
}

// If nod refuses a request, Codex gets "decline".
func TestARequestThatNodRefusesIsDeclined(t *testing.T) {
	t.Parallel()
	r := newRig(t, codex.Options{})
	r.says(strings.Replace(approval("1", ""), "make", strings.Repeat("x", schemas.MaxRequestBytes), 1))
	assert.Equal(t, `{"id":1,"result":{"decision":"decline"}}`+"\n", r.heard())
}

func TestAFailedStartOfCodexIsAnError(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{nil, {"/nonexistent/codex"}} {
		_, err := codex.Run(t.Context(), argv, strings.NewReader(""), io.Discard, os.Stderr, nil, codex.Options{})
		require.Error(t, err)
	}
}
