package servers_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/agents/internal/npm"
)

// With the settings that nod install writes, OpenCode asks for permission, and nod opencode answers. A
// command that a person allows runs. A command that a person denies does not run, and the model gets the
// reason.
func TestOpenCode(t *testing.T) { openCode(t, npm.OpenCode, "OpenCode") }

// Kilo is based on OpenCode, with the same settings and server.
func TestKilo(t *testing.T) { openCode(t, npm.Kilo, "Kilo") }

func openCode(t *testing.T, agent npm.Agent, title string) {
	path := program(t, agent)
	m := newModel(t)
	n := startNod(t)
	project := t.TempDir()
	config := fmt.Sprintf(`{
  // a model that runs one command
  "model": "fake/m", "small_model": "fake/m", "autoupdate": false, "share": "disabled",
  "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": {"baseURL": %q, "apiKey": "none"},
    "models": {"m": {"name": "M", "tool_call": true, "limit": {"context": 100000, "output": 1000}}}}},
}`, m.url)
	require.NoError(t, os.WriteFile(filepath.Join(project, agent.Name+".json"), []byte(config), 0o600))
	install := n.command("install", agent.Name, "--project")
	install.Dir = project
	out, err := install.CombinedOutput()
	require.NoError(t, err, string(out))

	home := t.TempDir()
	serve := exec.Command(path, "serve", "--port", "0")
	serve.Dir = project
	serve.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	for _, off := range []string{"MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"} {
		serve.Env = append(serve.Env, strings.ToUpper(agent.Name)+"_DISABLE_"+off+"=1")
	}
	url := started(t, serve, `http://\S+`)
	follow := n.command(agent.Name, "--turns", "--url", url)
	started(t, follow, "nod gets the permission prompts of "+title+" at")

	require.NoError(t, os.WriteFile(filepath.Join(project, ".env"), []byte("TOKEN=x"), 0o600))
	for i, c := range []struct {
		line   string
		answer []string
		ran    bool
		hears  string
	}{
		{"touch ran-%d && echo done", []string{"allow"}, true, "done"},
		{"touch ran-%d && echo done", []string{"deny", "-m", "use make"}, false, "use make"},
		{"cat .env", []string{"deny", "-m", "use no secrets"}, false, "use no secrets"}, // Kilo's own rules allow cat
	} {
		file := fmt.Sprintf("ran-%d", i)
		m.runs(strings.ReplaceAll(c.line, "%d", strconv.Itoa(i)))
		var session struct{ ID string }
		post(t, url+"/session", map[string]any{}, &session)
		post(t, url+"/session/"+session.ID+"/prompt_async", map[string]any{"parts": []any{map[string]any{"type": "text", "text": "do it"}}}, nil)
		id := n.pending(t, session.ID).PendingID
		assert.NoFileExists(t, filepath.Join(project, file))
		out, err := n.command(append([]string{c.answer[0], id}, c.answer[1:]...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, m.heard(t), c.hears)
		if c.ran {
			assert.FileExists(t, filepath.Join(project, file))
		} else {
			assert.NoFileExists(t, filepath.Join(project, file))
		}
		turn := n.pending(t, session.ID) // the question at the end of the turn
		assert.Equal(t, schemas.KindQuestion, turn.Kind)
		assert.JSONEq(t, `{"message":"ok"}`, string(turn.ActionDetails))
		out, err = n.command("answer", turn.PendingID, nextPrompt).CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, m.heard(t), nextPrompt)
	}
}
