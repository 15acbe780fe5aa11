package inbox

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// hostile contains commands that try to hide a part of themselves, and one harmless command.
var hostile = map[string]string{
	"plain":                "ls",
	"bidi":                 "rm -rf \u202e/ #\u2066 sl\u2069",
	"ANSI":                 "ls\x1b[2J\x1b[H\x1b[8m; rm -rf /\x1b[0m\x1b]0;ok\x07",
	"carriage return":      "rm -rf /\r" + strings.Repeat(" ", 100) + "\rls",
	"padding":              "ls" + strings.Repeat(" ", 5000) + "; rm -rf /",
	"padding with breaks":  "ls" + strings.Repeat("\n", 5000) + "rm -rf /",
	"many lines":           strings.Repeat("echo on\n", 60) + "rm -rf /",
	"forged words":         "ls\nAnswers     allow once\n" + "Shown whole: y allows exactly this" + "\nrm -rf /",
	"long":                 strings.Repeat("echo 0123456789; ", 5900) + "rm -rf /",
	"long, without blanks": strings.Repeat("x", 100_000) + "$(rm -rf /)",
	"wide":                 strings.Repeat("漢字", 300) + "; rm -rf /",
	"combining":            strings.Repeat("Z\u0351\u0489", 300) + "; rm -rf /",
	"jamo":                 "ls " + strings.Repeat("\u1100", 30) + "; rm -rf /",
	"conjuncts":            "ls " + strings.Repeat("\u0915\u094d", 60) + "; rm -rf /",
	"emoji":                strings.Repeat("👩‍👩‍👧🇩🇪🏽", 40) + "; rm -rf /",
	"right to left":        strings.Repeat("שלום ", 60) + "; rm -rf /",
	"no text":              strings.Repeat("\xff\xfe", 200) + "; rm -rf /",
}

var sizes = []struct{ width, height int }{{40, 20}, {80, 24}, {120, 40}}

// witness records every row that was visible on a terminal.
type witness map[string]bool

func (w witness) look(r *rig) {
	for row := range strings.SplitSeq(r.screen(), "\n") {
		w[row] = true
	}
}

// essentialRows returns the rows of a request that the user must see before allowing it.
func essentialRows(p *schemas.Prompt, width int) (rows []string) {
	for _, row := range people.Rows(fixedWidthParts(partsOf(p)), width) {
		if row.Group == people.Essential {
			rows = append(rows, strings.TrimRight(row.Text, " "))
		}
	}
	return rows
}

// unseen reports whether at least one of these rows was never on the terminal.
func (w witness) unseen(rows []string) bool { return w.seen(rows, 0) < len(rows) }

// seen returns the index of the first row that was never on the terminal, or len(rows). It skips
// rows[:from], because the caller knows that they were shown.
func (w witness) seen(rows []string, from int) int {
	for from < len(rows) && w[rows[from]] {
		from++
	}
	return from
}

// No sequence of keys allows a request before the terminal has shown all its essential rows. The test
// presses random keys.
func TestNothingIsAllowedBeforeAllRowsWereShown(t *testing.T) {
	tries := 4
	if testing.Short() {
		t.Log("the short form: one try each in place of 4")
		tries = 1
	}
	keys := []string{"y", "y", "y", "v", "space", "space", "pgdown", "down", "up", "pgup", "end", "home", "esc", "s", "b", "enter"}
	for name, command := range hostile {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s at %dx%d", name, size.width, size.height), func(t *testing.T) {
				p := runs("1", command)
				p.Request.Reason, p.Request.AgentName = command[:min(len(command), 300)], "\x1b[31magent\n\n\n\n\n\nyes"
				p.Remember = []schemas.Reach{{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{command[:min(len(command), 3000)]}}}}}
				rows, tries := essentialRows(&p, size.width), tries
				if len(command) > 10_000 { // a long command would make the test slow, and 30 keys cannot scroll through it
					tries = 1
				}
				for seed := range tries {
					random := rand.New(rand.NewPCG(uint64(seed), 0))
					r := newRig(t, size.width, size.height)
					shown := witness{}
					r.asks(p)
					for range 30 {
						shown.look(r)
						r.presses(keys[random.IntN(len(keys))])
						if len(r.said()) > 0 || r.closed {
							break
						}
					}
					if len(r.said()) > 0 {
						r.False(shown.unseen(rows), "seed %d", seed)
					}
				}
			})
		}
	}
}

