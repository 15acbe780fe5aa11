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
)

const droidPackage = "droid"

var droidTouch = droidShell(touch)

func droidShell(line string) call {
	return call{"Execute", map[string]any{"command": line, "riskLevel": "low", "riskLevelReason": "leaves a file", "summary": "leave a file"}}
}

// droid returns a command for Factory's droid, which uses the fake model. With the flag
// --skip-permissions-unsafe, droid runs every call without asking its user.
func (x *machine) droid(program string) *exec.Cmd {
	settings := filepath.Join(x.home, ".factory", "settings.json")
	require.NoError(x.t, os.MkdirAll(filepath.Dir(settings), 0o700))
	require.NoError(x.t, os.WriteFile(settings, fmt.Appendf(nil, `{"customModels":[{"model":"fake","displayName":"Fake","baseUrl":%q,"apiKey":"none","provider":"anthropic","maxOutputTokens":1000}]}`, x.model.URL), 0o600))
	return x.command(program, "exec", "-m", "custom:Fake-0", "--skip-permissions-unsafe", "go on")
}

// droid asks its hook before every call, and runs a call with the input that a person has changed.
func TestDroidByHook(t *testing.T) {
	each(t, hook.Droid(), droidPackage, func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, droidTouch))
				x.does("install", "droid")
				a := x.starts(x.droid(program))
				r := x.asked(a)
				assert.Equal(t, "Bash", r.Tool)
				x.does(answer, r.ID, "-m", "said by Ann")
				x.ends(a)
				x.shows(answer, "said by Ann")
			})
		}
		t.Run("edit", func(t *testing.T) {
			x := newMachine(t, newModel(t, droidShell("./absent")))
			x.does("install", "droid")
			a := x.starts(x.droid(program))
			x.does("allow", x.asked(a).ID, "--input", `{"command":"`+touch+`"}`)
			x.ends(a)
			assert.FileExists(t, x.ran)
		})
	})
}
