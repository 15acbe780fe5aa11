package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// The recipes of docs/status.md show a waiting request in tmux, in Bash's prompt, in Claude Code's status
// line and in waybar. The test runs neither Claude Code nor waybar, only the commands for them.
func TestRecipesForStatusBars(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestStatusHistoryAndSessions prints the same status")
	m := rig.NewMachine(t)
	m.StartNod()
	m.Asked(t, "waits", "--session", "S", "--tool", "Frobnicate", "--input", `{"n":1}`)
	recipes := map[string][]string{}
	for _, block := range regexp.MustCompile("(?s)```(\\w+)\n(.*?)```").FindAllStringSubmatch(rig.Document(t, "docs/status.md"), -1) {
		recipes[block[1]] = append(recipes[block[1]], block[2])
	}
	dir := t.TempDir()
	require.NoError(t, os.Symlink(m.Nod, filepath.Join(dir, "nod")))
	path := dir + ":" + os.Getenv("PATH")
	run := func(script string) string {
		c := exec.Command("bash", "--norc", "-c", script)
		c.Env = append(m.Command().Env, "PATH="+path)
		out, err := c.Output()
		require.NoError(t, err, script)
		return string(out)
	}

	require.Contains(t, run(recipes["bash"][0]+"eval \"$PROMPT_COMMAND\"; echo \"${PS1@P}\""), "[nod 1] ")

	var claude struct {
		StatusLine struct{ Command string }
	}
	require.NoError(t, json.Unmarshal([]byte(recipes["json"][0]), &claude))
	require.Equal(t, "nod 1\n", run(claude.StatusLine.Command))

	var waybar map[string]struct{ Exec string }
	require.NoError(t, json.Unmarshal([]byte(recipes["json"][1]), &waybar))
	if _, err := exec.LookPath("jq"); err == nil || os.Getenv("CI") == "true" {
		require.JSONEq(t, `{"text":"nod 1","class":""}`, run(waybar["custom/nod"].Exec))
	}

	conf := filepath.Join(dir, "tmux.conf")
	require.NoError(t, os.WriteFile(conf, []byte(recipes["tmux"][0]), 0o600))
	p := m.NewPane(t, 80, 10, "PATH="+path+" TMUX= exec tmux -S "+filepath.Join(dir, "s")+" -f "+conf+" new-session 'sleep 600'")
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", filepath.Join(dir, "s"), "kill-server").Run() }) // kill-server fails if the server has ended
	p.Shows("nod 1 ")
}
