package people

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

// Whatever a file contains, a person sees all lines of an edit's texts, and all lines that a write adds.
// A note in place of lines gives their numbers in the file, and the whole text follows the diff.
func TestNothingThatACallChangesIsLeftOut(t *testing.T) {
	pol, err := policy.New(schemas.Permissions{})
	require.NoError(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "a.txt")
	random := rand.New(rand.NewPCG(5, 6))
	text := func(n int) string {
		var b strings.Builder
		for range random.IntN(n) {
			b.WriteString([]string{"a\n", "b\n", "\n", "x\u202e\n", "- a\n", "⟦lines 1 to 9⟧\n", "token = \"hunter2hunter2\"\n"}[random.IntN(7)])
		}
		return b.String() + []string{"", "z"}[random.IntN(2)]
	}
	act := func(fields map[string]any) action {
		input, err := json.Marshal(fields)
		require.NoError(t, err)
		p := asks("Write", schemas.ActionFileWrite, string(input))
		tool := "Write"
		if fields["content"] == nil {
			tool = "Edit"
		}
		return action{r: &p.Request, onDisk: policy.ThisDisk{}.ReadWritten(t.Context(), pol, policy.Call{ToolName: tool, Input: input, Cwd: dir, Project: dir}).File}
	}
	compared, leftOut := 0, 0
	for range 1500 {
		before, after := text(30), text(30)
		if random.IntN(2) == 0 {
			after = before + after
		}
		require.NoError(t, os.WriteFile(file, []byte(before), 0o600))
		a := act(map[string]any{"file_path": file, "content": after})
		d := a.textOnDisk(after, false)
		require.Equal(t, after, made(t, before, d.lines), "%q → %q", before, after)
		require.Equal(t, of(d.lines, payload.Add) != after, d.whole != "", "%q → %q", before, after)
		if d.whole != "" {
			require.Equal(t, after, d.whole)
			leftOut++
		}

		from := random.IntN(len(before) + 1)
		old := before[from : from+random.IntN(len(before)+1-from)]
		if old == "" {
			continue
		}
		a = act(map[string]any{"file_path": file, "old_string": old, "new_string": after, "replace_all": true})
		d = a.editOnDisk(0, 1, old, after)
		require.Contains(t, of(d.lines, payload.Add), after, "%q: %q → %q", before, old, after)
		require.Contains(t, of(d.lines, payload.Remove), old)
		if strings.HasPrefix(d.label, "Against") {
			compared++
		}
	}
	require.Greater(t, compared, 200)
	require.Greater(t, leftOut, 50)
}

// of returns the text of the lines that a diff keeps or that have the operation op.
func of(lines []diffLine, op payload.Op) string {
	var b strings.Builder
	for _, l := range lines {
		if l.note == "" && (l.Op == payload.Keep || l.Op == op) {
			b.WriteString(l.Text)
		}
	}
	return b.String()
}

// made applies a diff to the old content of a file and returns the new content. If a note replaces lines,
// made takes these lines from the old content.
func made(t *testing.T, before string, lines []diffLine) string {
	var b strings.Builder
	was := payload.Kept(before)
	for _, l := range lines {
		switch {
		case strings.HasPrefix(l.note, "lines "):
			var from, to int
			_, err := fmt.Sscanf(l.note, "lines %d to %d", &from, &to)
			require.NoError(t, err)
			for _, kept := range was[from-1 : to] {
				require.True(t, foldable(kept.Text))
				b.WriteString(kept.Text)
			}
		case l.note == "" && l.Op != payload.Remove:
			b.WriteString(l.Text)
		}
	}
	return b.String()
}

// If what nod has read of the file does not fit the call, the prompt shows only the call.
func TestAFileThatDoesNotFitTheCallIsIgnored(t *testing.T) {
	alone := Text(asks("Write", schemas.ActionFileWrite, `{"file_path":"/a","content":"1\n2\n"}`), now, 80)
	for _, file := range []string{
		`{"lines":3}`, `{"lines":1}`, `{"lines":-1}`, `{"cell":true,"lines":2}`, `{"lines":2,"edits":[{}]}`,
		`{"lines":2,"changes":[{"line":0,"added":1}]}`, `{"lines":2,"changes":[{"line":1,"added":3}]}`, `{"lines":2,"changes":[{"line":1,"added":-1}]}`,
		`{"lines":2,"changes":[{"line":9,"added":1}]}`, `{"lines":2,"changes":[{"line":2,"added":1}]}`, `{"lines":2,"changes":[{"line":2,"more":-1,"added":1}]}`,
		`{"lines":2,"changes":[{"line":2,"removed":"2\n","added":1},{"line":1,"added":0}]}`,
	} {
		p := onDisk(asks("Write", schemas.ActionFileWrite, `{"file_path":"/a","content":"1\n2\n"}`), file)
		assert.Equal(t, alone, Text(p, now, 80), file)
	}
	p := onDisk(edit(), `{"edits":[{"count":1,"hunks":[{"line":0,"around":["a"]}]}]}`)
	assert.Equal(t, Text(edit(), now, 80), Text(p, now, 80))
}

// Before an allow, a person must also see the whole text that follows a diff. The whole text has the same
// marks as every payload.
func TestTheWholeTextIsPartOfThePayload(t *testing.T) {
	for _, c := range []struct{ tool, input, file string }{
		{"Write", `{"file_path":"/a","content":"1\n2\n3\n4\n5\nsix \u202e\n"}`, `{"lines":6,"changes":[{"line":6,"removed":"6\n","added":1}]}`},
		{"NotebookEdit", `{"notebook_path":"/a","cell_id":"c","new_source":"1\n2\n3\n4\n5\nsix \u202e\n"}`, `{"lines":6,"cell":true,"changes":[{"line":6,"removed":"6\n","added":1}]}`},
	} {
		p := onDisk(asks(c.tool, schemas.ActionFileWrite, c.input), c.file)
		var parts []Part
		for _, part := range Parts(p, now) {
			if part.Label == "Whole text" {
				parts = append(parts, part)
			}
		}
		require.Len(t, parts, 1, c.tool)
		assert.Equal(t, Part{Label: "Whole text", Quote: true, Lines: []string{"1", "2", "3", "4", "5", "six ⟦U+202E⟧⏎"}, Spans: parts[0].Spans, Group: Essential}, parts[0], c.tool)
	}
}
