//go:build unix

package acp_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/acp"
	"github.com/nodbus/nod/schemas"
)

// programmer is an agent that uses the SDK of ACP. It asks for permission to run its prompt as a
// command, and replies with the outcome of its request.
type programmer struct {
	sdk.Agent // nil, because no test calls the methods that programmer does not define
	conn      *sdk.AgentSideConnection
}

func sdkAgent() int {
	a := &programmer{}
	in, gate := io.Pipe() // the agent gets no input until gate is closed, because a.conn must be set first
	a.conn = sdk.NewAgentSideConnection(a, os.Stdout, in)
	_, err := io.Copy(gate, os.Stdin)
	_ = gate.CloseWithError(err)
	<-a.conn.Done()
	return 0
}

func (*programmer) Initialize(context.Context, sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	return sdk.InitializeResponse{ProtocolVersion: sdk.ProtocolVersionNumber, AgentInfo: &sdk.Implementation{Name: "programmer", Version: "1"}}, nil
}

func (*programmer) NewSession(context.Context, sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	return sdk.NewSessionResponse{SessionId: "sess_1"}, nil
}

func (*programmer) Cancel(context.Context, sdk.CancelNotification) error { return nil }

func (a *programmer) Prompt(ctx context.Context, p sdk.PromptRequest) (sdk.PromptResponse, error) {
	ctx = context.WithoutCancel(ctx) // report the outcome even if the turn is cancelled
	call := sdk.ToolCallUpdate{
		ToolCallId: "call_1", Title: sdk.Ptr("Run a command"), Kind: sdk.Ptr(sdk.ToolKindExecute),
		RawInput: map[string]any{"command": p.Prompt[0].Text.Text},
	}
	heard, err := a.conn.RequestPermission(ctx, sdk.RequestPermissionRequest{SessionId: p.SessionId, ToolCall: call, Options: []sdk.PermissionOption{
		{Kind: sdk.PermissionOptionKindRejectOnce, Name: "No", OptionId: "no"},
		{Kind: sdk.PermissionOptionKindAllowAlways, Name: "Always", OptionId: "always"},
		{Kind: sdk.PermissionOptionKindAllowOnce, Name: "Yes", OptionId: "yes"},
	}})
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	said, err := json.Marshal(heard.Outcome)
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	if err := a.conn.SessionUpdate(ctx, sdk.SessionNotification{SessionId: p.SessionId, Update: sdk.UpdateAgentMessageText(string(said))}); err != nil {
		return sdk.PromptResponse{}, err
	}
	return sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn}, nil
}

// editor is an editor in the test's process that uses the SDK of ACP.
type editor struct {
	sdk.Client // nil, because no test calls the methods that editor does not define
	conn       *sdk.ClientSideConnection
	asked      chan context.Context // receives the context of each permission request
	answers    chan sdk.PermissionOptionId
	said       chan string
}

func (e *editor) RequestPermission(ctx context.Context, _ sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	e.asked <- ctx
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(<-e.answers)}, nil
}

func (e *editor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	e.said <- n.Update.AgentMessageChunk.Content.Text.Text
	return nil
}

// open starts a sidecar between this editor and the agent, and opens a session.
func open(t *testing.T, nod *fakeNod, o acp.Options) (*editor, process) {
	t.Helper()
	p := run(t, context.Background(), "sdk", nod, o) // t.Context would end before the cleanup below, and kill the agent
	e := &editor{asked: make(chan context.Context, 9), answers: make(chan sdk.PermissionOptionId, 9), said: make(chan string, 9)}
	e.conn = sdk.NewClientSideConnection(e, p.editor.in, p.editor.out)
	_, err := e.conn.Initialize(t.Context(), sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber})
	require.NoError(t, err)
	s, err := e.conn.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: "/home/ann/app", McpServers: []sdk.McpServer{}})
	require.NoError(t, err)
	require.Equal(t, sdk.SessionId("sess_1"), s.SessionId)
	t.Cleanup(func() {
		assert.NoError(t, p.editor.in.Close())
		said, err := io.ReadAll(p.stderr)
		assert.NoError(t, err)
		assert.Zero(t, <-p.exit, "the agent said: %s", said)
	})
	return e, p
}

