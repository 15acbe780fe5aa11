package agents_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	acp "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/agents/internal/npm"
)

var clineTouch = call{"run_commands", map[string]any{"commands": []string{touch}}}

func (x *machine) clineUsesTheModel(program string) {
	out, err := x.command(program, "auth", "-p", "openai-native", "-k", "none", "-m", "gpt-5", "-b", x.model.URL+"/v1").CombinedOutput()
	require.NoError(x.t, err, "cline auth: %s", out)
}

// cline returns the command with which nod acp starts Cline.
func (x *machine) cline(program string) *exec.Cmd {
	c := x.command(x.nod, "acp", "--", program, "--acp")
	c.Env = append(c.Env, "CLINE_API_KEY=none", "CLINE_PROVIDER=openai-native", "CLINE_MODEL=gpt-5")
	return c
}

// Cline asks about each of two calls of one turn. After a denial of the first, the second still waits for
// its own answer.
func TestClineAsksAboutTwoCalls(t *testing.T) {
	with(t, func(t *testing.T, program string) {
		x := newMachine(t, newModel(t, clineTouch, call{clineTouch.tool, map[string]any{"commands": []string{"echo two > two", "true"}}}))
		x.clineUsesTheModel(program)
		c := x.cline(program)
		in, err := c.StdinPipe()
		require.NoError(t, err)
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		x.starts(c)
		ended := prompts(t, acp.NewClientSideConnection(editor{t: t}, in, out), "", x.project)
		answered := map[string]bool{}
		answer := map[string]string{"Bash": "deny", "acp_execute": "allow"} // the tool of a call that runs several commands is acp_execute, and not Bash
		x.until("Cline asks twice", func() bool {
			for _, r := range x.pending() {
				if !answered[r.ID] {
					answered[r.ID] = true
					x.does(answer[r.Tool], r.ID)
				}
			}
			return len(answered) == 2
		})
		require.NoError(t, <-ended)
		assert.NoFileExists(t, x.ran)
		assert.FileExists(t, filepath.Join(x.project, "two"))
	}, npm.Cline)
}

// Through nod acp, the model gets a denial without its reason, because ACP has no field for a reason.
func TestClineByACP(t *testing.T) {
	with(t, func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, clineTouch))
				x.clineUsesTheModel(program)
				r := x.edits(x.cline(program), "", answer)
				assert.Equal(t, "Bash", r.Tool, "the rules for commands apply")
				x.shows(answer, "")
			})
		}
	}, npm.Cline)
}
