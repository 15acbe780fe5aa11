package agents_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	acp "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/test/agents/internal/npm"
)

func codexShell(line string) call { return call{"exec_command", map[string]any{"cmd": line}} }

// codex returns a command of Codex or of nod. The command uses the Codex home in the machine's home
// directory.
func (x *machine) codex(program string, args ...string) *exec.Cmd {
	c := x.command(program, args...)
	c.Env = append(c.Env, "CODEX_HOME="+x.codexHome())
	return c
}

func (x *machine) codexHome() string { return filepath.Join(x.home, ".codex") }

func (x *machine) codexConfig() string { return filepath.Join(x.codexHome(), "config.toml") }

// codexSets adds lines to Codex's settings.
func (x *machine) codexSets(lines string) {
	require.NoError(x.t, os.MkdirAll(x.codexHome(), 0o700))
	f, err := os.OpenFile(x.codexConfig(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(x.t, err)
	_, err = io.WriteString(f, lines)
	require.NoError(x.t, err)
	require.NoError(x.t, f.Close())
}

func (x *machine) codexUsesTheModel() {
	x.codexSets(fmt.Sprintf("model = \"fake\"\nmodel_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\nbase_url = %q\nwire_api = \"responses\"\n", x.model.URL+"/v1"))
}

// codex exec never asks a user, so Codex asks nod about a shell command only after an install with --strict.
func TestCodexByHook(t *testing.T) {
	each(t, hook.Codex(), "@openai/codex", func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, call{"exec_command", map[string]any{"cmd": touch}}))
				x.codexUsesTheModel()
				x.installsFor("codex", program, "--strict")
				x.codexTrusts(program)
				a := x.starts(x.codex(program, "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "go on"))
				r := x.asked(a)
				assert.Equal(t, "Bash", r.Tool)
				x.does(answer, r.ID, "-m", "said by Ann")
				x.ends(a)
				x.shows(answer, "said by Ann")
			})
		}
	})
}

// codexHook is one hook in Codex's reply to the call hooks/list.
type codexHook struct {
	Key    string `json:"key"`
	Status string `json:"trustStatus"`
}

// codexTrusts requires that both Codex and nod doctor report the installed hooks as trusted.
func (x *machine) codexTrusts(program string) {
	found := x.codexHooks(program)
	require.Len(x.t, found, 6)
	for _, h := range found {
		require.Equal(x.t, "trusted", h.Status, h.Key)
	}
	findings, _ := x.command(x.nod, "doctor").Output() // the exit code of nod doctor also depends on other findings
	assert.Contains(x.t, string(findings), "Codex trusts the hook")
}

// codexHooks returns the hooks that Codex would run in the project's directory.
func (x *machine) codexHooks(program string) []codexHook {
	c := x.codex(program, "app-server")
	in, err := c.StdinPipe()
	require.NoError(x.t, err)
	out, err := c.StdoutPipe()
	require.NoError(x.t, err)
	stop := start(x.t, c)
	defer func() { stop(); _ = c.Wait() }() // stop kills the process, so Wait returns an error
	_, err = fmt.Fprintf(in, "%s\n%s\n",
		`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"test","version":"1"}}}`,
		text(map[string]any{"id": 2, "method": "hooks/list", "params": map[string]any{"cwds": []string{x.project}}}))
	require.NoError(x.t, err)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var said struct {
			ID     int `json:"id"`
			Result struct {
				Data []struct {
					Hooks []codexHook `json:"hooks"`
				} `json:"data"`
			} `json:"result"`
		}
		if json.Unmarshal(lines.Bytes(), &said) == nil && said.ID == 2 {
			require.Len(x.t, said.Result.Data, 1, strings.TrimSpace(lines.Text()))
			return said.Result.Data[0].Hooks
		}
	}
	require.FailNow(x.t, "codex app-server lists no hooks")
	return nil
}

// Codex's adapter for ACP asks about two calls at once. A denial of the first call ends the turn, and the
// second call never runs. nod refuses an allow of the second call, or shows afterwards that the call never
// ran.
func TestCodexByACPDropsTheOtherCall(t *testing.T) {
	with(t, func(t *testing.T, program string) {
		escalated := func(line string) map[string]any {
			return map[string]any{"cmd": line, "sandbox_permissions": "require_escalated", "justification": "to leave a file"}
		}
		x := newMachine(t, newModel(t, call{"exec_command", escalated(touch)}, call{"exec_command", escalated("echo two > two")}))
		x.codexUsesTheModel()
		c := x.codex(x.nod, "acp", "--", program)
		c.Env = append(c.Env, "OPENAI_API_KEY=none")
		in, err := c.StdinPipe()
		require.NoError(t, err)
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		x.starts(c)
		ended := prompts(t, acp.NewClientSideConnection(editor{t: t}, in, out), "", x.project)
		x.until("Codex asks twice", func() bool { return len(x.pending()) == 2 })
		open := x.pending()
		assert.Equal(t, []string{"Bash", "Bash"}, []string{open[0].Tool, open[1].Tool})
		x.does("deny", open[0].ID)
		err = x.command(x.nod, "allow", open[1].ID).Run()
		require.NoError(t, <-ended)
		if shown := x.does("show", "--json", open[1].ID); err == nil {
			assert.Contains(t, shown, "never_ran")
		} else {
			assert.Contains(t, shown, "after a denial the agent drops its other open calls")
		}
		assert.NoFileExists(t, x.ran)
		assert.NoFileExists(t, filepath.Join(x.project, "two"))
	}, npm.CodexACP)
}
