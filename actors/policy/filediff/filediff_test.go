package filediff

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

func editsOf(text string, edits ...tools.TextEdit) []schemas.DiskEdit {
	return New().Edits(context.Background(), text, edits)
}

func TestAnEditIsFoundInItsFile(t *testing.T) {
	const text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"
	hunk := func(line int, around ...string) []schemas.DiskHunk {
		return []schemas.DiskHunk{{Line: line, Around: around}}
	}
	for name, c := range map[string]struct {
		text string
		edit tools.TextEdit
		want schemas.DiskEdit
	}{
		"in the middle":      {text, tools.TextEdit{Old: "6\n", New: "six\n"}, schemas.DiskEdit{Count: 1, Hunks: hunk(3, "3\n4\n5\n", "7\n8\n9\n")}},
		"at the start":       {text, tools.TextEdit{Old: "1\n2", New: "x"}, schemas.DiskEdit{Count: 1, Hunks: hunk(1, "", "\n3\n4\n5\n")}},
		"at the end":         {"a\nb", tools.TextEdit{Old: "b", New: "b\n"}, schemas.DiskEdit{Count: 1, Hunks: hunk(1, "a\n", "")}},
		"a part of a line":   {"a\nx := 1 // y\nb\n", tools.TextEdit{Old: "1", New: "2"}, schemas.DiskEdit{Count: 1, Hunks: hunk(1, "a\nx := ", " // y\nb\n")}},
		"twice":              {"a\nb\na\n", tools.TextEdit{Old: "a"}, schemas.DiskEdit{Note: "the old text occurs 2 times in the file"}},
		"everywhere":         {"a\nb\na\n", tools.TextEdit{Old: "a", All: true}, schemas.DiskEdit{Count: 2, Hunks: hunk(1, "", "\nb\n", "\n")}},
		"far apart":          {"a\n" + text + "a\n", tools.TextEdit{Old: "a", All: true}, schemas.DiskEdit{Count: 2, Hunks: []schemas.DiskHunk{{Line: 1, Around: []string{"", "\n1\n2\n3\n"}}, {Line: 11, Around: []string{"10\n11\n12\n", "\n"}}}}},
		"missing":            {text, tools.TextEdit{Old: "x"}, schemas.DiskEdit{Note: "the old text is not in the file"}},
		"CRLF":               {"a\r\nb\r\nc\r\n", tools.TextEdit{Old: "a\nb", New: "x"}, schemas.DiskEdit{Count: 1, Hunks: hunk(1, "", "\nc\n")}},
		"mixed line breaks":  {"a\r\nb\na\n", tools.TextEdit{Old: "a\n", All: true}, schemas.DiskEdit{Note: "the file has two kinds of line breaks"}},
		"an empty file":      {"", tools.TextEdit{New: "x"}, schemas.DiskEdit{Count: 1, Hunks: hunk(1, "", "")}},
		"no old text":        {text, tools.TextEdit{New: "x"}, schemas.DiskEdit{Note: "the old text is empty, and the file is not"}},
		"a long line":        {strings.Repeat("x", 3000) + "a", tools.TextEdit{Old: "a"}, schemas.DiskEdit{Note: "the rest of its line is too long to show"}},
		"beside a long line": {strings.Repeat("x", 3000) + "\na\n", tools.TextEdit{Old: "a\n"}, schemas.DiskEdit{Count: 1, Hunks: hunk(2, "", "")}},
		"beside a secret":    {"x\npassword = \"hunter2hunter2\"\na\n", tools.TextEdit{Old: "a\n"}, schemas.DiskEdit{Count: 1, Hunks: hunk(3, "", "")}},
		"in a secret's line": {"password = \"hunter2hunter2\"\n", tools.TextEdit{Old: "password"}, schemas.DiskEdit{Note: "the rest of its line may hold a secret"}},
	} {
		assert.Equal(t, []schemas.DiskEdit{c.want}, editsOf(c.text, c.edit), name)
	}
}

