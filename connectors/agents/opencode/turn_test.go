package opencode_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

// turnRig is a rig whose connector asks people when a turn is over. The agent has written "All done".
func turnRig(t *testing.T) *rig {
	f := newFake(t)
	f.writes("msg_1", "All done")
	r := newRig(t, f)
	r.options.Turns = true
	r.run()
	return r
}

func (f *fakeOpenCode) idle(session string) {
	f.say("session.status", map[string]any{"sessionID": session, "status": map[string]any{"type": "idle"}})
	f.say("session.idle", map[string]any{"sessionID": session})
}

// A reply to the end of a turn becomes the session's next prompt.
func TestAReplyIsTheNextPrompt(t *testing.T) {
	t.Parallel()
	r := turnRig(t)
	r.idle("ses_1")
	p := r.asked()
	assert.Equal(t, "Your turn: the agent has finished", p.Request.Title)
	assert.JSONEq(t, `{"message":"All done"}`, string(p.Request.ActionDetails))
	assert.Equal(t, "Title of ses_1", p.Request.SessionLabel)
	r.says(nodtest.Answer{Kind: schemas.AllowOnce, Message: "now the tests"})
	assert.Equal(t, "prompt ses_1 now the tests", r.replied())

	r.idle("ses_1")
	r.asked()
	r.says(nodtest.Deny("")) // the person leaves it
	r.idle("ses_1")
	r.asked()
	r.nothingReplied()
}

// The reason of a failure is shown. Nobody is asked about a turn that the user has stopped, or about the
// turn of a sub-agent.
func TestAFailedTurn(t *testing.T) {
	t.Parallel()
	r := turnRig(t)
	r.say("session.error", map[string]any{"sessionID": "ses_1", "error": map[string]any{"name": "MessageAbortedError", "data": map[string]any{"message": "Aborted"}}})
	r.idle("ses_1")
	r.mu.Lock()
	r.parents["ses_2"] = "ses_1"
	r.mu.Unlock()
	r.idle("ses_2")
	r.say("session.error", map[string]any{"sessionID": "ses_1", "error": map[string]any{"name": "APIError", "data": map[string]any{"message": "rate limit"}}})
	r.idle("ses_1")
	p := r.asked()
	assert.Equal(t, "Your turn: the agent has failed", p.Request.Title)
	assert.JSONEq(t, `{"message":"All done","failure":"APIError: rate limit"}`, string(p.Request.ActionDetails))
	assert.Equal(t, "ses_1", p.SessionID)
}

// A session that goes on without the reply ends the question, and a reply that was under way by then is
// not sent.
func TestAPromptAtTheAgentEndsTheQuestion(t *testing.T) {
	t.Parallel()
	r := turnRig(t)
	r.idle("ses_1")
	p := r.asked()
	r.say("session.status", map[string]any{"sessionID": "ses_1", "status": map[string]any{"type": "busy"}})
	assert.Equal(t, "the agent has its next prompt", r.ended(p))
	r.says(nodtest.Answer{}) // the first prompt's approver has no answer

	r.idle("ses_1")
	r.asked()
	r.writes("msg_2", "I go on")
	r.says(nodtest.Answer{Kind: schemas.AllowOnce, Message: "too late"})
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "the session has gone on") }, waitAtMost, time.Millisecond)
	r.nothingReplied()
}

// A connector that is started withdraws the questions about turns that a killed one left pending, and no
// other request of the session.
func TestTheQuestionsOfAKilledConnectorAreWithdrawn(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := newRig(t, f)
	r.options.Turns = true
	turn, err := agents.TurnRequest(schemas.Request{Type: schemas.TypeRequest, SessionID: "ses_1"}, agents.Turn{Message: "old"})
	require.NoError(t, err)
	_, err = r.nod.Submit(t.Context(), turn)
	require.NoError(t, err)
	old := r.asked()
	r.run()
	assert.Equal(t, "nod's connector was started again", r.ended(old))
}

// Without the option, nobody is asked about a turn.
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
