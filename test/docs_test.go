package test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

var update = flag.Bool("update", false, "write the generated parts of ACTORS.md")

// subjectsTable is the table of ACTORS.md.
func subjectsTable() string {
	var b strings.Builder
	b.WriteString("| Subject | Message | From → to | How | What |\n|---|---|---|---|---|\n")
	for _, m := range schemas.Messages() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s → %s | %s | %s |\n", m.Subject, m.Type, m.From, m.To, m.How, m.What)
	}
	return b.String()
}

func TestActorsNamesEverySubject(t *testing.T) {
	data, err := os.ReadFile("../ACTORS.md")
	require.NoError(t, err)
	const from, to = "<!-- subjects -->\n", "<!-- /subjects -->"
	head, rest, ok := strings.Cut(string(data), from)
	require.True(t, ok)
	table, tail, ok := strings.Cut(rest, to)
	require.True(t, ok)
	if *update {
		require.NoError(t, os.WriteFile("../ACTORS.md", []byte(head+from+subjectsTable()+to+tail), 0o644))
		return
	}
	require.Equal(t, subjectsTable(), table, "run go test ./test -run Actors -update")
}

// Every row of the timeouts table is in the code as it says.
func TestActorsTellsTheTimeouts(t *testing.T) {
	data, err := os.ReadFile("../ACTORS.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("`([a-z/_]+\\.go)`: `([^`]+)`").FindAllStringSubmatch(string(data), -1)
	require.Greater(t, len(rows), 10)
	spaces := regexp.MustCompile(`[ \t]+`)
	for _, row := range rows {
		source, err := os.ReadFile("../" + row[1])
		require.NoError(t, err)
		require.Contains(t, spaces.ReplaceAllString(string(source), " "), row[2], row[1])
	}
}

// Every test that the documents name exists.
func TestActorsNamesRealTests(t *testing.T) {
	data, err := os.ReadFile("../ACTORS.md")
	require.NoError(t, err)
	git := exec.Command("git", "grep", "--untracked", "-hoE", "^func Test[A-Za-z0-9_]+", "--", "*_test.go")
	git.Dir = ".."
	out, err := git.Output()
	require.NoError(t, err)
	for _, name := range regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(data), -1) {
		require.Contains(t, string(out), "func "+name[1]+"\n", "ACTORS.md names a test that is not there")
	}
}
