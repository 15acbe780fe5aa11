package acp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/acp"
	"github.com/nodbus/nod/schemas"
)

const (
	chunk   = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"TEXT"}}}}`
	newCall = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":"c1","title":"T"}}}`
	cancel  = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}`
)

func promptOf(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"go"}]}}`
}

func endOf(id, reason string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"stopReason":"` + reason + `"}}`
}

// isPassedOn checks that the sidecar passes a line on unchanged.
func (r *rig) isPassedOn(from, to peer, line string) {
	r.t.Helper()
	from.says(r.t, line)
	require.Equal(r.t, line, to.hears(r.t))
}

// turnEnds makes the editor start a turn, and the agent end it. It returns the sidecar's question about
// the end of the turn.
func (r *rig) turnEnds() *submission {
	r.t.Helper()
	r.isPassedOn(r.editor, r.agent, promptOf("7"))
	r.isPassedOn(r.agent, r.editor, chunk)
	r.isPassedOn(r.agent, r.editor, newCall)
	r.isPassedOn(r.agent, r.editor, chunk)
	r.isPassedOn(r.agent, r.editor, chunk)
	r.isPassedOn(r.agent, r.editor, endOf("7", "end_turn"))
	asks := <-r.nod.submissions
	assert.Equal(r.t, schemas.KindQuestion, asks.Kind)
	assert.JSONEq(r.t, `{"message":"TEXTTEXT"}`, string(asks.ActionDetails))
	return asks
}

// isPrompted makes a person reply with these words. It returns the id of the prompt with which the
// agent gets them.
func (r *rig) isPrompted(asks *submission, words string) (id string) {
	r.t.Helper()
	d := person(schemas.Allowed, "reply", schemas.AllowOnce)
	d.Message = words
	asks.decisions <- d
	assert.JSONEq(r.t, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"`+words+`"}}}}`, r.editor.hears(r.t))
	var prompt struct {
		ID, Method string
		Params     struct {
			SessionID string `json:"sessionId"`
			Prompt    []struct{ Type, Text string }
		}
	}
	require.NoError(r.t, json.Unmarshal([]byte(r.agent.hears(r.t)), &prompt))
	assert.Equal(r.t, "session/prompt", prompt.Method)
	assert.Equal(r.t, "s1", prompt.Params.SessionID)
	require.Len(r.t, prompt.Params.Prompt, 1)
	assert.Equal(r.t, words, prompt.Params.Prompt[0].Text)
	require.NotEmpty(r.t, prompt.ID)
	return `"` + prompt.ID + `"`
}

// A person's reply becomes the agent's next prompt. The editor sees the reply and the agent's updates,
// but gets no response, because it did not send the prompt. After the reply's turn, the sidecar asks
// people again.
func TestAReplyIsTheNextPrompt(t *testing.T) {
	r := start(t, acp.Options{Turns: true})
	id := r.isPrompted(r.turnEnds(), "now the tests")
	r.isPassedOn(r.agent, r.editor, chunk)
	r.agent.says(t, endOf(id, "end_turn"))
	again := <-r.nod.submissions
	assert.JSONEq(t, `{"message":"TEXT"}`, string(again.ActionDetails))
	again.decisions <- person(schemas.Denied, "no_answer", schemas.RejectOnce)
	editor, agent := r.ends()
	assert.Empty(t, editor)
	assert.Empty(t, agent)
}

// nod also decides the agent's permission requests in the turn of a person's reply.
func TestAReplysTurnAsksForPermission(t *testing.T) {
	r := start(t, acp.Options{Turns: true})
	r.isPrompted(r.turnEnds(), "now the tests")
	r.agent.says(t, request("3", "s1", "make"))
	asks := <-r.nod.submissions
	assert.Equal(t, schemas.KindToolCall, asks.Kind)
	asks.decisions <- person(schemas.Denied, "no", schemas.RejectOnce)
	assert.Equal(t, answered("3", "no"), r.agent.hears(t))
}

