package agents_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	acp "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
)

const geminiPackage = "@google/gemini-cli"

var geminiTouch = call{"run_shell_command", map[string]any{"command": touch, "description": "leave a file"}}

// gemini is a command that is Gemini CLI, or starts it.
func (x *machine) gemini(program string, args ...string) *exec.Cmd {
	c := x.command(program, args...)
	c.Env = append(c.Env, "GOOGLE_GEMINI_BASE_URL="+x.model.URL, "GEMINI_API_KEY=none", "GEMINI_CLI_TRUST_WORKSPACE=true",
		"GEMINI_MODEL=gemini-2.5-flash") // else it asks another model which to use
	return c
}

// Without a terminal, and told to allow everything by itself, Gemini CLI still
// asks its hook.
func TestGeminiByHook(t *testing.T) {
	each(t, hook.Gemini(), geminiPackage, func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, geminiTouch))
				settings := filepath.Join(x.home, ".gemini", "settings.json")
				require.NoError(t, os.MkdirAll(filepath.Dir(settings), 0o700))
				require.NoError(t, os.WriteFile(settings, []byte(`{"security":{"auth":{"selectedType":"gemini-api-key"}}}`), 0o600))
				x.does("install", "gemini", "--settings", settings)
				a := x.starts(x.gemini(program, "--yolo", "-p", "go on"))
				r := x.asked(a)
				assert.Equal(t, "run_shell_command", r.Tool)
				x.does(answer, r.ID, "-m", "said by Ann")
				x.ends(a)
				x.shows(answer, "said by Ann")
			})
		}
	})
}

// editor is an ACP client that can do nothing but prompt. A permission that comes
// to it should have gone to nod, and fails the test.
type editor struct {
	acp.Client // what is not implemented here is not called
	t          *testing.T
}

func (e editor) RequestPermission(context.Context, acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	assert.Fail(e.t, "the editor was asked for a permission")
	return acp.RequestPermissionResponse{}, errors.New("nod should have been asked")
}

func (editor) SessionUpdate(context.Context, acp.SessionNotification) error { return nil }

// ACP has no word for why a call was denied: the model hears only that it was.
func TestGeminiByACP(t *testing.T) {
	each(t, hook.Gemini(), geminiPackage, func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, geminiTouch))
				c := x.gemini(x.nod, "acp", "--", program, "--experimental-acp")
				in, err := c.StdinPipe()
				require.NoError(t, err)
				out, err := c.StdoutPipe()
				require.NoError(t, err)
				a := x.starts(c)
				ended := prompts(t, acp.NewClientSideConnection(editor{t: t}, in, out), x.project)
				r := x.asked(a)
				assert.Equal(t, "acp_execute", r.Tool)
				x.does(answer, r.ID)
				require.NoError(t, <-ended)
				require.NoError(t, in.Close())
				x.ends(a)
				x.shows(answer, "canceled by the user")
			})
		}
	})
}

// prompts opens a session and prompts in it, and returns the end of the turn.
func prompts(t *testing.T, conn *acp.ClientSideConnection, dir string) <-chan error {
	conn.SetLogger(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	_, err := conn.Initialize(ctx, acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber})
	require.NoError(t, err)
	_, err = conn.Authenticate(ctx, acp.AuthenticateRequest{MethodId: "gemini-api-key"})
	require.NoError(t, err)
	s, err := conn.NewSession(ctx, acp.NewSessionRequest{Cwd: dir, McpServers: []acp.McpServer{}})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Prompt(ctx, acp.PromptRequest{SessionId: s.SessionId, Prompt: []acp.ContentBlock{acp.TextBlock("go on")}})
		ended <- err
	}()
	return ended
}
