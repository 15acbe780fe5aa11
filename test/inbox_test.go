package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// pane is a tmux terminal that runs one program.
type pane struct {
	*require.Assertions
	t      *testing.T
	tmux   func(args ...string) *exec.Cmd
	width  int
	height int
}

// newPane runs a shell command with nod's environment in a terminal. The screen stays
// readable after the command has ended.
func (m *machine) newPane(t *testing.T, width, height int, command string) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "tmux is required if CI=true: %v", err)
		t.Skipf("left out: the test needs tmux for a real terminal: %v", err)
	}
	dir, err := os.MkdirTemp("", "nod-tmux-")
	require.NoError(t, err)
	config := filepath.Join(dir, "conf")
	require.NoError(t, os.WriteFile(config, []byte("set -g remain-on-exit on\nset -s escape-time 0\nset -g status off\nset -g default-shell /bin/sh\n"), 0o600))
	p := &pane{require.New(t), t, func(args ...string) *exec.Cmd {
		c := exec.Command("tmux", append([]string{"-u", "-S", filepath.Join(dir, "s"), "-f", config}, args...)...)
		c.Env = append(m.command().Env, "TMUX=", "LC_ALL=C.UTF-8", "TERM=xterm-256color")
		return c
	}, width, height}
	p.does("new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), command)
	t.Cleanup(func() {
		_ = p.tmux("kill-server").Run() // it may have ended
		_ = os.RemoveAll(dir)
	})
	return p
}

func (p *pane) does(args ...string) string {
	p.t.Helper()
	out, err := p.tmux(args...).CombinedOutput()
	p.NoError(err, "tmux %v: %s", args, out)
	return string(out)
}

func (p *pane) screen() string { return p.does("capture-pane", "-p") }

// shows waits until the screen holds a text.
func (p *pane) shows(text string) {
	p.t.Helper()
	p.until(func() bool { return strings.Contains(p.screen(), text) }, text)
}

func (p *pane) until(holds func() bool, what string) {
	p.t.Helper()
	if !p.within(patience, holds) {
		p.Fail("never: "+what, p.screen())
	}
}

