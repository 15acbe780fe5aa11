package servers_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/agents/internal/npm"
)

// TestOpenCode: with the settings from nod install, OpenCode asks for permission, and nod
// opencode answers. A command that a person allows runs. A command that a person denies does
// not run, and the model gets the reason.
func TestOpenCode(t *testing.T) {
	path := program(t, npm.OpenCode)
	m := newModel(t)
	n := startNod(t)
	project := t.TempDir()
	config := fmt.Sprintf(`{
  // a model that runs one command
  "model": "fake/m", "small_model": "fake/m", "autoupdate": false, "share": "disabled",
  "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": {"baseURL": %q, "apiKey": "none"},
    "models": {"m": {"name": "M", "tool_call": true, "limit": {"context": 100000, "output": 1000}}}}},
}`, m.url)
	require.NoError(t, os.WriteFile(filepath.Join(project, "opencode.json"), []byte(config), 0o600))
	install := n.command("install", "opencode", "--project")
	install.Dir = project
	out, err := install.CombinedOutput()
	require.NoError(t, err, string(out))

	home := t.TempDir()
	serve := exec.Command(path, "serve", "--port", "0")
	serve.Dir = project
	serve.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"}
	url := started(t, serve, `http://\S+`)
	follow := n.command("opencode", "--url", url)
	started(t, follow, "nod gets the permission prompts of OpenCode at")

	for _, c := range []struct {
		answer []string
		ran    bool
		hears  string
	}{
		{[]string{"allow"}, true, "done"},
		{[]string{"deny", "-m", "use make"}, false, "use make"},
	} {
		file := "ran-" + c.answer[0]
		m.runs("touch " + file + " && echo done")
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
	}
}
