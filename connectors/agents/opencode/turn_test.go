package opencode_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/opencode"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

// turnRig is a rig whose connector asks people about the end of a turn. The agent's last message is
// "All done".
func turnRig(t *testing.T) *rig {
	f := newFake(t)
	f.writes("msg_1", "All done")
	r := newRig(t, f)
	r.options.Turns, r.options.Claim = true, claims()
	r.run()
	return r
}

// claims returns a function for Options.Claim that several connectors share.
func claims() func(ctx context.Context, session, id string) (func(), error) {
	var taken sync.Map
	return func(_ context.Context, session, id string) (func(), error) {
		if _, again := taken.LoadOrStore(session+" "+id, true); again {
			return nil, opencode.ErrClaimTaken
		}
		return func() {}, nil
	}
}

// second starts a second connector, which stands for a second process. The function stop ends it.
func (r *rig) second() (stop func()) {
	r.t.Helper()
	other := &rig{fakeOpenCode: r.fakeOpenCode, nod: r.nod, options: r.options, stop: func() {}}
	other.run()
	return other.stop
}

// Two connectors that follow one server ask one question about a turn, and only one of them sends the
// reply. If one connector ends and withdraws the question, the other asks it again.
func TestTwoConnectorsAskOnce(t *testing.T) {
	t.Parallel()
	r := turnRig(t)
	stop := r.second()
	r.idle("ses_1")
	first := r.asked()
	r.says(nodtest.Answer{Kind: schemas.AllowOnce, Message: "now the tests"})
	assert.Equal(t, "prompt ses_1 now the tests", r.replied())
	r.nothingReplied()
	assert.Empty(t, r.prompts)

	r.writes("msg_2", "Tests are done")
	r.idle("ses_1")
	second := r.asked()
	assert.NotEqual(t, first.PendingID, second.PendingID)
	stop()
	r.says(nodtest.Answer{})
	again := r.asked()
	assert.NotEqual(t, second.PendingID, again.PendingID)
	assert.Equal(t, second.Request.ActionDetails, again.Request.ActionDetails)
	r.says(nodtest.Answer{Kind: schemas.AllowOnce, Message: "go on"})
	assert.Equal(t, "prompt ses_1 go on", r.replied())
	r.nothingReplied()
}

// If a process is killed while it sends a reply, people read that the reply may not have reached the
// agent. No process sends the reply again.
func TestAReplyOfAKilledProcessIsReported(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.writes("msg_1", "All done")
	r := newRig(t, f)
	r.options.Turns = true
	r.options.Claim = func(context.Context, string, string) (func(), error) { return nil, opencode.ErrClaimLost }
	r.run()
	r.idle("ses_1")
	r.asked()
	r.says(nodtest.Answer{Kind: schemas.AllowOnce, Message: "now the tests"})
	require.Eventually(t, func() bool { return r.abandoned.Load() == 1 }, waitAtMost, time.Millisecond)
	r.nothingReplied()
}

// idle makes a session work and then end its turn. As OpenCode does, it reports the end twice. failure
// is the turn's error, or nil.
func (f *fakeOpenCode) idle(session string, failure ...map[string]any) {
	f.busy(session)
	for _, e := range failure {
		f.say("session.error", map[string]any{"sessionID": session, "error": e})
		f.say("session.idle", map[string]any{"sessionID": session})
	}
	f.say("session.status", map[string]any{"sessionID": session, "status": map[string]any{"type": "idle"}})
	f.say("session.idle", map[string]any{"sessionID": session})
}

func (f *fakeOpenCode) busy(session string) {
	f.say("session.status", map[string]any{"sessionID": session, "status": map[string]any{"type": "busy"}})
}

// A person's reply after a turn becomes the session's next prompt.
func TestAReplyIsTheNextPrompt(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.writes("msg_1", "All done")
	r := newRig(t, f)
	ended := make(chan struct{}, 3) // gets a value for each question whose answer has arrived
	r.options.Turns, r.options.Claim = true, claims()
	r.options.Waits = func(string, string) (func(), error) { return func() { ended <- struct{}{} }, nil }
	r.run()
	r.idle("ses_1")
	p := r.asked()
	assert.Equal(t, "Your turn: the agent has finished", p.Request.Title)
	assert.JSONEq(t, `{"message":"All done"}`, string(p.Request.ActionDetails))
	assert.Equal(t, "Title of ses_1", p.Request.SessionLabel)
	r.says(nodtest.Answer{Kind: schemas.AllowOnce, Message: "now the tests"})
	assert.Equal(t, "prompt ses_1 now the tests", r.replied())
	<-ended
	r.idle("ses_1") // the session has had no new message, so the connector asks nobody
	r.nothingReplied()

	r.writes("msg_2", "Done again")
	r.idle("ses_1")
	r.asked()
	r.says(nodtest.Deny("")) // the person chooses to give no reply
	<-ended
	r.writes("msg_3", "Done once more")
	r.idle("ses_1")
	r.asked()
	r.nothingReplied()
}

