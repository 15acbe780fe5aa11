package acp_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/connectors/agents/acp"
	"github.com/nodbus/nod/schemas"
)

// While a request waits, the editor shows the session's notices as thoughts of the agent. It shows the
// notice that a question is shown only during a turn, and only if the question is this request.
func TestNoticesReachTheEditor(t *testing.T) {
	t.Parallel()
	r := start(t, acp.Options{})
	r.passes(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"s"}}`, "")
	r.agent.says(t, request("1", "s", "make"))
	asked := <-r.nod.submissions
	thought := func(text string) string {
		return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"content":{"text":"\nnod: ` + text +
			`\n","type":"text"},"sessionUpdate":"agent_thought_chunk"}}}`
	}
	shown := schemas.Notice{Kind: schemas.NoticeShown, PendingID: asked.PendingID, Text: "The question is shown on telegram."}
	other := shown
	other.PendingID = "other"
	gate := schemas.Notice{Kind: schemas.NoticeGate, Text: "A task lacks permissions."}
	r.nod.notices <- other
	r.nod.notices <- shown
	r.nod.notices <- gate
	assert.JSONEq(t, thought("The question is shown on telegram."), r.editor.hears(t))
	assert.JSONEq(t, thought("A task lacks permissions."), r.editor.hears(t))
	asked.decisions <- person(schemas.Allowed, "yes", schemas.AllowOnce)
	assert.Equal(t, answered("1", "yes"), r.agent.hears(t))

	r.passes("", `{"jsonrpc":"2.0","id":"p","result":{"stopReason":"end_turn"}}`)
	r.agent.says(t, request("2", "s", "make"))
	asked = <-r.nod.submissions
	shown.PendingID = asked.PendingID
	r.nod.notices <- shown
	r.nod.notices <- gate
	assert.JSONEq(t, thought("A task lacks permissions."), r.editor.hears(t), "outside of a turn")
	asked.decisions <- person(schemas.Denied, "no", schemas.RejectOnce)
	assert.Equal(t, answered("2", "no"), r.agent.hears(t))
}
