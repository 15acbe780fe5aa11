package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
	"testing"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeNod is a Nod that checks what the hook does. The hook may send one valid request, and may
// withdraw or detach it once.
type fakeNod struct {
	t   testing.TB
	ask func(ctx context.Context, r schemas.Request) (schemas.Decision, error)

	mu     sync.Mutex // guards the fields below, because a hook may call other methods while Ask still runs
	first  *schemas.Request
	reason string // the argument reason of Withdraw
	left   string // the argument reason of Detach
	passed []schemas.HostResolved

	notices   []schemas.Notice
	noticesOf []string // the sessions in the calls of TakeNotices
}

// asked returns the request that the hook sent, or nil if the hook sent none.
func (f *fakeNod) asked() *schemas.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first
}

// withdrawn returns the reason with which the hook called Withdraw, or "" if it did not.
func (f *fakeNod) withdrawn() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reason
}

func (f *fakeNod) connect(context.Context) (hook.Nod, error) { return f, nil }

func (f *fakeNod) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	f.mu.Lock()
	assert.Nil(f.t, f.first, "asked twice")
	f.first = &r
	f.mu.Unlock()
	assert.Equal(f.t, schemas.TypeRequest, r.Type)
	assert.True(f.t, schemas.ValidID(r.SessionID), "session %q", r.SessionID)
	assert.True(f.t, schemas.ValidID(r.PendingID), "id %q", r.PendingID)
	switch r.ToolName {
	case "AskUserQuestion", "ExitPlanMode", "turn":
		assert.Equal(f.t, schemas.KindQuestion, r.Kind)
	default:
		assert.Equal(f.t, schemas.KindToolCall, r.Kind)
	}
	assert.NotEmpty(f.t, r.Title)
	assert.NotEmpty(f.t, r.ToolName)
	assert.NotEmpty(f.t, r.ActionType)
	var details map[string]json.RawMessage
	assert.NoError(f.t, json.Unmarshal(r.ActionDetails, &details), "action_details")
	_, ok := r.OptionOfKind(schemas.RejectOnce)
	assert.True(f.t, ok, "nobody could reject")
	assert.False(f.t, r.CreatedAt.IsZero())
	assert.Zero(f.t, r.Revision)
	return f.ask(ctx, r)
}

func (f *fakeNod) Withdraw(ctx context.Context, sessionID, pendingID, reason string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	assert.NoError(f.t, ctx.Err(), "the withdrawal could not get through")
	assert.NotEmpty(f.t, reason)
	assert.Empty(f.t, f.reason, "withdrawn twice")
	if assert.NotNil(f.t, f.first, "withdrawn before it was asked") {
		assert.Equal(f.t, f.first.Key(), schemas.Key(sessionID, pendingID))
	}
	f.reason = reason
	return nil
}

// detached returns the reason with which the hook called Detach, or "" if it did not.
func (f *fakeNod) detached() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left
}

func (f *fakeNod) Detach(ctx context.Context, sessionID, pendingID, reason string) error {
	if err := f.Withdraw(ctx, sessionID, pendingID, reason); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.reason = f.reason, ""
	return nil
}

// TakeNotices returns the notices of f at the first call, and none later.
func (f *fakeNod) TakeNotices(_ context.Context, sessionID string) ([]schemas.Notice, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noticesOf = append(f.noticesOf, sessionID)
	taken := f.notices
	f.notices = nil
	return taken, nil
}

func (f *fakeNod) HostResolved(_ context.Context, p schemas.HostResolved) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passed = append(f.passed, p)
	return nil
}

// decides returns a function for Ask that always returns the decision d.
func decides(d schemas.Decision) func(context.Context, schemas.Request) (schemas.Decision, error) {
	return func(_ context.Context, r schemas.Request) (schemas.Decision, error) {
		d.Type, d.SessionID, d.PendingID = schemas.TypeDecision, r.SessionID, r.PendingID
		return d, nil
	}
}

func waits(ctx context.Context, _ schemas.Request) (schemas.Decision, error) {
	<-ctx.Done()
	return schemas.Decision{}, ctx.Err()
}

type result struct {
	exit           int
	stdout, stderr string
}

func run(t testing.TB, ctx context.Context, stdin io.Reader, connect hook.Connect, o hook.Options) result {
	t.Helper()
	return runHost(t, ctx, hook.ClaudeCode(), stdin, connect, o)
}

func runHost(t testing.TB, ctx context.Context, host hook.Host, stdin io.Reader, connect hook.Connect, o hook.Options) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	o.Stderr = &stderr
	exit := hook.Run(ctx, host, stdin, &stdout, connect, o)
	return result{exit, stdout.String(), stderr.String()}
}

func hostNamed(t testing.TB, name string) hook.Host {
	t.Helper()
	h, known := findHost(name)
	require.True(t, known, "no host is called %q", name)
	return h
}

func findHost(name string) (h hook.Host, known bool) {
	for _, h := range hook.Hosts() {
		if h.Name == name {
			return h, true
		}
	}
	return hook.Host{}, false
}

// oneObject checks that out is one JSON object in one line, and returns the object's members.
func oneObject(t testing.TB, out string) map[string]json.RawMessage {
	t.Helper()
	require.Equal(t, byte('\n'), out[len(out)-1])
	require.NotContains(t, out[:len(out)-1], "\n")
	var obj map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(out), &obj), "stdout %q", out)
	require.NotNil(t, obj)
	return obj
}

// allows reports whether the host would run the call without asking its user after this output and exit
// code. Its rules come from runs of the real hosts. It fails the test if out is not one JSON object.
func allows(t testing.TB, host, event, out string, exit int) bool {
	t.Helper()
	oneObject(t, out)
	var o struct {
		Decision   string `json:"decision"`
		Behavior   string `json:"behavior"`
		Permission string `json:"permission"`
		Specific   *struct {
			Decision struct {
				Behavior string          `json:"behavior"`
				Input    json.RawMessage `json:"updatedInput"`
			} `json:"decision"`
			PermissionDecision string `json:"permissionDecision"`
			Reason             string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &o))
	switch host {
	case "gemini": // Gemini CLI reads the exit code only if stdout contains no JSON
		return (event == "" || event == "BeforeTool") && o.Decision != "deny" && o.Decision != "block"
	case "cursor": // with failClosed, Cursor blocks a call without a decision
		return event == "preToolUse" && exit == 0 && o.Permission == "allow"
	case "copilot":
		return (event == "" || event == "permissionRequest") && exit != 2 && o.Behavior != "deny"
	case "codex":
		if exit == 2 {
			return false
		}
		if event == "PreToolUse" { // Codex runs the call unless the reply is a deny with a reason
			return o.Specific == nil || o.Specific.PermissionDecision != "deny" || o.Specific.Reason == ""
		}
	}
	if o.Specific == nil {
		return o.Decision == "approve"
	}
	return o.Decision == "approve" || o.Specific.Decision.Behavior == "allow" || o.Specific.PermissionDecision == "allow"
}
