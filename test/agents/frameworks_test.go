package agents_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/agents/internal/npm"
)

// The adapters of the TypeScript client run with the real frameworks and a fake model. An allow runs the
// tool, an edit runs it with the edited input, and after a denial the model gets the person's words. For
// LangChain and Mastra, the test calls the tool itself, without an agent of the framework.
func TestFrameworkAdapters(t *testing.T) {
	dir := os.Getenv(npm.OptIn)
	if dir == "" {
		t.Skipf("runs real frameworks from npm: name a directory for them, %s=DIR go test -timeout 30m ./test/agents/...", npm.OptIn)
	}
	dir, err := npm.Frameworks(dir)
	require.NoError(t, err)
	client, err := filepath.Abs("../../clients/typescript")
	require.NoError(t, err)
	program, err := os.ReadFile("frameworks/app.mjs")
	require.NoError(t, err)
	app := filepath.Join(dir, "app.mjs") // Node.js finds the frameworks only if the program is beside them
	require.NoError(t, os.WriteFile(app, program, 0o600))

	x := newMachine(t, newModel(t, call{"unused", nil}))
	url := x.servesHTTP()
	token, err := os.ReadFile(filepath.Join(x.home, ".local", "share", "nod", "http", "local.token"))
	require.NoError(t, err)
	for _, framework := range []string{"ai-sdk", "openai-agents", "langchain", "mastra"} {
		for answer, c := range map[string]struct {
			args []string
			ran  any
			said string
		}{
			"allow": {[]string{"allow"}, map[string]any{"amount": 40.0}, "paid"},
			"edit":  {[]string{"allow", "--input", `{"amount":7}`}, map[string]any{"amount": 7.0}, "paid"},
			"deny":  {[]string{"deny", "-m", "said by Ann"}, nil, "said by Ann"},
		} {
			t.Run(framework+" "+answer, func(t *testing.T) {
				x := *x
				x.t = t
				run := x.command("node", app, framework, framework+"-"+answer)
				run.Env = append(run.Env, "NOD_CLIENT="+client, "NOD_HTTP="+url, "NOD_TOKEN="+strings.TrimSpace(string(token)))
				a := x.starts(run)
				r := x.asked(a)
				assert.Equal(t, "refund", r.Tool)
				x.does(append([]string{c.args[0], r.ID}, c.args[1:]...)...)
				x.ends(a)
				var out struct {
					Ran   any
					Heard string
				}
				require.NoError(t, json.Unmarshal(a.out.Bytes(), &out), a.out.String())
				assert.Equal(t, c.ran, out.Ran)
				assert.Contains(t, out.Heard, c.said)
			})
		}
	}
}

// servesHTTP runs nod http until the end of the test, and returns its address.
func (x *machine) servesHTTP() (url string) {
	c := exec.Command(x.nod, "http", "--listen", "127.0.0.1:0")
	c.Env, c.Dir = x.command(x.nod).Env, x.project
	out, err := c.StdoutPipe()
	require.NoError(x.t, err)
	stop := start(x.t, c)
	x.t.Cleanup(func() { stop(); _ = c.Wait() }) // Wait fails, because stop kills the process
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(x.t, err)
	_, url, ok := strings.Cut(strings.TrimSpace(line), " is up on ")
	require.True(x.t, ok, line)
	return url
}
