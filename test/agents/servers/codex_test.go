package servers_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/agents/internal/npm"
)

// TestCodexAppServer runs a client that controls Codex through nod codex-app-server. A command that
// a person allows runs. A command that a person denies does not run, and the model gets the denial.
func TestCodexAppServer(t *testing.T) {
	path := program(t, npm.Codex)
	m := newModel(t)
	n := startNod(t)
	home, project := t.TempDir(), t.TempDir()
	config := fmt.Sprintf(`model = "gpt-5.1-codex"
model_provider = "fake"
[model_providers.fake]
name = "Fake"
base_url = %q
wire_api = "responses"
requires_openai_auth = false
`, m.url)
	require.NoError(t, os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600))
	sidecar := n.command("codex-app-server", "--", path, "app-server")
	sidecar.Env = append(sidecar.Env, "CODEX_HOME="+home)
	in, err := sidecar.StdinPipe()
	require.NoError(t, err)
	out, err := sidecar.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, sidecar.Start())
	t.Cleanup(func() { _ = sidecar.Process.Kill() }) // Kill fails if the sidecar has ended

	lines := bufio.NewReader(out)
	send := func(m map[string]any) {
		require.NoError(t, json.NewEncoder(in).Encode(m))
	}
	until := func(field string, want any) map[string]any {
		for {
			line, err := lines.ReadBytes('\n')
			require.NoError(t, err)
			var m map[string]any
			require.NoError(t, json.Unmarshal(line, &m))
			require.NotContains(t, string(line), "requestApproval", "approval requests go to nod, not to the client")
			if m[field] == want {
				return m
			}
		}
	}
	send(map[string]any{"id": 1, "method": "initialize", "params": map[string]any{"clientInfo": map[string]any{"name": "test", "title": "Test", "version": "1"}}})
	until("id", 1.0)
	send(map[string]any{"method": "initialized"})
	for i, answer := range []string{"allow", "deny"} {
		file := filepath.Join(project, "ran-"+answer)
		m.runs("touch " + file + " && echo done")
		send(map[string]any{"id": 10 + i, "method": "thread/start", "params": map[string]any{"cwd": project, "approvalPolicy": "untrusted", "sandbox": "danger-full-access"}})
		thread := until("id", float64(10+i))["result"].(map[string]any)["thread"].(map[string]any)["id"].(string)
		send(map[string]any{"id": 20 + i, "method": "turn/start", "params": map[string]any{"threadId": thread, "input": []any{map[string]any{"type": "text", "text": "do it", "text_elements": []any{}}}}})
		r := n.pending(t, thread)
		assert.Equal(t, []string{"Bash", project}, []string{r.ToolName, r.Project}, "the project is the thread's, not the directory that the model names")
		assert.Contains(t, string(r.ActionDetails), m.where)
		assert.NoFileExists(t, file)
		said, err := n.command(answer, r.PendingID).CombinedOutput()
		require.NoError(t, err, string(said))
		until("method", "turn/completed")
		if answer == "allow" {
			assert.Contains(t, m.heard(t), "done")
			assert.FileExists(t, file)
		} else {
			assert.Contains(t, m.heard(t), "rejected by user")
			assert.NoFileExists(t, file)
		}
	}
	require.NoError(t, in.Close())
	require.NoError(t, sidecar.Wait(), "the exit code is Codex's")
}
