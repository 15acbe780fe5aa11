package agents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
)

const piPackage = "@mariozechner/pi-coding-agent"

var piTouch = piShell(touch)

func piShell(line string) call { return call{"bash", map[string]any{"command": line}} }

// pi returns a command for pi with the fake model. The string program is the path of pi or of a program that
// starts it.
func (x *machine) pi(program string, args ...string) *exec.Cmd {
	models := filepath.Join(x.home, ".pi", "agent", "models.json")
	require.NoError(x.t, os.MkdirAll(filepath.Dir(models), 0o700))
	require.NoError(x.t, os.WriteFile(models, []byte(`{"providers":{"fake":{"baseUrl":"`+x.model.URL+`","api":"anthropic-messages","apiKey":"none","models":[{"id":"fake"}]}}}`), 0o600))
	c := x.command(program, append(args, "--provider", "fake", "--model", "fake", "-p", "go on")...)
	c.Env = append(c.Env, "PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1")
	return c
}

// pi asks nod's extension before every call. If a person changes a call's input, pi runs the changed input.
func TestPiByHook(t *testing.T) {
	each(t, hook.Pi(), piPackage, func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, piTouch))
				x.does("install", "pi")
				a := x.starts(x.pi(program))
				r := x.asked(a)
				assert.Equal(t, "bash", r.Tool)
				x.does(answer, r.ID, "-m", "said by Ann")
				x.ends(a)
				x.shows(answer, "said by Ann")
			})
		}
		t.Run("edit", func(t *testing.T) {
			x := newMachine(t, newModel(t, call{"bash", map[string]any{"command": "./absent"}}))
			x.does("install", "pi")
			a := x.starts(x.pi(program))
			x.does("allow", x.asked(a).ID, "--input", `{"command":"`+touch+`"}`)
			x.ends(a)
			assert.FileExists(t, x.ran)
		})
	})
}