// within polls until a condition holds, and reports whether it did in time.
func (p *pane) within(patience time.Duration, holds func() bool) bool {
	end, looks := time.NewTimer(patience), time.NewTicker(tick)
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

func (p *pane) types(keys ...string) { p.does(append([]string{"send-keys"}, keys...)...) }

// presses presses a key that decides, again if text is not shown within 3 s.
func (p *pane) presses(key, text string) {
	p.t.Helper()
	p.pressesAgain(3*time.Second, key, text)
}

// pressesOnce is presses for a key whose second press does something else: it waits
// so long before it that the first press must have been ignored.
func (p *pane) pressesOnce(key, text string) {
	p.t.Helper()
	p.pressesAgain(patience, key, text)
}

// pressesAgain presses a key, and repeats it if the screen does not show text in
// time. It waits 600 ms before each press, because the inbox ignores keys for a
// moment after a change.
func (p *pane) pressesAgain(after time.Duration, key, text string) {
	p.t.Helper()
	for range 5 {
		rested := time.NewTimer(600 * time.Millisecond)
		<-rested.C
		p.types(key)
		if p.within(after, func() bool { return strings.Contains(p.screen(), text) }) {
			return
		}
	}
	p.Fail("never: "+text, p.screen())
}

// asked sends a request without waiting for its decision, and returns the receipt.
func (m *machine) asked(t *testing.T, id string, args ...string) schemas.Receipt {
	t.Helper()
	out, stderr, code := m.run(append([]string{"ask", "--id", id, "--async", "--json"}, args...)...)
	require.Equal(t, 6, code, stderr)
	var r schemas.Receipt
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	return r
}

// decided returns a request's decision, nil if it is pending.
func (m *machine) decided(t *testing.T, id string) *schemas.Decision {
	t.Helper()
	out, stderr, code := m.run("show", id, "--json")
	require.Zero(t, code, stderr)
	var shown struct {
		Decision *schemas.Decision `json:"decision"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &shown))
	return shown.Decision
}

// An approver answers in a terminal, and sees others' decisions and that nod is away.
func TestTheInboxInATerminal(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	code := filepath.Join(m.dir, "code")
	p := m.newPane(t, 80, 24, fmt.Sprintf("%s inbox; echo $? >%[2]s.new; mv %[2]s.new %[2]s; cat", m.nod, code))
	p.shows("Nothing waits for an answer.")

	waiting := m.command(ask("fix-ci", "first-request")...)
	var out bytes.Buffer
	waiting.Stdout = &out
	require.NoError(t, waiting.Start())
	p.shows("▸ first-re")
	p.shows("No Allow: v shows it in full")
	p.types("v")
	p.shows("In full: first-request")
	p.types("Space")
	p.shows("Shown whole: y allows exactly this")
	p.presses("y", "✅ Allowed once · "+me(t))
	require.NoError(t, waiting.Wait())
	require.Contains(t, out.String(), `"outcome": "allowed"`)

	p.types("Escape")
	m.asked(t, "second-request", "--session", "fix-ci", "--tool", "Frobnicate", "--input", `{"n":2}`)
	p.shows("second-r")
	p.types("Down", "v")
	p.shows("In full: second-request")
	_, stderr, denied := m.run("deny", "second-request", "-m", "not now")
	require.Zero(t, denied, stderr)
	p.shows(`⛔ Denied · ` + me(t) + ` · `)
	p.shows(` · terminal · "not now"`)
	require.NotContains(t, p.screen(), "y once")

	p.types("Escape")
	require.Equal(t, schemas.TierDisconnected, m.asked(t, "third-request", "--session", "held", "--tool", "Frobnicate", "--input", `{"n":3}`).Tier)
	p.shows("third-re")
	p.types("Down")
	p.shows("n: 3")
	p.pressesOnce("l", "You hold session held")
	require.Equal(t, schemas.TierConnected, m.asked(t, "fourth-request", "--session", "held", "--tool", "Frobnicate", "--input", `{"n":4}`).Tier)
	p.pressesOnce("r", "Deny, and tell the agent why:")
	p.types("-l", "use make clean")
	p.shows("use make clean")
	p.pressesOnce("Enter", `"use make clean"`)
	require.Equal(t, "use make clean", m.decided(t, "third-request").Message)

	m.kill()
	p.shows("nod is away: nothing can be allowed until it is back.")
	m.start()
	p.until(func() bool { return !strings.Contains(p.screen(), "nod is away") }, "nod is back")
	p.types("Escape")
	var ended []byte
	p.until(func() bool {
		var err error
		ended, err = os.ReadFile(code) // tmux does not always notice that a program has ended
		return err == nil
	}, "closed")
	require.Equal(t, "0\n", string(ended), p.screen())
	require.Equal(t, schemas.TierDisconnected, m.asked(t, "fifth-request", "--session", "held", "--tool", "Frobnicate", "--input", `{"n":5}`).Tier, "closing the inbox releases the input lock")
	require.Nil(t, m.decided(t, "fifth-request"))
}

// Keys typed before the screen is up decide nothing.
func TestTheInboxDropsWhatWasTypedAhead(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.asked(t, "waits", "--session", "S", "--tool", "Frobnicate", "--input", `{"n":1}`)
	p := m.newPane(t, 120, 40, fmt.Sprintf("echo ready; while ! test -e %[2]s/go; do sleep 0.1; done; exec %[1]s inbox", m.nod, m.dir))
	p.shows("ready")
	p.types("y", "y", "n", "y", "y")
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "go"), nil, 0o600))
	p.shows("Shown whole: y allows exactly this")
	require.Nil(t, m.decided(t, "waits"))
	p.presses("y", "✅ Allowed once")
}

// A command of 100,000 characters, one with characters that reorder the text, and
// a padded one: no command can be allowed before the terminal has shown each of
// its characters.
func TestTheInboxShowsAllOfWhatItAllows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command       string
		width, height int
		also          *strings.Replacer // also marks characters that terminals draw differently
	}{
		"long":   {strings.Repeat("echo 0123456789; ", 5_882) + "rm -rf /", 120, 40, nil},
		"bidi":   {"echo \u202e; rm -rf / #\u2066 ok\u2069 שלום \x1b[2J\x1b[8m hidden \x1b[0m" + strings.Repeat(" go", 60), 40, 20, nil},
		"padded": {"ls" + strings.Repeat(" ", 3000) + "; rm -rf /" + strings.Repeat("\n", 300) + strings.Repeat("\u200b", 99) + "rm -rf ~", 40, 20, nil},
		"joined": {"ls कि 👍🏽" + strings.Repeat(" go\n", 40) + "rm -rf /", 80, 24,
			strings.NewReplacer("कि", "⟦U+0915⟧⟦U+093F⟧", "👍🏽", "⟦U+1F44D⟧⟦U+1F3FD⟧")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.start()
			input, err := json.Marshal(map[string]string{"command": c.command, "cwd": "/"})
			require.NoError(t, err)
			file := filepath.Join(m.dir, "input")
			require.NoError(t, os.WriteFile(file, input, 0o600))
			m.asked(t, "hostile", "--session", "S", "--tool", "Bash", "--input", "@"+file)
			p := m.newPane(t, c.width, c.height, m.nod+" inbox")
			p.shows("No Allow: v shows it in full")
			p.presses("y", "No Allow")
			p.types("v")
			p.shows("In full: hostile")
			rows := p.read()
			shown := people.Line(c.command)
			if c.also != nil {
				shown = c.also.Replace(shown)
			}
			require.Equal(t, shown, payload(rows), "the terminal's rows joined must be the whole command")
			p.presses("y", "✅ Allowed once")
			require.Equal(t, schemas.Allowed, m.decided(t, "hostile").Outcome)
		})
	}
}

// read pages through a request shown in full and returns its rows as they were on
// the terminal. It makes sure that the inbox offers no Allow before the last row.
func (p *pane) read() (rows []string) {
	p.t.Helper()
	where := regexp.MustCompile(`── rows (\d+)–(\d+) of (\d+) `)
	for {
		var screen []string
		var from, to, of int
		p.until(func() bool {
			text := p.screen()
			found := where.FindStringSubmatch(text)
			if found == nil {
				return false
			}
			screen = strings.Split(text, "\n")
			from, _ = strconv.Atoi(found[1]) // they are digits
			to, _ = strconv.Atoi(found[2])
			of, _ = strconv.Atoi(found[3])
			return to > len(rows)
		}, fmt.Sprintf("a row after %d", len(rows)))
		p.LessOrEqual(from, len(rows)+1, "a row was skipped")
		rows = append(rows[:from-1], screen[2:2+to-from+1]...)
		if to == of {
			return rows
		}
		p.Contains(strings.Join(screen, "\n"), "No Allow: read it to its end")
		p.types("y", "Space")
	}
}

// payload joins the rows that show a request's command.
func payload(rows []string) string {
	var b strings.Builder
	in := false
	for _, row := range rows {
		text, first := strings.CutPrefix(row, "  │ ")
		more, next := strings.CutPrefix(row, "  ┆ ")
		switch {
		case row == "  command":
			in = true
		case in && first:
			b.WriteString(text)
		case in && next:
			b.WriteString(more)
		default:
			in = false
		}
	}
	return b.String()
}

func TestTheInboxNeedsATerminal(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	_, stderr, code := m.run("inbox")
	require.Equal(t, 1, code)
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	require.Contains(t, stderr, "nod pending")
}
