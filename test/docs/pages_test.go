package docs

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

var update = flag.Bool("update", false, "write the generated parts of the documents")

// subjectsTable returns the table that docs/reference/messages.md must contain.
func subjectsTable() string {
	var b strings.Builder
	b.WriteString("| Subject | Message | From → to | How | Meaning |\n|---|---|---|---|---|\n")
	for _, m := range schemas.Messages() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s → %s | %s | %s |\n", m.Subject, m.Type, m.From, m.To, m.How, m.What)
	}
	return b.String()
}

func TestActorsNamesEverySubject(t *testing.T) {
	const from, to = "<!-- subjects -->\n", "<!-- /subjects -->"
	const page = "docs/reference/messages.md"
	head, rest, ok := strings.Cut(rig.Document(t, page), from)
	require.True(t, ok)
	table, tail, ok := strings.Cut(rest, to)
	require.True(t, ok)
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join("../..", page), []byte(head+from+subjectsTable()+to+tail), 0o644))
		return
	}
	require.Equal(t, subjectsTable(), table, "run go test ./test/docs -run Actors -update")
}

// Each row of docs/reference/timeouts.md has the value of the constant that it names.
func TestTimeoutsInTheReferenceMatchTheCode(t *testing.T) {
	page := rig.Document(t, "docs/reference/timeouts.md")
	rows := regexp.MustCompile("(?m)^\\| [^|]+ \\| ([^|]+) \\| `([a-z/_]+\\.go)`: `([A-Za-z]+)` \\|$").FindAllStringSubmatch(page, -1)
	require.Greater(t, len(rows), 60)
	tables := strings.Count(page, "\n| Wait | Value | In the code |\n|---|---|---|\n")
	require.Len(t, rows, strings.Count(page, "\n|")-2*tables, "a row is not of the form that this test reads")
	for _, row := range rows {
		said, file, name := row[1], row[2], row[3]
		constant := regexp.MustCompile(`(?m)^\t?(?:const )?` + name + `\s+= (.+?)(?:\s*//.*)?$`).FindStringSubmatch(rig.Document(t, file))
		require.Len(t, constant, 2, "%s has no constant %s", file, name)
		require.Contains(t, durations(t, said), inCode(t, constant[1]), "%s: %s says %q, the page %q", file, name, constant[1], said)
	}
}

// durations returns all durations in a text, such as "50 ms, doubling to 2 s".
func durations(t *testing.T, text string) (all []time.Duration) {
	units := map[string]time.Duration{
		"ms": time.Millisecond, "s": time.Second, "min": time.Minute, "h": time.Hour, "days": 24 * time.Hour,
	}
	for _, m := range regexp.MustCompile(`([\d,]+) (ms|s|min|h|days)\b`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
		require.NoError(t, err)
		all = append(all, time.Duration(n)*units[m[2]])
	}
	return all
}

// inCode returns the duration of a Go expression, which is a product, such as 7 * 24 * time.Hour, or
// a string, such as "1h".
func inCode(t *testing.T, expr string) time.Duration {
	if text, err := strconv.Unquote(expr); err == nil {
		d, err := time.ParseDuration(text)
		require.NoError(t, err)
		return d
	}
	units := map[string]time.Duration{
		"time.Millisecond": time.Millisecond, "time.Second": time.Second, "time.Minute": time.Minute, "time.Hour": time.Hour,
	}
	d := time.Duration(1)
	for factor := range strings.SplitSeq(expr, "*") {
		factor = strings.TrimSpace(factor)
		unit, ok := units[factor]
		if !ok {
			n, err := strconv.Atoi(factor)
			require.NoError(t, err, expr)
			unit = time.Duration(n)
		}
		d *= unit
	}
	return d
}

// Every test that a page names must exist, and every row of failures.md must name a test.
func TestActorsNamesRealTests(t *testing.T) {
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range function.FindAllSubmatch(data, -1) {
			there[string(m[1])] = true
		}
		return err
	}))
	test := regexp.MustCompile("`(Test[A-Z]\\w+)`")
	for _, page := range pages(t) {
		for _, name := range test.FindAllStringSubmatch(rig.Document(t, page), -1) {
			require.True(t, there[name[1]], "%s names %s, which does not exist", page, name[1])
		}
	}
	require.Greater(t, len(test.FindAllString(rig.Document(t, "ACTORS.md"), -1)), 2)
	failures := rig.Document(t, "docs/reference/failures.md")
	rows := regexp.MustCompile(`(?m)^\| .+ \|$`).FindAllString(failures, -1)
	tables := strings.Count(failures, "\n| Failure | Guarantee | Shown by |\n|---|---|---|\n")
	shown := 0
	for _, row := range rows {
		if test.MatchString(row) {
			shown++
		}
	}
	require.Greater(t, shown, 140)
	require.Equal(t, len(rows)-tables, shown, "a failure names no test")
}