// prompts sends the agent a prompt. The channel that it returns gets the result of the turn.
func (e *editor) prompts(t *testing.T, command string) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := e.conn.Prompt(t.Context(), sdk.PromptRequest{SessionId: "sess_1", Prompt: []sdk.ContentBlock{sdk.TextBlock(command)}})
		ended <- err
	}()
	return ended
}

func chose(option string) string { return `{"optionId":"` + option + `","outcome":"selected"}` }

const choseNothing = `{"outcome":"cancelled"}`

// TestWithTheSDK: the sidecar works with an editor and an agent that use the SDK of ACP.
func TestWithTheSDK(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options acp.Options
		nod     func(*fakeNod) // if set, the test calls it before it sends the prompt
		then    func(t *testing.T, e *editor, nod *fakeNod)
		heard   string
	}{
		"allowed": {
			then: func(t *testing.T, _ *editor, nod *fakeNod) {
				a := <-nod.submissions
				assert.JSONEq(t, `{"command":"rm -rf build"}`, string(a.ActionDetails))
				assert.Equal(t, "programmer", a.AgentName)
				assert.Equal(t, "/home/ann/app", a.Project)
				a.decisions <- person(schemas.Allowed, "yes", schemas.AllowOnce)
			},
			heard: chose("yes"),
		},
		"allowed for good": {
			then: func(_ *testing.T, _ *editor, nod *fakeNod) {
				(<-nod.submissions).decisions <- person(schemas.Allowed, "always", schemas.AllowAlways)
			},
			heard: chose("always"),
		},
		"denied": {
			then: func(_ *testing.T, _ *editor, nod *fakeNod) {
				(<-nod.submissions).decisions <- person(schemas.Denied, "no", schemas.RejectOnce)
			},
			heard: chose("no"),
		},
		"dismissed": {
			then: func(_ *testing.T, _ *editor, nod *fakeNod) {
				(<-nod.submissions).decisions <- person(schemas.Cancelled, "", "")
			},
			heard: choseNothing,
		},
		"cancelled": {
			then: func(t *testing.T, e *editor, nod *fakeNod) {
				a := <-nod.submissions
				require.NoError(t, e.conn.Cancel(t.Context(), sdk.CancelNotification{SessionId: "sess_1"}))
				assert.Equal(t, withdrawal{a.PendingID, "it was cancelled in the editor"}, <-nod.withdrawn)
			},
			heard: choseNothing,
		},
		"nod is down": {
			nod:   func(nod *fakeNod) { nod.fails(schemas.Errorf(schemas.CodeUnavailable, "down")) },
			then:  func(_ *testing.T, e *editor, _ *fakeNod) { <-e.asked; e.answers <- "yes" },
			heard: chose("yes"),
		},
		"nod is down, deny": {
			options: acp.Options{Deny: true},
			nod:     func(nod *fakeNod) { nod.fails(schemas.Errorf(schemas.CodeUnavailable, "down")) },
			heard:   chose("no"),
		},
		"the editor is first": {
			options: acp.Options{Race: true},
			then: func(t *testing.T, e *editor, nod *fakeNod) {
				a := <-nod.submissions
				<-e.asked
				e.answers <- "always"
				assert.Equal(t, withdrawal{a.PendingID, "it was answered in the editor"}, <-nod.withdrawn)
			},
			heard: chose("always"),
		},
		"the editor is second": {
			options: acp.Options{Race: true},
			then: func(t *testing.T, e *editor, nod *fakeNod) {
				a, prompt := <-nod.submissions, <-e.asked
				a.decisions <- person(schemas.Denied, "no", schemas.RejectOnce)
				<-prompt.Done() // when Done is closed, the sidecar has cancelled the editor's prompt
				e.answers <- "yes"
			},
			heard: chose("no"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			nod := newNod(t)
			if c.nod != nil {
				c.nod(nod)
			}
			e, _ := open(t, nod, c.options)
			ended := e.prompts(t, "rm -rf build")
			if c.then != nil {
				c.then(t, e, nod)
			}
			assert.JSONEq(t, c.heard, <-e.said)
			require.NoError(t, <-ended)
		})
	}
}
