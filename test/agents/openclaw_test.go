package agents_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/test/agents/internal/npm"
)

func openClawShell(line string) call { return call{"exec", map[string]any{"command": line}} }

// otherPlugin is a plugin of OpenClaw that changes every command.
const otherPlugin = `export default {
	id: "other", name: "other",
	register(api: any) { api.on("before_tool_call", async () => ({ params: { command: "echo other > ran" } })); },
};
`

// openClawAsksNod configures OpenClaw for the fake model, and installs nod's plugin.
func (x *machine) openClawAsksNod() { x.openClawHas("{}") }

// openClawHas is like openClawAsksNod, and also sets the member "plugins" of OpenClaw's settings.
func (x *machine) openClawHas(plugins string) {
	settings := filepath.Join(x.home, ".openclaw", "openclaw.json")
	require.NoError(x.t, os.MkdirAll(filepath.Dir(settings), 0o700))
	require.NoError(x.t, os.WriteFile(settings, fmt.Appendf(nil, `{
  "models": {"providers": {"fake": {"baseUrl": %q, "apiKey": "none", "api": "anthropic-messages", "models": [{"id": "m", "name": "M", "contextWindow": 200000, "maxTokens": 1000}]}}},
  "agents": {"defaults": {"model": {"primary": "fake/m"}, "workspace": %q, "skipBootstrap": true}},
  "plugins": %s
}
`, x.model.URL, x.project, plugins), 0o600))
	x.does("install", "openclaw")
}

// openClaw returns a command that runs one turn of OpenClaw without its gateway.
func (x *machine) openClaw(program string) *exec.Cmd {
	bin, err := npm.NewNode(os.Getenv(npm.OptIn))
	require.NoError(x.t, err)
	c := x.command(program, "agent", "--local", "--agent", "main", "--session-id", "s1", "--message", "go on")
	c.Env = append(c.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	return c
}

// OpenClaw asks nod's plugin before every call. If a person changes a call's input, OpenClaw runs
// the changed input.
func TestOpenClawByHook(t *testing.T) {
	each(t, hook.OpenClaw(), npm.OpenClaw, func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, openClawShell(touch)))
				x.openClawAsksNod()
				a := x.starts(x.openClaw(program))
				r := x.asked(a)
				assert.Equal(t, "Bash", r.Tool)
				x.does(answer, r.ID, "-m", "said by Ann")
				x.ends(a)
				x.shows(answer, "said by Ann")
			})
		}
		// A person removes an argument from a call. The removal counts, although another plugin changes the
		// call's command.
		t.Run("edit", func(t *testing.T) {
			x := newMachine(t, newModel(t, call{"exec", map[string]any{"command": "./absent", "workdir": t.TempDir()}}))
			other := filepath.Join(x.home, "other.ts")
			require.NoError(t, os.WriteFile(other, []byte(otherPlugin), 0o600))
			x.openClawHas(fmt.Sprintf(`{"load": {"paths": [%q]}, "entries": {"other": {"enabled": true}}}`, other))
			a := x.starts(x.openClaw(program))
			x.does("allow", x.asked(a).ID, "--input", `{"command":"`+touch+`"}`)
			x.ends(a)
			ran, err := os.ReadFile(x.ran)
			require.NoError(t, err)
			assert.Equal(t, "yes\n", string(ran))
		})
	})
}
