package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

func event(name, id, command string) *bytes.Reader { return eventFrom(name, id, command, "") }

func eventFrom(name, id, command, reason string) *bytes.Reader {
	data, _ := json.Marshal(map[string]any{
		"session_id": "s1", "cwd": "/workspace", "permission_mode": "auto", "hook_event_name": name, "tool_use_id": id,
		"tool_name": "Bash", "tool_input": map[string]string{"command": command}, "reason": reason,
	})
	return bytes.NewReader(data)
}

func allowedBy(kind schemas.ByKind) func(context.Context, schemas.Request) (schemas.Decision, error) {
	return func(_ context.Context, r schemas.Request) (schemas.Decision, error) {
		return schemas.Decision{Outcome: schemas.Allowed, PendingID: r.PendingID, SessionID: r.SessionID, By: schemas.By{Kind: kind, Name: "Ann"}}, nil
	}
}

// If Claude Code's classifier denies a call, nod asks a person about it. If the person allows the call,
// the hook keeps an approval and tells the agent to try again. The hook of the repeated call asks nod
// only because there is an approval.
func TestACallThatClaudeCodeDeniedIsAskedAbout(t *testing.T) {
	noted, out := &notes{}, &bytes.Buffer{}
	before := &fakeNod{t: t}
	retries := hook.Options{Unsettled: noted, ApprovedOnly: true}
	hook.Run(t.Context(), hook.ClaudeCode(), event("PreToolUse", "t1", "make deploy"), out, before.connect, retries)
	assert.JSONEq(t, `{}`, out.String(), "a call that no person approved is left to Claude Code")
	assert.Nil(t, before.asked())

	nod := &fakeNod{t: t, ask: allowedBy(schemas.ByHuman)}
	out.Reset()
	code := hook.Run(t.Context(), hook.ClaudeCode(), eventFrom("PermissionDenied", "t1", "make deploy", "It deploys."), out, nod.connect, hook.Options{Unsettled: noted})
	assert.Zero(t, code)
	assert.JSONEq(t, `{"hookSpecificOutput":{"hookEventName":"PermissionDenied","retry":true}}`, out.String())
	assert.Equal(t, "Claude Code itself denied this call: It deploys.", nod.asked().Reason)
	assert.NotEqual(t, "t1", nod.asked().PendingID, "a strict hook may have asked with that id")
	assert.NotEmpty(t, nod.left, "the allow stays as an approval")

	again := &fakeNod{t: t, ask: allowedBy(schemas.ByPolicy)}
	out.Reset()
	hook.Run(t.Context(), hook.ClaudeCode(), event("PreToolUse", "t2", "make deploy"), out, again.connect, retries)
	assert.Contains(t, out.String(), `"permissionDecision":"allow"`)
	assert.Equal(t, nod.asked().ActionDetails, again.asked().ActionDetails)

	other := &fakeNod{t: t}
	out.Reset()
	hook.Run(t.Context(), hook.ClaudeCode(), event("PreToolUse", "t3", "make deploy FORCE=1"), out, other.connect, retries)
	assert.JSONEq(t, `{}`, out.String())
	assert.Nil(t, other.asked())
}

// If nod does not allow the agent's own input, Claude Code's denial stays.
func TestACallThatClaudeCodeDeniedStaysDenied(t *testing.T) {
	for name, c := range map[string]struct {
		ask  func(context.Context, schemas.Request) (schemas.Decision, error)
		left string // "detached", "withdrawn" or ""
		note int
	}{
		"denied": {func(context.Context, schemas.Request) (schemas.Decision, error) {
			return schemas.Decision{Outcome: schemas.Denied, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann"}}, nil
		}, "", 0},
		"allowed with an edit": {func(context.Context, schemas.Request) (schemas.Decision, error) {
			return schemas.Decision{Outcome: schemas.Allowed, UpdatedInput: json.RawMessage(`{"command":"ls"}`), By: schemas.By{Kind: schemas.ByHuman, Name: "Ann"}}, nil
		}, "", 0},
		"an error": {func(context.Context, schemas.Request) (schemas.Decision, error) {
			return schemas.Decision{}, errors.New("broken")
		}, "withdrawn", 0},
		"no answer in time": {func(ctx context.Context, _ schemas.Request) (schemas.Decision, error) {
			<-ctx.Done()
			return schemas.Decision{}, context.Cause(ctx)
		}, "detached", 1},
	} {
		t.Run(name, func(t *testing.T) {
			noted, out := &notes{}, &bytes.Buffer{}
			nod := &fakeNod{t: t, ask: c.ask}
			hook.Run(t.Context(), hook.ClaudeCode(), event("PermissionDenied", "t1", "make deploy"), out, nod.connect, hook.Options{Unsettled: noted, HostTimeout: 10 * time.Millisecond})
			assert.JSONEq(t, `{}`, out.String())
			assert.Equal(t, c.left == "detached", nod.left != "")
			assert.Equal(t, c.left == "withdrawn", nod.withdrawn() != "")
			assert.Equal(t, c.note, len(noted.noted), "a call that may still be approved is noted")
		})
	}
	down := func(context.Context) (hook.Nod, error) {
		return nil, schemas.Errorf(schemas.CodeUnavailable, "nod is not running")
	}
	for _, o := range []hook.Options{{Unsettled: &notes{}}, {}, {Unsettled: &notes{}, OnUnavailable: hook.UnavailableDeny}} {
		out := &bytes.Buffer{}
		hook.Run(t.Context(), hook.ClaudeCode(), event("PermissionDenied", "t1", "make"), out, down, o)
		assert.JSONEq(t, `{}`, out.String())
	}
	out := &bytes.Buffer{}
	hook.Run(t.Context(), hook.ClaudeCode(), strings.NewReader(`{"hook_event_name":"PreToolUse","tool_input":7`), out, down, hook.Options{Unsettled: &notes{}, ApprovedOnly: true})
	assert.JSONEq(t, `{}`, out.String())
}

// If the version of Claude Code is known to have the event, an installation adds a hook for denied
// calls, and a hook for approved calls. The hooks of a strict installation ask about every call instead
// of only the approved ones. After a strict installation, a later one stays strict.
func TestTheHooksForDeniedCallsAreInstalled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	find := func(o hook.InstallOptions) (events []string) {
		installedFor(t, hook.ClaudeCode(), path, o)
		at, err := hook.Inspect(hook.ClaudeCode(), hook.InstallOptions{Settings: path})
		require.NoError(t, err)
		for _, i := range at.All() {
			if i.Event == "PermissionDenied" || i.Event == "PreToolUse" {
				events = append(events, i.Event+map[bool]string{true: " approved"}[strings.Contains(i.Command, hook.ApprovedFlag)])
			}
		}
		slices.Sort(events)
		return events
	}
	assert.Empty(t, find(hook.InstallOptions{}), "the version is unknown")
	assert.Equal(t, []string{"PermissionDenied", "PreToolUse approved"}, find(hook.InstallOptions{HostVersion: "2.1.329"}))
	assert.Equal(t, []string{"PermissionDenied", "PreToolUse approved"}, find(hook.InstallOptions{}), "an update keeps them")
	assert.Equal(t, []string{"PermissionDenied", "PreToolUse"}, find(hook.InstallOptions{HostVersion: "2.1.329", Strict: true}))
	assert.Equal(t, []string{"PermissionDenied", "PreToolUse"}, find(hook.InstallOptions{HostVersion: "2.1.329"}), "an update is never less strict")
	_, err := hook.Install(hook.ClaudeCode(), hook.InstallOptions{Settings: path, Uninstall: true})
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.NotContains(t, string(data), "nod")
}