// ACTORS.md must list the engine's stages in their order.
func TestActorsShowsTheOrderOfChecks(t *testing.T) {
	source, err := os.ReadFile("../../actors/engine/pipeline.go")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the engine has no list of stages yet")
	}
	require.NoError(t, err)
	_, list, ok := strings.Cut(string(source), "\nvar stages = []stage{\n")
	require.True(t, ok)
	list, _, _ = strings.Cut(list, "\n}\n")
	_, section, _ := strings.Cut(rig.Document(t, "ACTORS.md"), "\n## The order of checks\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var engine, page []string
	for _, m := range regexp.MustCompile(`(?m)^\t\{"([a-z]+)"`).FindAllStringSubmatch(list, -1) {
		engine = append(engine, m[1])
	}
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-z]+) \|`).FindAllStringSubmatch(section, -1) {
		page = append(page, m[1])
	}
	require.NotEmpty(t, engine)
	require.Equal(t, engine, page)
}

// ACTORS.md must not be longer than 14 kB, so that a person can read it in one sitting.
func TestActorsIsShort(t *testing.T) {
	require.LessOrEqual(t, len(rig.Document(t, "ACTORS.md")), 14_000)
}

// pages returns the paths of all documents for people, relative to the repository's root.
func pages(t *testing.T) (all []string) {
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/reference/*.md"} {
		found, err := filepath.Glob("../../" + pattern)
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		for _, name := range found {
			all = append(all, strings.TrimPrefix(filepath.ToSlash(name), "../../"))
		}
	}
	return all
}

// Every link to a file must name an existing file. The part after a # must be a heading in that file.
func TestLinksNameExistingFilesAndHeadings(t *testing.T) {
	for _, page := range pages(t) {
		name := filepath.Join("../..", page)
		for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(rig.Document(t, page), -1) {
			to, heading, _ := strings.Cut(link[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			target := name
			if to != "" {
				target = filepath.Join(filepath.Dir(name), to)
			}
			_, err := os.Stat(target)
			require.NoError(t, err, "%s links to this file", name)
			if heading != "" {
				require.Contains(t, headings(t, target), heading, "%s links to this heading of %s", name, target)
			}
		}
	}
}

// Each Go block in the README must compile as the body of a function.
func TestTheReadmesGoCodeCompiles(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(rig.Document(t, "README.md"), -1)
	require.NotEmpty(t, blocks)
	source := "package readme\n\nimport (\n\t\"context\"\n\t\"os\"\n\n\tnod \"github.com/nodbus/nod\"\n)\n"
	for i, block := range blocks {
		source += fmt.Sprintf("\nfunc example%d(ctx context.Context) error {\n%s}\n", i, block[1])
	}
	file := filepath.Join(t.TempDir(), "readme.go")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	out, err := exec.Command("go", "vet", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// headings returns the headings of a document, in the form in which links name them.
func headings(t *testing.T, name string) (all []string) {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		words := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(words, " ", "-"))
	}
	return all
}

// Every nod command in a shell block of a page must exist and have the flags that the page uses.
func TestPagesNameRealCommands(t *testing.T) {
	m := rig.NewMachine(t)
	checked := map[string]int{}
	for _, page := range pages(t) {
		text := strings.ReplaceAll(rig.Document(t, page), "\\\n", " ")
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
			for _, line := range regexp.MustCompile(`(?m)^(?:(?:\./)?nod|go run \./cmd/nod) (.+)$`).FindAllStringSubmatch(block[1], -1) {
				words := regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(line[1], -1)
				for i, word := range words {
					if word == "--" || strings.ContainsAny(word[:1], "#&|>") { // the rest of the command line belongs to another program
						words = words[:i]
						break
					}
					words[i] = strings.Trim(word, `'"`)
				}
				_, stderr, code := m.Run(append(words, "--help")...)
				require.Zero(t, code, "%s: nod %s: %s", page, line[1], stderr)
				checked[page]++
			}
		}
	}
	require.Greater(t, checked["README.md"], 10)
	require.Greater(t, len(checked), 5)
}

// Every example of settings.json in a page must be valid.
func TestDocsSettingsAreValid(t *testing.T) {
	parts := regexp.MustCompile(`^\{\s*"(permissions|policies|approvers|connectors|log)"`)
	checked := 0
	for _, page := range pages(t) {
		for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(rig.Document(t, page), -1) {
			if parts.MatchString(block[1]) {
				_, err := embed.DecodeSettings([]byte(block[1]))
				require.NoError(t, err, "%s: %s", page, block[1])
				checked++
			}
		}
	}
	require.Greater(t, checked, 4)
}

// Every file and folder in the map of CONTRIBUTING.md must exist.
func TestDocsMapNamesRealFolders(t *testing.T) {
	_, section, _ := strings.Cut(rig.Document(t, "CONTRIBUTING.md"), "\n## The map\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| (`.+?) \\|").FindAllStringSubmatch(section, -1)
	require.Greater(t, len(rows), 10)
	for _, row := range rows {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			_, err := os.Stat(filepath.Join("../..", name[1]))
			require.NoError(t, err)
		}
	}
}
