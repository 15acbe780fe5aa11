package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const cancelledLine = `{"id":"f4b4","timestamp":"2026-11-22T05:04:15.281Z","type":"info","content":"Request cancelled."}` + "\n"

// geminiCall returns a call of Gemini CLI, and the path of its transcript. The transcript contains a
// stop from before the call.
func geminiCall(t *testing.T) (stdin, transcript string) {
	transcript = filepath.Join(t.TempDir(), "session.jsonl")
	require.NoError(t, os.WriteFile(transcript, []byte(cancelledLine), 0o600))
	return `{"session_id":"s1","transcript_path":"` + transcript + `","cwd":"/w","hook_event_name":"BeforeTool","tool_name":"run_shell_command","tool_input":{"command":"ls"}}`, transcript
}

// stops appends lines to the transcript, as Gemini CLI does when its user stops the agent.
func stops(t *testing.T, transcript string, lines ...string) {
	f, err := os.OpenFile(transcript, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(strings.Join(lines, ""))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// Gemini CLI lets the hook continue after its user has stopped the agent. The hook finds the stop in
// the transcript and withdraws its request.
func TestAStoppedGeminiWithdraws(t *testing.T) {
	stdin, transcript := geminiCall(t)
	synctest.Test(t, func(t *testing.T) {
		nod := &fakeNod{t: t, ask: func(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
			stops(t, transcript, `{"type":"user","content":[{"text":"Request cancelled."}]}`+"\n", cancelledLine)
			return waits(ctx, r)
		}}
		got := runHost(t, t.Context(), hook.Gemini(), strings.NewReader(stdin), nod.connect, hook.Options{})
		assert.Equal(t, "the agent was stopped at its terminal", nod.withdrawn())
		assert.Contains(t, got.stdout, `"decision":"deny"`)
		assert.Empty(t, nod.passed)
	})
}

// If nod allows a call after the user has stopped the agent, the call never runs, and the hook tells
// nod so. The hook ignores a stop from before the call, and lines that only resemble a stop.
func TestAllowAfterStopIsReported(t *testing.T) {
	for name, lines := range map[string][]string{
		"stopped":     {cancelledLine},
		"not stopped": {`{"type":"user","content":"Request cancelled."}` + "\n", "Request cancelled.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			stdin, transcript := geminiCall(t)
			nod := &fakeNod{t: t, ask: func(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
				stops(t, transcript, lines...)
				return decides(schemas.Decision{Outcome: schemas.Allowed})(ctx, r)
			}}
			runHost(t, t.Context(), hook.Gemini(), strings.NewReader(stdin), nod.connect, hook.Options{})
			if name == "not stopped" {
				assert.Empty(t, nod.passed)
				return
			}
			require.Len(t, nod.passed, 1)
			assert.Equal(t, schemas.HostResolved{SessionID: "s1", PendingID: nod.asked().PendingID, Reason: "the agent had gone on"}, nod.passed[0])
		})
	}
}

// The hook finds a stop after any amount of text and after long lines. It reads a line only when the
// line is complete.
func TestAStopIsFoundInALongTranscript(t *testing.T) {
	line := `{"type":"gemini","content":"` + strings.Repeat("x", 1<<20) + `"}` + "\n"
	stdin, transcript := geminiCall(t)
	call, err := hook.Gemini().Dialect.Read([]byte(stdin))
	require.NoError(t, err)
	stops(t, transcript, slices.Repeat([]string{line}, 9)...)
	assert.False(t, call.Stopped())
	stops(t, transcript, line[:len(line)/2])
	assert.False(t, call.Stopped())
	stops(t, transcript, line[len(line)/2:], cancelledLine[:40])
	assert.False(t, call.Stopped())
	stops(t, transcript, cancelledLine[40:], line)
	assert.True(t, call.Stopped())
	assert.True(t, call.Stopped(), "it stays found")

	call, err = hook.Gemini().Dialect.Read([]byte(stdin))
	require.NoError(t, err)
	stops(t, transcript, strings.TrimSuffix(line, "\n"), cancelledLine)
	assert.False(t, call.Stopped(), "the end of a long line is no line")
}

// brokenStdout is a stdout that nobody reads.
type brokenStdout struct{}

func (brokenStdout) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// If the hook could not write an allow to stdout, it tells nod. It does not tell nod of a denial that
// it could not write.
func TestUnwrittenAllowIsReported(t *testing.T) {
	for outcome, told := range map[schemas.Outcome]int{schemas.Allowed: 1, schemas.Denied: 0} {
		nod := &fakeNod{t: t, ask: decides(schemas.Decision{Outcome: outcome})}
		exit := hook.Run(t.Context(), hook.ClaudeCode(), strings.NewReader(preToolCall), brokenStdout{}, nod.connect, hook.Options{})
		assert.Equal(t, 2, exit)
		assert.Len(t, nod.passed, told)
	}
}

// A hook records that it waits before it sends the request. It ends the record before it writes a
// decision to its host. If there is no decision, the record ends after the reply.
func TestAHookRecordsThatItWaits(t *testing.T) {
	for name, c := range map[string]struct {
		ask  func(context.Context, schemas.Request) (schemas.Decision, error)
		want []string
	}{
		"answered": {decides(schemas.Decision{Outcome: schemas.Allowed}), []string{"waits s1.t1", "asked", "over", "answered"}},
		"failed": {func(context.Context, schemas.Request) (schemas.Decision, error) {
			return schemas.Decision{}, errors.New("x")
		}, []string{"waits s1.t1", "asked", "answered", "over"}},
	} {
		var order []string
		nod := &fakeNod{t: t, ask: func(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
			order = append(order, "asked")
			return c.ask(ctx, r)
		}}
		over := sync.OnceFunc(func() { order = append(order, "over") })
		hook.Run(t.Context(), hook.ClaudeCode(), strings.NewReader(preToolCall), onWrite(func() { order = append(order, "answered") }), nod.connect, hook.Options{
			Waits: func(session, id string) (func(), error) {
				order = append(order, "waits "+session+"."+id)
				return over, nil
			},
		})
		assert.Equal(t, c.want, order, name)
	}
}

// onWrite is a stdout whose writes call a function.
type onWrite func()

func (w onWrite) Write(data []byte) (int, error) {
	w()
	return len(data), json.Unmarshal(data, new(any))
}

// A probe is a test call (see Probe). The hook checks that nod replies, and then refuses the probe in
// the format of its host. nod gets no request, so that neither a person nor a rule can allow the probe.
func TestAProbeIsRefused(t *testing.T) {
	inputs := map[string]string{
		"claude-code": `{"session_id":"nod-probe","cwd":"/","hook_event_name":"PreToolUse","tool_name":"nod_probe","tool_input":{"nonce":"n1"}}`,
		"copilot":     `{"hookName":"permissionRequest","sessionId":"nod-probe","cwd":"/","toolName":"nod_probe","toolInput":{"nonce":"n1"}}`,
	}
	for name, input := range inputs {
		nod := &fakeNod{t: t}
		got := runHost(t, t.Context(), hostNamed(t, name), strings.NewReader(input), nod.connect, hook.Options{})
		assert.Nil(t, nod.asked())
		assert.Contains(t, got.stdout, "deny")
		assert.Contains(t, got.stdout, "nod answers: n1")
		require.Len(t, nod.passed, 1)
		got = runHost(t, t.Context(), hostNamed(t, name), strings.NewReader(strings.Replace(input, `"n1"`, `"a b"`, 1)), nod.connect, hook.Options{})
		assert.Contains(t, got.stdout, "is not a tool")
		assert.Nil(t, nod.asked())
	}
}
