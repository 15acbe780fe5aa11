package rig

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Pane is a terminal of tmux that runs one program.
type Pane struct {
	*require.Assertions
	T      *testing.T
	tmux   func(args ...string) *exec.Cmd
	width  int
	height int
}

// NewPane runs a shell command in a new terminal, with nod's environment. The screen stays readable after the
// command has ended. If tmux is missing, NewPane skips the test, or fails it in CI.
func (m *Machine) NewPane(t *testing.T, width, height int, command string) *Pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "tmux is required if CI=true: %v", err)
		t.Skipf("left out: the test needs tmux for a real terminal: %v", err)
	}
	dir, err := os.MkdirTemp("", "nod-tmux-")
	require.NoError(t, err)
	config := filepath.Join(dir, "conf")
	require.NoError(t, os.WriteFile(config, []byte("set -g remain-on-exit on\nset -s escape-time 0\nset -g status off\nset -g default-shell /bin/sh\n"), 0o600))
	p := &Pane{require.New(t), t, func(args ...string) *exec.Cmd {
		c := exec.Command("tmux", append([]string{"-u", "-S", filepath.Join(dir, "s"), "-f", config}, args...)...)
		c.Env = append(m.Command().Env, "TMUX=", "LC_ALL=C.UTF-8", "TERM=xterm-256color")
		return c
	}, width, height}
	p.does("new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), command)
	t.Cleanup(func() {
		_ = p.tmux("kill-server").Run() // kill-server fails if the terminal's server has ended
		_ = os.RemoveAll(dir)
	})
	return p
}

func (p *Pane) does(args ...string) string {
	p.T.Helper()
	out, err := p.tmux(args...).CombinedOutput()
	p.NoError(err, "tmux %v: %s", args, out)
	return string(out)
}

// Screen returns the text on the screen.
func (p *Pane) Screen() string { return p.does("capture-pane", "-p") }

// Shows waits until the screen contains a text.
func (p *Pane) Shows(text string) {
	p.T.Helper()
	p.Until(func() bool { return strings.Contains(p.Screen(), text) }, text)
}

// Until waits for a condition. If it is not true in time, the test fails with the text what.
func (p *Pane) Until(holds func() bool, what string) {
	p.T.Helper()
	if !p.Within(Patience, holds) {
		p.Fail("never: "+what, p.Screen())
	}
}

// Within polls a condition until it is true or the time patience has passed, and reports whether it is true.
func (p *Pane) Within(patience time.Duration, holds func() bool) bool {
	end, looks := time.NewTimer(patience), time.NewTicker(Tick)
	defer looks.Stop()
	for !holds() {
		select {
		case <-end.C:
			return false
		case <-looks.C:
		}
	}
	return true
}

// Types sends keys, which have the names that tmux send-keys uses.
func (p *Pane) Types(keys ...string) { p.does(append([]string{"send-keys"}, keys...)...) }

// Records makes the terminal copy all further output of its program to a file.
func (p *Pane) Records(file string) { p.does("pipe-pane", "-o", "cat >> "+file) }

// Coloured returns the text on the screen with its escape sequences.
func (p *Pane) Coloured() string { return p.does("capture-pane", "-p", "-e") }

// Close closes the terminal. Its programs get the signal SIGHUP.
func (p *Pane) Close() { p.does("kill-server") }
