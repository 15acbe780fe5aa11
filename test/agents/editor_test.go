package agents_test

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"strings"
	"testing"

	acp "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// editor is an ACP client. It fails the test if it gets a permission request, because nod acp must
// send such requests to nod.
type editor struct {
	acp.Client // nil, because no test calls the methods that editor does not define
	t          *testing.T
}

func (e editor) RequestPermission(context.Context, acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	assert.Fail(e.t, "the editor was asked for a permission")
	return acp.RequestPermissionResponse{}, errors.New("nod should have been asked")
}

func (editor) SessionUpdate(context.Context, acp.SessionNotification) error { return nil }

// silentEditor is an editor that answers no permission request. It reports each request on the Go channel
// asked.
type silentEditor struct {
	acp.Client // nil, because no test calls the methods that silentEditor does not define
	asked      chan<- struct{}
}

func (e silentEditor) RequestPermission(ctx context.Context, _ acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	e.asked <- struct{}{}
	<-ctx.Done()
	return acp.RequestPermissionResponse{}, ctx.Err()
}

func (silentEditor) SessionUpdate(context.Context, acp.SessionNotification) error { return nil }

// The method edits runs the command c, which starts nod acp with an agent. If method is not empty, edits logs
// in to the agent by this ACP method. It sends a prompt and answers the agent's request. When the agent has
// ended, edits returns the request.
func (x *machine) edits(c *exec.Cmd, method, answer string) request {
	in, err := c.StdinPipe()
	require.NoError(x.t, err)
	out, err := c.StdoutPipe()
	require.NoError(x.t, err)
	a := x.starts(c)
	ended := prompts(x.t, acp.NewClientSideConnection(editor{t: x.t}, in, out), method, x.project)
	r := x.asked(a)
	x.does(answer, r.ID)
	require.NoError(x.t, <-ended)
	require.NoError(x.t, in.Close())
	x.ends(a)
	return r
}

// editsAgain runs the command c, which starts nod acp --turns with an agent. It sends a prompt, allows the
// agent's request, and replies to the question at the end of the turn. It requires that the model gets the
// reply, and that the end of the next turn is a question too.
func (x *machine) editsAgain(c *exec.Cmd, method string) {
	in, err := c.StdinPipe()
	require.NoError(x.t, err)
	out, err := c.StdoutPipe()
	require.NoError(x.t, err)
	a := x.starts(c)
	ended := prompts(x.t, acp.NewClientSideConnection(editor{t: x.t}, in, out), method, x.project)
	x.does("allow", x.asked(a).ID)
	require.NoError(x.t, <-ended)
	turn := x.asked(a)
	assert.Equal(x.t, "question", turn.Kind)
	x.does("answer", turn.ID, "now rest a little")
	x.until("the model is told", func() bool { return strings.Contains(x.model.lastAsked(), "now rest a little") })
	next := x.asked(a)
	assert.Equal(x.t, "question", next.Kind)
	assert.NotEqual(x.t, turn.ID, next.ID)
	require.NoError(x.t, in.Close())
	x.ends(a)
	assert.Empty(x.t, x.pending())
}

// The function prompts opens a session in dir and sends a prompt. When the prompt's turn is over, the
// returned Go channel gets the error of the turn, or nil.
func prompts(t *testing.T, conn *acp.ClientSideConnection, method, dir string) <-chan error {
	conn.SetLogger(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	_, err := conn.Initialize(ctx, acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber})
	require.NoError(t, err)
	if method != "" {
		_, err = conn.Authenticate(ctx, acp.AuthenticateRequest{MethodId: method})
		require.NoError(t, err)
	}
	s, err := conn.NewSession(ctx, acp.NewSessionRequest{Cwd: dir, McpServers: []acp.McpServer{}})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Prompt(ctx, acp.PromptRequest{SessionId: s.SessionId, Prompt: []acp.ContentBlock{acp.TextBlock("go on")}})
		ended <- err
	}()
	return ended
}