// A user can allow a request as soon as all its essential rows have been on the screen, and not
// before.
func TestAllowIsPossibleOnceTheLastRowWasShown(t *testing.T) {
	for name, command := range hostile {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s at %dx%d", name, size.width, size.height), func(t *testing.T) {
				r := newRig(t, size.width, size.height)
				p := r.asks(runs("1", command))
				rows, shown, read := essentialRows(&p, size.width), witness{}, 0
				r.presses("v")
				for range 4000 {
					shown.look(r)
					if read = shown.seen(rows, read); read == len(rows) {
						break
					}
					r.saysNot("y once")
					r.presses("y")
					r.Empty(r.said())
					r.presses("space")
					if len(command) > 10_000 { // checking every page of a long command would be slow
						for range 40 {
							r.types("space")
							shown.look(r)
						}
					}
				}
				r.says("Shown whole", "y once")
				r.presses("y")
				r.Len(r.said(), 1)
			})
		}
	}
}

// The terminal draws every row unchanged and with the width that nod computed, with and without
// support for grapheme clusters.
func TestRowsAreDrawnUnchanged(t *testing.T) {
	var printable []rune
	for c := rune(' '); c < 0x20000; c++ {
		if unicode.IsPrint(c) {
			printable = append(printable, c)
		}
	}
	random, marked := rand.New(rand.NewPCG(1, 2)), 0
	for range 5_000 {
		near, text := random.IntN(len(printable)), ""
		for range 1 + random.IntN(30) {
			text += string(printable[(near+random.IntN(60))%len(printable)])
		}
		text = people.FixedWidth(people.Line(text))
		if strings.Contains(text, "⟦") {
			marked++
		}
		for _, row := range people.Wrap(text, 40) {
			for _, method := range []ansi.Method{ansi.GraphemeWidth, ansi.WcWidth} {
				buf := uv.NewScreenBuffer(40, 1)
				buf.Method = method
				uv.NewStyledString(row).Draw(buf, buf.Bounds())
				require.Equal(t, strings.TrimRight(row, " "), strings.TrimRight(buf.Line(0).String(), " "))
				require.Equal(t, people.Cells(row), method.StringWidth(row), row)
			}
			require.True(t, drawable([]string{row}, 40), row)
		}
	}
	require.NotZero(t, marked)
	require.Equal(t, "👍⟦U+1F44D⟧⟦U+1F3FD⟧ कण ⟦U+0915⟧⟦U+093F⟧", people.FixedWidth("👍👍🏽 कण कि"))
	require.False(t, drawable([]string{strings.Repeat("x", 41)}, 40))
	require.False(t, drawable([]string{"a" + strings.Repeat("\u0915\u094d", 40) + "\u200b"}, 20))
}

// A user can allow a write of an existing file only after its whole text was on the screen, although the
// diff above the text is short.
func TestTheWholeTextOfAWriteMustBeShown(t *testing.T) {
	r := newRig(t, 80, 24)
	details, err := json.Marshal(map[string]string{"file_path": "/app/a.txt", "content": strings.Repeat("kept\n", 60) + "added\n"})
	r.NoError(err)
	p := prompt("1", schemas.Request{Kind: schemas.KindToolCall, ToolName: "Write", ActionType: schemas.ActionFileWrite, ActionDetails: details})
	p.OnDisk = &schemas.DiskFile{Lines: 60, Changes: []schemas.DiskChange{{Line: 61, Added: 1}}}
	r.asks(p)
	r.says("⟦lines 1 to 57 are the same as on disk⟧", "No Allow: v shows it in full")
	r.presses("y", "v", "y", "space", "y")
	r.Empty(r.said())
	for range 5 {
		r.presses("space")
	}
	r.presses("y")
	r.Len(r.said(), 1)
}

