package acp_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/acp"
	"github.com/nodbus/nod/schemas"
)

// TestRequestsAreIndependent: nod may decide requests in any order. If the editor cancels the turn of
// one session, the requests of other sessions stay open.
func TestRequestsAreIndependent(t *testing.T) {
	t.Parallel()
	r := start(t, acp.Options{})
	byID := map[string]*submission{}
	for _, id := range []string{`1`, `"1"`, `2`} {
		session := map[string]string{`2`: "other"}[id]
		r.agent.says(t, request(id, "s"+session, "make "+strings.Trim(id, `"`)))
		byID[id] = <-r.nod.submissions
	}
	r.editor.says(t, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"sother"}}`)
	r.agent.hears(t)
	assert.Equal(t, answered(`2`, ""), r.agent.hears(t))
	byID[`"1"`].decisions <- person(schemas.Allowed, "yes", schemas.AllowOnce)
	assert.Equal(t, answered(`"1"`, "yes"), r.agent.hears(t))
	byID[`1`].decisions <- person(schemas.Denied, "no", schemas.RejectOnce)
	assert.Equal(t, answered(`1`, "no"), r.agent.hears(t))
	r.ends()
}

// TestOpenRequestsWithTheSameIDAreRefused: the sidecar refuses both of two open requests with the same
// id, because the agent could not distinguish their answers.
func TestOpenRequestsWithTheSameIDAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t, acp.Options{})
	r.agent.says(t, request("1", "s", "ls"))
	a := <-r.nod.submissions
	r.agent.says(t, request("1.0", "s", "rm -rf ~"))
	assert.Equal(t, []string{answered("1", "no"), answered("1.0", "no")}, []string{r.agent.hears(t), r.agent.hears(t)})
	a.decisions <- person(schemas.Allowed, "yes", schemas.AllowOnce)
	_, toAgent := r.ends()
	assert.Empty(t, toAgent)
}

// TestALateEditorAnswerIsDropped: an agent sends a second request with the id of a request that the
// editor still shows. Then the editor allows the first request. The sidecar drops this late answer,
// because it would otherwise allow the second request.
func TestALateEditorAnswerIsDropped(t *testing.T) {
	t.Parallel()
	r := start(t, acp.Options{Race: true})
	r.agent.says(t, request("1", "s", "ls"))
	r.editor.hears(t)
	(<-r.nod.submissions).decisions <- person(schemas.Denied, "no", schemas.RejectOnce)
	assert.Equal(t, answered("1", "no"), r.agent.hears(t))
	assert.Contains(t, r.editor.hears(t), "$/cancel_request")

	toEditor := make(chan string, 1)
	go func() { data, _ := io.ReadAll(r.editor.out); toEditor <- string(data) }() // the editor may show the second request only after it has answered the first
	r.agent.says(t, request("1", "s", "rm -rf ~"))
	again := <-r.nod.submissions
	r.editor.says(t, answered("1", "yes"))
	r.editor.says(t, `{"jsonrpc":"2.0","method":"next"}`)
	assert.Equal(t, `{"jsonrpc":"2.0","method":"next"}`, r.agent.hears(t))
	again.decisions <- person(schemas.Denied, "no", schemas.RejectOnce)
	assert.Equal(t, answered("1", "no"), r.agent.hears(t))
	_ = r.agent.in.Close()
	rest, err := io.ReadAll(r.agent.out)
	require.NoError(t, err)
	assert.Empty(t, string(rest), "it hears one answer")
	require.NoError(t, <-r.ended)
	for line := range strings.Lines(<-toEditor) {
		assert.True(t, strings.Contains(line, "rm -rf ~") || strings.Contains(line, "$/cancel_request"), "the editor hears of the second alone: %s", line)
	}
}

// TestALateEditorAnswerToAQuestionIsDropped: an agent sends a second request with the id of a request
// that the editor still shows. nod cannot decide the second request, so that only the editor could
// answer it. The sidecar refuses the second request, and drops the editor's late answer to the first.
func TestALateEditorAnswerToAQuestionIsDropped(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]string{
		"a question":  strings.Replace(request("1", "s", "ls"), `"kind":"execute"`, `"kind":"switch_mode"`, 1),
		"nod is down": request("1", "s", "ls"),
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, acp.Options{Race: true})
			r.agent.says(t, request("1", "s", "ls"))
			r.editor.hears(t)
			(<-r.nod.submissions).decisions <- person(schemas.Denied, "no", schemas.RejectOnce)
			assert.Equal(t, answered("1", "no"), r.agent.hears(t))
			assert.Contains(t, r.editor.hears(t), "$/cancel_request")

			r.nod.fails(schemas.Errorf(schemas.CodeUnavailable, "down"))
			r.agent.says(t, again)
			assert.NotContains(t, []string{answered("1", "yes"), answered("1", "always")}, r.agent.hears(t))
			r.editor.says(t, answered("1", "yes"))
			toEditor, toAgent := r.ends()
			assert.Empty(t, toEditor+toAgent)
		})
	}
}

// TestAnAnswerOfAnEditorThatWasNotAskedIsDropped: if the editor answers a request that it does not
// show, the sidecar drops the answer.
func TestAnAnswerOfAnEditorThatWasNotAskedIsDropped(t *testing.T) {
	t.Parallel()
	r := start(t, acp.Options{})
	r.agent.says(t, request("1", "s", "make"))
	a := <-r.nod.submissions
	r.editor.says(t, answered("1", "yes"))
	r.editor.says(t, `{"jsonrpc":"2.0","method":"next"}`)
	assert.Equal(t, `{"jsonrpc":"2.0","method":"next"}`, r.agent.hears(t))
	a.decisions <- person(schemas.Denied, "no", schemas.RejectOnce)
	assert.Equal(t, answered("1", "no"), r.agent.hears(t))
	r.ends()
}

// TestTheAgentGetsExactlyOneAnswer: nod decides, the editor answers and the editor cancels the turn,
// all at the same time. The agent gets exactly one answer.
func TestTheAgentGetsExactlyOneAnswer(t *testing.T) {
	t.Parallel()
	r := start(t, acp.Options{Race: true})
	go func() { _, _ = io.Copy(io.Discard, r.editor.out) }() // discard the sidecar's output to the editor
	for n := range 200 {
		id := fmt.Sprint(n)
		r.agent.says(t, request(id, "s", "make"))
		a := <-r.nod.submissions
		var both sync.WaitGroup
		both.Go(func() { a.decisions <- person(schemas.Allowed, "yes", schemas.AllowOnce) })
		both.Go(func() {
			r.editor.says(t, answered(id, "no"))
			r.editor.says(t, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`)
			r.editor.says(t, `{"jsonrpc":"2.0","method":"end"}`)
		})
		answers := 0
		for ended := false; !ended || answers == 0; {
			line := r.agent.hears(t)
			ended = ended || strings.Contains(line, `"end"`)
			if strings.Contains(line, `"outcome"`) {
				answers++
				assert.Contains(t, []string{answered(id, "yes"), answered(id, "no"), answered(id, "")}, line)
			}
		}
		both.Wait()
		assert.Equal(t, 1, answers)
	}
	_ = r.agent.in.Close()
	rest, err := io.ReadAll(r.agent.out)
	require.NoError(t, err)
	assert.Empty(t, string(rest), "nothing was answered twice")
	require.NoError(t, <-r.ended)
}
