//go:build linux

package agents_test

import (
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the results of TestMatrix into docs/agents.md")

// scene is one case of the table in docs/agents.md: a machine and an agent that is not started yet.
type scene struct {
	*machine
	way
	program string
}

// Each way of connecting an agent runs every case with the real agent, and its row in docs/agents.md must
// have the results. A result is "yes", "no: WHY", or "not carried" if the way cannot do the case. The files
// that the agent's tool calls create show which calls ran. If a call runs that must not run, the test fails,
// whatever the page says.
func TestMatrix(t *testing.T) {
	for _, w := range ways() {
		t.Run(strings.ReplaceAll(w.title, "`", ""), func(t *testing.T) {
			with(t, func(t *testing.T, program string) {
				found := map[string]string{}
				for _, c := range matrixCases() {
					t.Run(c.name, func(t *testing.T) {
						s := &scene{machine: newMachine(t, newModel(t)), way: w, program: program}
						found[c.name] = c.run(s)
						t.Log(found[c.name])
					})
				}
				if len(found) < len(matrixCases()) {
					t.Skip("the page keeps its row: not every case was run")
				}
				row := matrixRow(w, program, found)
				switch was := matrixRowOf(t, w); {
				case *update && !t.Failed():
					writeMatrixRow(t, w, row)
				default:
					assert.Equal(t, cellsOf(was), cellsOf(row), "run with -update if this is right")
				}
			}, w.Agent)
		})
	}
}

// The method begins starts the agent. The model makes the first calls and, when it has all their results, the
// calls of the parameter then.
func (s *scene) begins(first []call, then ...call) *run {
	s.model.calls, s.model.then = first, then
	s.rig.installs(s.machine, s.program)
	return s.runs(s.machine, s.program)
}

// question waits until the agent has asked n questions, its turn is over, or the time limit has passed. It
// returns the pending questions.
func (s *scene) question(r *run, n int, limit time.Duration) (all []request) {
	end := time.Now().Add(limit)
	s.until("the agent asks", func() bool {
		over := r.over() || time.Now().After(end)
		all = s.pending()
		return over || len(all) >= n
	})
	return all
}

func (s *scene) asksOnce(r *run) request {
	all := s.question(r, 1, patience)
	require.Len(s.t, all, 1, "the agent's questions")
	return all[0]
}

func (s *scene) stops(r *run) {
	s.until("the turn is over", func() bool { return r.over() || r.hasEnded() })
}

// stopsOrAsks waits until the agent's turn is over or the agent asks its own user. It reports whether the
// agent asks.
func (s *scene) stopsOrAsks(r *run) (alone bool) {
	s.until("the turn is over", func() bool {
		alone = r.alone != nil && r.alone()
		return r.over() || r.hasEnded() || alone
	})
	return alone && !r.over()
}

// The method left returns the content of a file in the project, or "" if the file does not exist.
func (s *scene) left(name string) string {
	text, err := os.ReadFile(filepath.Join(s.project, name))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(s.t, err)
	}
	return string(text)
}

// nothingRan requires that the command touch did not run.
func (s *scene) nothingRan() {
	require.Empty(s.t, s.left("ran"), "the call ran, and no person has allowed it")
}

func (s *scene) applies(settings string) {
	path := filepath.Join(s.home, "settings.json")
	require.NoError(s.t, os.WriteFile(path, []byte(settings), 0o600))
	s.does("settings", "apply", path)
}

// The method tries runs a nod command. It returns the output, and whether the command succeeded.
func (s *scene) tries(args ...string) (out string, ok bool) {
	said, err := s.command(s.nod, args...).CombinedOutput()
	return string(said), err == nil
}

// The function yes returns "yes" for a true condition, and otherwise "no: " with the reason why.
func yes(so bool, why string) string {
	if so {
		return "yes"
	}
	return "no: " + why
}

// The method posts sends a body to the agent's own server, and decodes the reply.
func (x *machine) posts(url, body string, into any) {
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(x.t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Less(x.t, resp.StatusCode, 300, url)
	require.NoError(x.t, json.NewDecoder(resp.Body).Decode(into))
}

// The page docs/agents.md has the table of results between these two marks.
const (
	matrixPage  = "../../docs/agents.md"
	matrixBegin = "<!-- matrix -->\n"
	matrixEnd   = "<!-- /matrix -->"
)

func matrixRow(w way, program string, found map[string]string) string {
	cells := []string{w.title, w.Version, time.Now().UTC().Format(time.DateOnly)}
	for _, c := range matrixCases() {
		cells = append(cells, found[c.name])
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// cellsOf returns the cells of a table row, without the cell of its date.
func cellsOf(row string) []string {
	cells := strings.Split(row, " | ")
	if len(cells) > 2 {
		cells = slices.Delete(cells, 2, 3)
	}
	return cells
}

func matrixRows(t *testing.T) (head, tail string, rows map[string]string) {
	page, err := os.ReadFile(matrixPage)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(page), matrixBegin)
	require.True(t, ok, matrixPage)
	table, tail, ok := strings.Cut(rest, matrixEnd)
	require.True(t, ok, matrixPage)
	rows = map[string]string{}
	for line := range strings.Lines(table) {
		title, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		rows[title] = strings.TrimSpace(line)
	}
	return head, tail, rows
}

func matrixRowOf(t *testing.T, w way) string {
	_, _, rows := matrixRows(t)
	return rows[w.title]
}

// writeMatrixRow replaces the table row of one way of connecting an agent, and keeps all other rows of the
// page.
func writeMatrixRow(t *testing.T, w way, row string) {
	head, tail, rows := matrixRows(t)
	rows[w.title] = row
	names := []string{"Agent", "Version", "Run on"}
	for _, c := range matrixCases() {
		names = append(names, c.name)
	}
	lines := []string{"| " + strings.Join(names, " | ") + " |", strings.Repeat("|---", len(names)) + "|"}
	for _, w := range ways() {
		if rows[w.title] != "" {
			lines = append(lines, rows[w.title])
		}
	}
	text := head + matrixBegin + strings.Join(lines, "\n") + "\n" + matrixEnd + tail
	require.NoError(t, os.WriteFile(matrixPage, []byte(text), 0o644))
}
