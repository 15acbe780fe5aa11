package test

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A newcomer sees a question, answers it from a second terminal, and sees the agent go
// on, or get the reason for the denial.
func TestTheDemoIsAnsweredFromASecondTerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer []string
		goesOn string
	}{
		"allowed": {[]string{"allow"}, "demo: the agent goes on. (Nothing was removed: it is a demo.)"},
		"denied":  {[]string{"deny", "-m", "use make clean"}, "demo: the agent does not run it, and hears: Denied by " + me(t) + ": use make clean"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.up = m.command("up", "--demo", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
			out, err := m.up.StdoutPipe()
			require.NoError(t, err)
			m.up.Stderr = &m.errs
			require.NoError(t, m.up.Start())
			t.Cleanup(m.kill)
			over := time.AfterFunc(time.Minute, func() { _ = m.up.Process.Kill() }) // it may have ended
			defer over.Stop()
			lines := bufio.NewScanner(out)
			reads := func(want string) {
				for lines.Scan() {
					if strings.Contains(lines.Text(), want) {
						return
					}
				}
				t.Fatalf("nod up --demo ended without %q: %s", want, &m.errs)
			}
			reads("Answer it from a second terminal")
			reads("rm -rf build")
			_, stderr, code := m.run(append(c.answer, m.pending("demo"))...)
			require.Zero(t, code, stderr)
			reads(c.goesOn)
		})
	}
}
