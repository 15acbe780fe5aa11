package people

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// The function presses presses a key that decides, and presses it again if the screen does not show the text
// within 3 s.
func presses(p *rig.Pane, key, text string) {
	p.T.Helper()
	pressesAgain(p, 3*time.Second, key, text)
}

// pressesOnce presses a key whose second press would have another effect. It presses the key again only if
// the screen does not show the text within rig.Patience, because the inbox must then have ignored the first
// press.
func pressesOnce(p *rig.Pane, key, text string) {
	p.T.Helper()
	pressesAgain(p, rig.Patience, key, text)
}

// pressesAgain presses a key up to five times, until the screen shows the text. After each press it waits for
// the text, for the time in the parameter after. Before each press it waits 600 ms, because the inbox ignores
// keys for a moment after a change.
func pressesAgain(p *rig.Pane, after time.Duration, key, text string) {
	p.T.Helper()
	for range 5 {
		rested := time.NewTimer(600 * time.Millisecond)
		<-rested.C
		p.Types(key)
		if p.Within(after, func() bool { return strings.Contains(p.Screen(), text) }) {
			return
		}
	}
	p.Fail("never: "+text, p.Screen())
}

func decided(m *rig.Machine, t *testing.T, id string) *schemas.Decision {
	t.Helper()
	out, stderr, code := m.Run("show", id, "--json")
	require.Zero(t, code, stderr)
	var shown struct {
		Decision *schemas.Decision `json:"decision"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &shown))
	return shown.Decision
}

// An approver answers in a terminal. The terminal also shows the decisions of other approvers, and says if
// nod is unavailable.
func TestTheInboxInATerminal(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	code := filepath.Join(m.Dir, "code")
	p := m.NewPane(t, 80, 24, fmt.Sprintf("%s inbox; echo $? >%[2]s.new; mv %[2]s.new %[2]s; cat", m.Nod, code))
	p.Shows("Nothing waits for an answer.")

	waiting := m.Command(rig.Ask("fix-ci", "first-request")...)
	var out bytes.Buffer
	waiting.Stdout = &out
	require.NoError(t, waiting.Start())
	p.Shows("▸ first-re")
	p.Types("v")
	p.Shows("In full: first-request")
	p.Shows("Shown whole: y allows exactly this")
	presses(p, "y", "✅ Allowed once · "+rig.Me(t))
	require.NoError(t, waiting.Wait())
	require.Contains(t, out.String(), `"outcome": "allowed"`)

	p.Types("Escape")
	m.Asked(t, "second-request", "--session", "fix-ci", "--tool", "Frobnicate", "--input", `{"n":2}`)
	p.Shows("second-r")
	p.Types("Down", "v")
	p.Shows("In full: second-request")
	_, stderr, denied := m.Run("deny", "second-request", "-m", "not now")
	require.Zero(t, denied, stderr)
	p.Shows(`⛔ Denied · ` + rig.Me(t) + ` · `)
	p.Shows(` · terminal · "not now"`)
	require.NotContains(t, p.Screen(), "y once")

	p.Types("Escape")
	require.Equal(t, schemas.TierDisconnected, m.Asked(t, "third-request", "--session", "held", "--tool", "Frobnicate", "--input", `{"n":3}`).Tier)
	p.Shows("third-re")
	p.Types("Down")
	p.Shows("n: 3")
	pressesOnce(p, "l", "You hold session held")
	require.Equal(t, schemas.TierConnected, m.Asked(t, "fourth-request", "--session", "held", "--tool", "Frobnicate", "--input", `{"n":4}`).Tier)
	pressesOnce(p, "r", "Deny, and tell the agent why:")
	p.Types("-l", "use make clean")
	p.Shows("use make clean")
	pressesOnce(p, "Enter", `"use make clean"`)
	require.Equal(t, "use make clean", decided(m, t, "third-request").Message)

	m.Kill()
	p.Shows("nod is away: nothing can be allowed until it is back.")
	m.StartNod()
	p.Until(func() bool { return !strings.Contains(p.Screen(), "nod is away") }, "nod is back")
	p.Types("Escape")
	var ended []byte
	p.Until(func() bool {
		var err error
		ended, err = os.ReadFile(code) // a file shows the end of the program, because tmux does not always notice it
		return err == nil
	}, "closed")
	require.Equal(t, "0\n", string(ended), p.Screen())
	require.Equal(t, schemas.TierDisconnected, m.Asked(t, "fifth-request", "--session", "held", "--tool", "Frobnicate", "--input", `{"n":5}`).Tier, "closing the inbox releases the input lock")
	require.Nil(t, decided(m, t, "fifth-request"))
}

func TestTheInboxDropsKeysTypedAhead(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestTheInboxInATerminal types keys")
	m := rig.NewMachine(t)
	m.StartNod()
	m.Asked(t, "waits", "--session", "S", "--tool", "Frobnicate", "--input", `{"n":1}`)
	p := m.NewPane(t, 120, 40, fmt.Sprintf("echo ready; while ! test -e %[2]s/go; do sleep 0.1; done; exec %[1]s inbox", m.Nod, m.Dir))
	p.Shows("ready")
	p.Types("y", "y", "n", "y", "y")
	require.NoError(t, os.WriteFile(filepath.Join(m.Dir, "go"), nil, 0o600))
	p.Shows("Shown whole: y allows exactly this")
	require.Nil(t, decided(m, t, "waits"))
	presses(p, "y", "✅ Allowed once")
}

// The inbox allows no command before the terminal has shown each of its characters. The commands of this
// test are very long, padded, or have characters that reorder or combine.
func TestTheInboxAllowsOnlyCommandsShownWhole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command       string
		width, height int
		also          *strings.Replacer // this replacer puts visible marks in the place of characters that a terminal would combine; nil if there are no such characters
	}{
		"long":   {strings.Repeat("echo 0123456789; ", 5_882) + "rm -rf /", 120, 40, nil},
		"bidi":   {"echo \u202e; rm -rf / #\u2066 ok\u2069 שלום \x1b[2J\x1b[8m hidden \x1b[0m" + strings.Repeat(" go", 60), 40, 20, nil},
		"padded": {"ls" + strings.Repeat(" ", 3000) + "; rm -rf /" + strings.Repeat("\n", 300) + strings.Repeat("\u200b", 99) + "rm -rf ~", 40, 20, nil},
		"joined": {"ls कि 👍🏽" + strings.Repeat(" go\n", 40) + "rm -rf /", 80, 24,
			strings.NewReplacer("कि", "⟦U+0915⟧⟦U+093F⟧", "👍🏽", "⟦U+1F44D⟧⟦U+1F3FD⟧")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := rig.NewMachine(t)
			m.StartNod()
			input, err := json.Marshal(map[string]string{"command": c.command, "cwd": "/"})
			require.NoError(t, err)
			file := filepath.Join(m.Dir, "input")
			require.NoError(t, os.WriteFile(file, input, 0o600))
			m.Asked(t, "hostile", "--session", "S", "--tool", "Bash", "--input", "@"+file)
			p := m.NewPane(t, c.width, c.height, m.Nod+" inbox")
			if name == "padded" { // the screen shows the length of the padding instead of the padding, so the command fits
				p.Shows("Shown whole: y allows")
			} else {
				p.Shows("No Allow: v shows it in full")
				presses(p, "y", "No Allow")
			}
			p.Types("v")
			p.Shows("In full: hostile")
			rows := read(p)
			shown := people.Line(c.command)
			if c.also != nil {
				shown = c.also.Replace(shown)
			}
			require.Equal(t, shown, payload(rows), "the terminal's rows joined must be the whole command")
			presses(p, "y", "✅ Allowed once")
			require.Equal(t, schemas.Allowed, decided(m, t, "hostile").Outcome)
		})
	}
}

// The function read pages through a request in full view, and returns its rows on the terminal. It requires
// that the inbox offers no Allow before the last row.
func read(p *rig.Pane) (rows []string) {
	p.T.Helper()
	where := regexp.MustCompile(`── rows (\d+)–(\d+) of (\d+) `)
	for {
		var screen []string
		var from, to, of int
		p.Until(func() bool {
			text := p.Screen()
			found := where.FindStringSubmatch(text)
			if found == nil {
				return false
			}
			screen = strings.Split(text, "\n")
			from, _ = strconv.Atoi(found[1]) // Atoi cannot fail, because the text has only digits
			to, _ = strconv.Atoi(found[2])
			of, _ = strconv.Atoi(found[3])
			return to > len(rows)
		}, fmt.Sprintf("a row after %d", len(rows)))
		p.LessOrEqual(from, len(rows)+1, "a row was skipped")
		rows = append(rows[:from-1], screen[2:2+to-from+1]...)
		if text := strings.Join(screen, "\n"); to == of || strings.Contains(text, "Shown whole: y allows") {
			return rows
		}
		p.Contains(strings.Join(screen, "\n"), "No Allow: read it to its end")
		p.Types("y", "Space")
	}
}

// payload returns the request's command. It joins the rows between the headline, which has no mark, and the
// line with the agent. A row is a line of the command, or a part of a broken line. The lines to look at first,
// which repeat lines of the command, do not count.
func payload(rows []string) string {
	var b strings.Builder
	if look := slices.IndexFunc(rows, func(row string) bool { return strings.HasPrefix(row, "Look first: ") }); look >= 0 {
		rows = rows[look+slices.Index(rows[look:], "")+1:]
	}
	for _, row := range rows {
		text, first := strings.CutPrefix(row, "│ ")
		if row == "│" { // tmux cuts blanks at the end of a row
			text, first = "", true
		}
		switch {
		case b.Len() == 0 && !first:
		case strings.HasPrefix(row, "— "):
			return b.String()
		case first && b.Len() > 0 && !strings.HasSuffix(b.String(), "line breaks⟧"):
			b.WriteString("⏎" + text)
		default:
			b.WriteString(strings.TrimPrefix(text, "┆ "))
		}
	}
	return b.String()
}

func TestTheInboxNeedsATerminal(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	_, stderr, code := m.Run("inbox")
	require.Equal(t, 1, code)
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	require.Contains(t, stderr, "nod pending")
}