// The question about a failed turn contains the reason of the failure. The connector does not ask about
// a turn that the user has stopped, nor about a turn of a sub-agent.
func TestAFailedTurn(t *testing.T) {
	t.Parallel()
	r := turnRig(t)
	r.idle("ses_1", map[string]any{"name": "MessageAbortedError", "data": map[string]any{"message": "Aborted"}})
	r.mu.Lock()
	r.parents["ses_2"] = "ses_1"
	r.mu.Unlock()
	r.idle("ses_2")
	r.idle("ses_1", map[string]any{"name": "APIError", "data": map[string]any{"message": "rate limit"}})
	p := r.asked()
	assert.Equal(t, "Your turn: the agent has failed", p.Request.Title)
	assert.JSONEq(t, `{"message":"All done","failure":"APIError: rate limit"}`, string(p.Request.ActionDetails))
	assert.Equal(t, "ses_1", p.SessionID)
}

// If a session continues without the reply, the question about its turn ends. The connector does not
// send a late reply.
func TestAPromptAtTheAgentEndsTheQuestion(t *testing.T) {
	t.Parallel()
	r := turnRig(t)
	r.idle("ses_1")
	p := r.asked()
	r.busy("ses_1")
	assert.Equal(t, "the agent has its next prompt", r.ended(p))
	r.says(nodtest.Answer{}) // end the approver's wait for the first prompt

	r.idle("ses_1")
	r.asked()
	r.writes("msg_2", "I go on")
	r.says(nodtest.Answer{Kind: schemas.AllowOnce, Message: "too late"})
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "the session has gone on") }, waitAtMost, time.Millisecond)
	require.Eventually(t, func() bool { return r.abandoned.Load() == 1 }, waitAtMost, time.Millisecond, "people read that it was not sent")
	r.nothingReplied()
}

// While the connector waits for a decision or for a reply about a turn, Options.Waits contains a record
// of its process.
func TestARequestEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.writes("msg_1", "All done")
	r := newRig(t, f)
	waits := make(chan string, 2)
	r.options.Turns = true
	r.options.Waits = func(session, id string) (func(), error) {
		waits <- session + " " + id
		return func() { waits <- "" }, nil
	}
	r.run()
	r.idle("ses_1")
	p := r.asked()
	assert.Equal(t, "ses_1 "+p.PendingID, <-waits)
	r.says(nodtest.Deny(""))
	assert.Empty(t, <-waits)

	f.runs("msg_2", release)
	f.asks(permits("per_1", "bash", "msg_2"))
	p = r.asked()
	assert.Equal(t, "ses_1 "+p.PendingID, <-waits, "a permission too")
	r.says(nodtest.Deny(""))
	assert.Empty(t, <-waits)
}

// The connector does not ask about turns if Options.Turns is false.
func TestTurnsAreAskedAboutOnRequest(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := newRig(t, f)
	r.run()
	r.idle("ses_1")
	f.runs("msg_1", release)
	f.asks(permits("per_1", "bash", "msg_1"))
	assert.Equal(t, schemas.KindToolCall, r.asked().Request.Kind)
}

// If a session continues while the connector cannot reach OpenCode, the question about its turn still ends.
func TestATurnThatGoesOnUnheardEndsTheQuestion(t *testing.T) {
	t.Parallel()
	r := turnRig(t)
	r.idle("ses_1")
	p := r.asked()
	r.writes("msg_2", "I go on")
	r.hangUp()
	assert.Equal(t, "the agent has its next prompt", r.ended(p))
}

// The number of open questions about turns is limited. A long title of a session does not prevent the
// question.
func TestManyTurns(t *testing.T) {
	t.Parallel()
	r := turnRig(t)
	r.idle("ses_" + strings.Repeat("x", 600)) // the title contains the session's id
	assert.Len(t, []rune(r.asked().Request.SessionLabel), 512)
	r.says(nodtest.Answer{})
	for i := range 50 {
		r.idle(fmt.Sprintf("ses_%d", i))
	}
	for range 49 {
		r.asked()
		r.says(nodtest.Answer{})
	}
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "too many turns") }, waitAtMost, time.Millisecond)
}
