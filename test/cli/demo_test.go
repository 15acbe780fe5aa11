package cli

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// nod up --demo shows a question, which a person answers in a second terminal. The demo then shows that the
// agent continues, or that it gets the reason of a denial.
func TestTheDemoIsAnsweredFromASecondTerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer []string
		goesOn string
	}{
		"allowed": {[]string{"allow"}, "demo: the agent goes on. (Nothing was removed: it is a demo.)"},
		"denied":  {[]string{"deny", "-m", "use make clean"}, "demo: the agent does not run it, and hears: Denied by " + rig.Me(t) + ": use make clean"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := rig.NewMachine(t)
			m.Up = m.Command("up", "--demo", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
			out, err := m.Up.StdoutPipe()
			require.NoError(t, err)
			m.Up.Stderr = &m.Errs
			require.NoError(t, m.Up.Start())
			t.Cleanup(m.Kill)
			over := time.AfterFunc(time.Minute, func() { _ = m.Up.Process.Kill() }) // Kill fails if nod has ended
			defer over.Stop()
			lines := bufio.NewScanner(out)
			reads := func(want string) {
				for lines.Scan() {
					if strings.Contains(lines.Text(), want) {
						return
					}
				}
				t.Fatalf("nod up --demo ended without %q: %s", want, &m.Errs)
			}
			reads("Answer it from a second terminal")
			reads("rm -rf build")
			_, stderr, code := m.Run(append(c.answer, m.Pending(""))...)
			require.Zero(t, code, stderr)
			reads(c.goesOn)
		})
	}
}