// If a user jumps to the end of a text, the skipped rows count as unread.
func TestJumpingToTheEndIsNotReading(t *testing.T) {
	r := newRig(t, 80, 24)
	r.asks(runs("1", hostile["many lines"]))
	r.says("No Allow: v shows it in full")
	r.presses("v", "end", "y", "up", "y", "home", "y", "end", "y")
	r.Empty(r.said())
	r.says("unread from", "No Allow: read it to its end")
	r.presses("home")
	for range 10 {
		r.presses("space")
	}
	r.saysNot("unread")
	r.presses("y")
	r.Len(r.said(), 1)
}

// If the terminal's size or the request changes, the whole text counts as unread.
func TestAChangedRequestCountsAsUnread(t *testing.T) {
	r := newRig(t, 80, 24)
	p := r.asks(runs("1", hostile["many lines"]))
	read := func() {
		for range 30 {
			r.presses("space")
		}
		r.says("y once")
	}
	r.presses("v")
	read()
	r.hears(tea.WindowSizeMsg{Width: 40, Height: 20})
	r.saysNot("y once")
	r.presses("y")
	r.Empty(r.said())
	r.presses("home")
	read()
	p.Revision, p.Reasons = 2, []string{"another reason"}
	r.asks(p)
	r.saysNot("y once")
	r.presses("y")
	r.Empty(r.said())
	r.presses("home")
	read()

	p.Revision = 3 // the revision changes, but not the text
	r.asks(p)
	r.says("y once")
}

// On a terminal that is too small, the user cannot allow a request, and the program does not crash.
func TestSmallTerminals(t *testing.T) {
	for _, width := range []int{0, 1, 2, 20, 38, 39, 40, 41, 60} {
		for _, height := range []int{0, 1, 2, 5, 8, 9, 10, 11, 12, 16, 23} {
			r := newRig(t, width, height)
			r.asks(runs("1", "ls"))
			r.asks(runs("2", "ls"))
			for _, keys := range [][]string{{"y"}, {"v"}, {"y"}, {"esc", "b"}, {"y"}, {"esc", "r"}} {
				r.presses(keys...)
				rows := strings.Split(r.m.draw(), "\n")
				require.LessOrEqual(t, len(rows), max(2, height), "%dx%d", width, height)
			}
			if width < minWidth || height < minHeight {
				r.Empty(r.said())
			}
		}
	}
}

// Every text of an agent is sanitised before it reaches the terminal.
func FuzzTheScreenShowsOnlySanitisedText(f *testing.F) {
	for _, command := range hostile {
		f.Add(command[:min(len(command), 2000)], command[:min(len(command), 200)])
	}
	f.Fuzz(func(t *testing.T, command, words string) {
		r := newRig(t, 80, 24)
		p := runs("1", command)
		p.Request.Reason, p.Request.Title, p.Request.Host, p.Request.AgentName, p.Request.ToolName = words, words, words, words, words
		p.Request.Options = []schemas.Option{{OptionID: "a", Name: words, Kind: schemas.AllowOnce}, {OptionID: "b", Name: words, Kind: schemas.RejectAlways}}
		p.Reasons, p.Conditions = []string{words}, []string{words}
		p.Remember = []schemas.Reach{{Rules: []schemas.RememberedRule{{Tool: words, Argv: []string{command}}}}}
		p.Request.ActionDetails, _ = json.Marshal(map[string]string{"command": command, words: words}) // Marshal cannot fail for strings
		r.asks(p)
		r.ends(r.asks(runs("2", command)), schemas.Decision{Outcome: schemas.Denied, By: bob, Message: words})
		for _, key := range []string{"v", "space", "s", "esc", "r", "esc", "esc"} {
			for _, c := range r.m.draw() {
				if c < ' ' && c != '\n' && c != '\x1b' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == 0x202e {
					t.Fatalf("%U is drawn", c)
				}
			}
			// The screen contains no escape sequences but those for colours, bold, faint, underlined and
			// reversed text.
			for _, rest := range strings.Split(r.m.draw(), "\x1b")[1:] {
				if !strings.HasPrefix(rest, "[") || strings.Trim(rest[1:strings.IndexByte(rest, 'm')], "01234567;") != "" {
					t.Fatalf("an escape is drawn: %.20q", rest)
				}
			}
			r.presses(key)
		}
	})
}
