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

const qwenPackage = "@qwen-code/qwen-code"

var qwenTouch = geminiShell(touch)

// qwen returns a command for Qwen Code with the fake model. The string program is the path of Qwen Code or of
// a program that starts it.
func (x *machine) qwen(program string, args ...string) *exec.Cmd {
	c := x.command(program, append(args, "--auth-type", "anthropic", "--model", "fake")...)
	c.Env = append(c.Env, "ANTHROPIC_API_KEY=none", "ANTHROPIC_BASE_URL="+x.model.URL, "ANTHROPIC_MODEL=fake")
	return c
}

// qwenAsksNod installs the hook. It also turns usage statistics off, because Qwen Code ends late if it cannot
// send them.
func (x *machine) qwenAsksNod() {
	settings := filepath.Join(x.home, ".qwen", "settings.json")
	require.NoError(x.t, os.MkdirAll(filepath.Dir(settings), 0o700))
	require.NoError(x.t, os.WriteFile(settings, []byte(`{"privacy":{"usageStatisticsEnabled":false}}`), 0o600))
	x.does("install", "qwen-code")
}

// Qwen Code asks its hook even without a terminal and with the flag --yolo, by which it runs every call
// without asking its user. Because Qwen Code ignores a changed input, nod turns an edit into a refusal.
func TestQwenByHook(t *testing.T) {
	each(t, hook.Qwen(), qwenPackage, func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, qwenTouch))
				x.qwenAsksNod()
				a := x.starts(x.qwen(program, "--yolo", "-p", "go on"))
				r := x.asked(a)
				assert.Equal(t, "run_shell_command", r.Tool)
				x.does(answer, r.ID, "-m", "said by Ann")
				x.ends(a)
				x.shows(answer, "said by Ann")
			})
		}
		t.Run("edit", func(t *testing.T) {
			x := newMachine(t, newModel(t, qwenTouch))
			x.qwenAsksNod()
			a := x.starts(x.qwen(program, "--yolo", "-p", "go on"))
			r := x.asked(a)
			x.does("allow", r.ID, "--input", `{"command":"echo no > ran","description":"leave a file","is_background":false,"cwd":"`+x.project+`"}`)
			x.ends(a)
			x.shows("deny", "ask again with")
		})
	})
}
