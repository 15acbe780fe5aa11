package docs

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// window is one terminal of the picture, with typed commands and printed lines.
type window struct {
	title string
	lines []string
}

func (w *window) typed(command string) { w.lines = append(w.lines, "$ "+command) }

func (w *window) printed(text string) {
	w.lines = append(w.lines, strings.Split(strings.TrimRight(text, "\n"), "\n")...)
}

// The picture in the README shows the output of a real run of nod. Fixed texts replace the ids, times
// and machine names, because these differ between runs. The flag -update draws the picture again.
func TestTheTerminalIsDrawnFromARun(t *testing.T) {
	const picture = "../../docs/terminal.svg"
	agent, person := filmed(t)
	drawn := draw(agent, person)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(picture), 0o755))
		require.NoError(t, os.WriteFile(picture, []byte(drawn), 0o644))
		return
	}
	stored, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.Equal(t, string(stored), drawn, "the picture is out of date: run go test ./test/docs -run Terminal -update, and look at it")
}

// filmed runs nod and returns two terminals. In the first one an agent sends a request, and in the
// second one a person denies it.
func filmed(t *testing.T) (agent, person *window) {
	m := rig.NewMachine(t)
	settings := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(settings, fmt.Appendf(nil,
		`{"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": %q}]}]}}`, rig.Me(t)), 0o600))
	m.StartNod("--settings", settings)
	agent, person = &window{title: "an agent's terminal"}, &window{title: "yours"}

	asking := m.Command("ask", "--session", "fix-ci", "--tool", "Bash", "--input", `{"command":"rm -rf build","cwd":"/home/ann/app"}`, "--reason", "clean rebuild")
	errs, err := asking.StderrPipe()
	require.NoError(t, err)
	var out strings.Builder
	asking.Stdout = &out
	require.NoError(t, asking.Start())
	waiting, err := bufio.NewReader(errs).ReadString('\n')
	require.NoError(t, err)
	id := regexp.MustCompile(`nod allow ([a-z0-9]+)`).FindStringSubmatch(waiting)
	require.Len(t, id, 2, waiting)
	go func() { _, _ = io.Copy(io.Discard, errs) }()

	for _, c := range []struct {
		typed string
		args  []string
	}{
		{"nod pending", []string{"pending"}},
		{"nod show " + drawnID[:4], []string{"show", id[1][:4]}},
		{"nod deny " + drawnID[:4] + ` -m "use make clean"`, []string{"deny", id[1][:4], "-m", "use make clean"}},
	} {
		stdout, stderr, code := m.Run(c.args...)
		require.Equal(t, 0, code, stderr)
		person.typed(c.typed)
		person.printed(same(stdout, id[1]))
	}
	require.Error(t, asking.Wait()) // nod ask exits with an error, because the request is denied
	agent.typed(`nod ask --session fix-ci --tool Bash --input '{"command":"rm -rf build"}' --reason "clean rebuild"`)
	agent.printed(same(waiting, id[1]))
	agent.printed(same(out.String(), id[1]))
	agent.typed("echo $?")
	agent.printed(fmt.Sprint(asking.ProcessState.ExitCode()))
	return agent, person
}

// drawnID is the id of the request in every picture.
const drawnID = "f2bz34kvq7mw5xna"

// The function same replaces texts that differ between runs, such as the request's id, with fixed texts. If
// columns depend on the length of a text, the fixed text is as long.
func same(text, id string) string {
	text = strings.ReplaceAll(text, id, drawnID)
	text = strings.ReplaceAll(text, id[:8], drawnID[:8])
	for _, r := range []struct{ pattern, as string }{
		{`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`, "2026-02-08 09:30:00"},
		{`· \d\d:\d\d UTC`, "· 09:30 UTC"},
		{`\d+ [A-Z][a-z]{2} \d\d:\d\d UTC`, "15 Feb 09:30 UTC"},
		{`— nod ask · .* · `, "— nod ask · app · "},
		{`nod revoke [A-Za-z0-9_-]+`, "nod revoke k3v9x2mp"},
		{`(?m)^(f2bz34kv  )\ds`, "${1}4s"},
		{`· [^ ·]+@[^ ·]+ · session`, "· ann@devbox · session"},
		{`(?m)^( +project: ).+`, "${1}/home/ann/app"},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.as)
	}
	return text
}

// The measures of the picture, in pixels, except for the number of columns.
const (
	lineHeight = 19
	charWidth  = 8.4375 // the width of a character in a 14 pixel monospaced font
	margin     = 16
	titleBar   = 30
	columns    = 112 // the number of characters in a line, which is 945 pixels wide
)

// draw returns an SVG picture of the terminals, one below the other.
func draw(windows ...*window) string {
	var b strings.Builder
	y, width := 0, int(columns*charWidth)+2*margin
	for _, w := range windows {
		height := titleBar + lineHeight*len(w.lines) + margin
		fmt.Fprintf(&b, `<rect y="%d" width="%d" height="%d" rx="8" fill="#1d2129"/>`+"\n", y, width, height)
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#7d8799">%s</text>`+"\n", margin, y+20, html.EscapeString(w.title))
		for i, line := range w.lines {
			if line == "" {
				continue
			}
			fmt.Fprintf(&b, `<text x="%d" y="%d"%s>%s</text>`+"\n", margin, y+titleBar+lineHeight*(i+1)-4, colour(line), html.EscapeString(line))
		}
		y += height + margin
	}
	y -= margin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="An agent asks to run rm -rf build; a person reads the whole request and denies it; the agent is told why."`+
		` font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="#d7dbe2" xml:space="preserve">`+"\n%s</svg>\n", width, y, width, y, b.String())
}

// colour returns the SVG attributes of a line. Typed commands and printed lines have different
// colours.
func colour(line string) string {
	if strings.HasPrefix(line, "$ ") {
		return ` fill="#8fd18f" font-weight="bold"`
	}
	return ""
}