func TestEditsBuildOnEachOther(t *testing.T) {
	got := editsOf("a\nb\n", tools.TextEdit{Old: "a", New: "x\ny"}, tools.TextEdit{Old: "y\nb", New: "z"}, tools.TextEdit{Old: "b"}, tools.TextEdit{Old: "x"})
	assert.Equal(t, []schemas.DiskHunk{{Line: 1, Around: []string{"", "\nb\n"}}}, got[0].Hunks)
	assert.Equal(t, []schemas.DiskHunk{{Line: 1, Around: []string{"x\n", "\n"}}}, got[1].Hunks)
	assert.Equal(t, "the old text is not in the file", got[2].Note)
	assert.Equal(t, "an edit above does not fit the file", got[3].Note)
	got = editsOf("password = \"hunter2hunter2\"\n", tools.TextEdit{Old: "password", New: "p"}, tools.TextEdit{Old: "p =", New: "q"})
	assert.Equal(t, "the rest of its line may hold a secret", got[1].Note, "what is left of a line with a secret is not shown either")
}

func TestRemovedLinesAreStoredWithoutSecrets(t *testing.T) {
	got, note := New().Changes(context.Background(), "a\nb\napi_key = \"hunter2hunter2\"\nc\n", "a\nc\nd\n")
	require.Empty(t, note)
	assert.Equal(t, []schemas.DiskChange{{Line: 2, Removed: "b\n[redacted]\n"}, {Line: 5, Added: 1}}, got)
}

// The result has a limited size, whatever the file contains.
func TestResultsAreBounded(t *testing.T) {
	many := strings.Repeat("foo = bar\n", 50_000)
	edits := editsOf(many, tools.TextEdit{Old: "foo", New: "x", All: true})
	require.Equal(t, 50_000, edits[0].Count)
	requireSmall(t, &schemas.DiskFile{Edits: edits})
	edits = editsOf(many, tools.TextEdit{Old: "foo", New: strings.Repeat("x", 1000), All: true})
	assert.Equal(t, "the file becomes too large", edits[0].Note)
	changes, note := New().Changes(context.Background(), many, "x\n")
	require.Empty(t, note)
	requireSmall(t, &schemas.DiskFile{Changes: changes})
	require.Equal(t, 50_000, strings.Count(changes[0].Removed, "\n")+changes[0].More)
	var before, after strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&before, "%d\n", i)
		fmt.Fprintf(&after, "%d\n", i+i%2*50_000)
	}
	if changes, note = New().Changes(context.Background(), before.String(), after.String()); note == "" {
		requireSmall(t, &schemas.DiskFile{Changes: changes})
	}
}

func requireSmall(t *testing.T, f *schemas.DiskFile) {
	t.Helper()
	data, err := schemas.Encode(f)
	require.NoError(t, err)
	require.LessOrEqual(t, len(data), schemas.MaxDiskFile)
}

// If the changes between two random texts are applied to the first text, the result is the second text.
func TestChangesFitTheTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range random.IntN(12) {
			b.WriteString([]string{"a\n", "b\n", "\n", "c\r\n"}[random.IntN(4)])
		}
		return b.String() + []string{"", "z"}[random.IntN(2)]
	}
	for range 2000 {
		before, after := text(), text()
		changes, note := New().Changes(context.Background(), before, after)
		require.Empty(t, note)
		old, made := newFile(before).lines, newFile(after).lines
		at, number := 0, 1
		for _, c := range changes {
			for ; number < c.Line; number++ {
				require.Equal(t, old[number-1], made[at], "%q → %q", before, after)
				at++
			}
			removed := newFile(c.Removed).lines
			require.Equal(t, strings.Join(old[number-1:number-1+len(removed)], ""), c.Removed)
			number += len(removed)
			at += c.Added
		}
		require.Equal(t, append([]string{}, old[number-1:]...), append([]string{}, made[at:]...), "%q → %q", before, after)
	}
}