// A prompt of the editor ends the question for the session's next prompt.
func TestAPromptInTheEditorEndsTheQuestion(t *testing.T) {
	r := start(t, acp.Options{Turns: true})
	asks := r.turnEnds()
	r.isPassedOn(r.editor, r.agent, promptOf("8"))
	ended := <-r.nod.withdrawn
	assert.Equal(t, asks.PendingID, ended.pendingID)
	assert.Equal(t, "the agent has its next prompt", ended.reason)
}

// A prompt of the editor waits while the turn of a person's reply runs. If the editor cancels this
// turn, it gets the response that its waiting prompt is cancelled.
func TestAPromptInTheEditorWaitsForAReplysTurn(t *testing.T) {
	r := start(t, acp.Options{Turns: true})
	id := r.isPrompted(r.turnEnds(), "now the tests")
	r.editor.says(t, promptOf("8"))
	r.isPassedOn(r.editor, r.agent, `{"jsonrpc":"2.0","method":"other"}`) // the prompt was read before, and not passed on
	r.agent.says(t, endOf(id, "end_turn"))
	assert.Equal(t, promptOf("8"), r.agent.hears(t))
	r.isPassedOn(r.agent, r.editor, endOf("8", "cancelled")) // the sidecar asks nobody about a turn that was cancelled

	r.isPassedOn(r.editor, r.agent, promptOf("9"))
	r.isPassedOn(r.agent, r.editor, endOf("9", "max_tokens"))
	asks := <-r.nod.submissions
	assert.JSONEq(t, `{"failure":"max_tokens"}`, string(asks.ActionDetails))
	id = r.isPrompted(asks, "go on")
	r.editor.says(t, promptOf("10"))
	r.isPassedOn(r.editor, r.agent, cancel)
	assert.JSONEq(t, endOf("10", "cancelled"), r.editor.hears(t))
	r.agent.says(t, endOf(id, "cancelled"))
	editor, agent := r.ends()
	assert.Empty(t, editor)
	assert.Empty(t, agent)
	assert.Empty(t, r.nod.submissions)
}

// The sidecar sends the agent only words of a person. It asks nobody if the editor is gone, or if
// Options.Turns is false.
func TestNoWordsNoPrompt(t *testing.T) {
	for name, d := range map[string]schemas.Decision{
		"left":      person(schemas.Denied, "no_answer", schemas.RejectOnce),
		"no words":  person(schemas.Allowed, "reply", schemas.AllowOnce),
		"by a rule": {Outcome: schemas.Allowed, OptionID: "reply", Message: "x", By: schemas.By{Kind: schemas.ByPolicy}},
		"timed out": {Outcome: schemas.TimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, acp.Options{Turns: true})
			r.turnEnds().decisions <- d
			r.isPassedOn(r.editor, r.agent, promptOf("8"))
			_, agent := r.ends()
			assert.Empty(t, agent)
		})
	}
	t.Run("nod fails", func(t *testing.T) {
		r := start(t, acp.Options{Turns: true})
		asks := r.turnEnds()
		asks.errors <- schemas.Errorf(schemas.CodeUnavailable, "gone")
		assert.Equal(t, asks.PendingID, (<-r.nod.withdrawn).pendingID)
		r.isPassedOn(r.editor, r.agent, promptOf("8"))
	})
	t.Run("the editor is gone", func(t *testing.T) {
		r := start(t, acp.Options{Turns: true})
		asks := r.turnEnds()
		require.NoError(t, r.editor.in.Close())
		assert.Equal(t, withdrawal{asks.PendingID, "the editor is gone"}, <-r.nod.withdrawn)
	})
	t.Run("not chosen", func(t *testing.T) {
		r := start(t, acp.Options{})
		r.isPassedOn(r.editor, r.agent, promptOf("7"))
		r.isPassedOn(r.agent, r.editor, endOf("7", "end_turn"))
		r.ends()
		assert.Empty(t, r.nod.submissions)
	})
}