// An edit may leave a part of a line with a secret. No later edit of the call shows this part, even if it
// changes the part.
func TestEditsDoNotUncoverASecret(t *testing.T) {
	const value = "hunter2hunter2"
	for name, c := range map[string]struct {
		text  string
		edits []tools.TextEdit
	}{
		"not the first place":      {"password\n1\n2\n3\n4\n5\npassword = \"" + value + "\"\nlast\n", []tools.TextEdit{{Old: "password", New: "p", All: true}, {Old: "last"}}},
		"two places in a line":     {"password = \"password" + value + "\"\nlast\n", []tools.TextEdit{{Old: "password", New: "p", All: true}, {Old: "last"}}},
		"joined to the line above": {"x\nAKIAQYLPMN5HFXZ7ABCD\nlast\n", []tools.TextEdit{{Old: "x\n", New: "x"}, {Old: "last"}}},
		"in many places":           {strings.Repeat("password\n", maxPlaces) + "password = \"" + value + "\"\nlast\n", []tools.TextEdit{{Old: "password", New: "p", All: true}, {Old: "last"}}},
	} {
		data, err := schemas.Encode(editsOf(c.text, c.edits...))
		require.NoError(t, err)
		assert.NotContains(t, string(data), value, name)
		assert.NotContains(t, string(data), "AKIA", name)
	}
	got := editsOf(strings.Repeat("a\n", maxPlaces)+"b\n", tools.TextEdit{Old: "a", New: "c", All: true}, tools.TextEdit{Old: "b"})
	assert.Equal(t, maxPlaces, got[0].Count)
	assert.Equal(t, "an edit above changes too many places", got[1].Note)
}

// A comparison ends when its context ends, and does a limited amount of work. A note marks the edits that
// were not compared.
func TestAComparisonEnds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	assert.Equal(t, []schemas.DiskEdit{{Note: NoTime}}, New().Edits(ended, "a\n", []tools.TextEdit{{Old: "a"}}))
	_, note := New().Changes(ended, "a\n", "b\n")
	assert.Equal(t, NoTime, note)
	_, note = New().Changes(t.Context(), strings.Repeat("\n", maxLines), "b\n")
	assert.Equal(t, NoTime, note)

	text := strings.Repeat("x = 1\n", 100_000)
	edits := make([]tools.TextEdit, maxEdits)
	for i := range edits {
		edits[i] = tools.TextEdit{Old: "x = 1\nx = 1\n", New: "x = 1\nx = 1\n", All: true}
	}
	got := editsOf(text, edits...)
	assert.Equal(t, 50_000, got[0].Count)
	assert.Equal(t, "an edit above changes too many places", got[1].Note)

	text += "y\n"
	for i := range edits {
		edits[i] = tools.TextEdit{Old: "y", New: "y"}
	}
	got = editsOf(text, edits...)
	compared := maxWork / len(text)
	assert.Equal(t, 1, got[compared-1].Count)
	assert.Equal(t, NoTime, got[compared].Note)
	assert.Equal(t, NoTime, got[maxEdits-1].Note)
}

// If an edit puts a long text into many places, the result shows only a few of the places.
func TestWhatIsShownIsBounded(t *testing.T) {
	got := editsOf(strings.Repeat("a\n", 1000), tools.TextEdit{Old: "a", New: strings.Repeat("b\n", 2000), All: true})
	require.Equal(t, 1000, got[0].Count)
	require.Less(t, len(got[0].Hunks[0].Around), 15)
	require.Greater(t, len(got[0].Hunks[0].Around), 5)
}

// A long line with many places is kept once, and not once for each place.
func TestALongLineTakesLittleMemory(t *testing.T) {
	c := New()
	got := c.Edits(t.Context(), strings.Repeat("e", 200_000), []tools.TextEdit{{Old: "e", New: "f", All: true}, {Old: "x"}})
	assert.Equal(t, "the rest of its line is too long to show", got[0].Note)
	kept := 0
	for line := range c.exposed {
		kept += len(line)
	}
	assert.LessOrEqual(t, kept, 2*200_000)
}

// If a line of the file is a command that writes a secret file, the other lines are shown nevertheless.
func TestACommandInAFileHidesNoOtherLine(t *testing.T) {
	got, note := New().Changes(t.Context(), "a\necho A=1 > .env\nb\n", "c\n")
	require.Empty(t, note)
	assert.Equal(t, []schemas.DiskChange{{Line: 1, Removed: "a\necho A=1 > .env\nb\n", Added: 1}}, got)
}
