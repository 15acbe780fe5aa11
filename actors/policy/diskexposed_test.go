package policy_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// projectWithSecrets makes a project in which some files with secrets are hidden or ignored.
func projectWithSecrets(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "TOKEN", "server.key": "TOKEN", "deploy/credentials.json": "TOKEN", ".env": "TOKEN", "ignored.pem": "TOKEN", "out/x.pem": "TOKEN", "sub/local.key": "TOKEN", "node_modules/a/b.pem": "TOKEN",
		".gitignore": "*.pem\n/out/\nsub/local.key\nnode_modules\n", ".git/HEAD": "ref: refs/heads/main", "plain/a.go": "TOKEN",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644))
	}
	return dir
}

func TestExposedFilesAreThoseThatASearchShows(t *testing.T) {
	dir := projectWithSecrets(t)
	exposed := func(dir string) []string {
		files, whole := policy.ThisDisk{}.Exposed(preset(t, ""), policy.Search{Path: dir})
		assert.True(t, whole, dir)
		return files
	}
	files := exposed(dir)
	assert.ElementsMatch(t, []string{dir + "/server.key", dir + "/deploy/credentials.json"}, files)
	assert.Empty(t, exposed(dir+"/plain"))
	assert.Empty(t, exposed(dir+"/missing"))
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skipf("left out: the comparison with ripgrep: %v", err)
	}
	for _, searched := range []string{"", "/deploy", "/sub", "/out", "/node_modules/a"} {
		cmd := exec.Command(rg, "-l", "--no-require-git", "TOKEN", "."+searched)
		cmd.Dir = dir
		out, err := cmd.Output()
		if cmd.ProcessState.ExitCode() != 1 { // exit code 1 means that ripgrep found nothing
			require.NoError(t, err)
		}
		shown := slices.DeleteFunc(strings.Fields(string(out)), func(f string) bool { return strings.HasSuffix(f, ".go") })
		for i := range shown {
			shown[i] = filepath.Join(dir, shown[i])
		}
		assert.ElementsMatch(t, shown, exposed(dir+searched), "ripgrep in %q", searched)
	}
}

// nod asks about a search unless it has looked for the search's exposed files before the check.
func TestSearchesNameTheirPaths(t *testing.T) {
	p := preset(t, "")
	call := func(line string) policy.Call {
		return policy.Call{ToolName: "Bash", Input: []byte(`{"command":"` + line + `"}`), Cwd: project + "/web", Project: project, Home: home}
	}
	web := project + "/web"
	for line, want := range map[string][]policy.Search{
		"ls":                            {},
		"rg -l TOKEN":                   {},
		"rg TOKEN":                      {{Path: web + "/."}},
		"rg TOKEN src ../api/":          {{Path: web + "/src"}, {Path: web + "/../api/"}},
		"rg TOKEN a/b* a/./c/..":        {{Path: web + "/a/b*", Pattern: true}, {Path: web + "/a/./c/.."}},
		"rg TOKEN /usr/include 'b*'":    {{Path: "/usr/include"}, {Path: web + "/b*"}},
		"rg TOKEN .. && rg -tphp x src": {{Path: web + "/.."}, {Path: web + "/src"}},
	} {
		searches := p.Looks(call(line)).Searches
		assert.ElementsMatch(t, want, searches, line)
		c := call(line)
		c.Seen.Searched = searches
		assert.Equal(t, p.Check(call(line)), p.Check(c), line)
		if c.Seen.Searched = []policy.Search{{Path: web + "/other"}}; len(searches) > 0 {
			v := p.Check(c)
			assert.Equal(t, policy.Ask, v.Effect, line)
			assert.Contains(t, v.Why, "too many files", line)
		}
	}
}

// A repository may contain a .gitignore that is very long, or that is a link to a device without an end. nod
// does not read such a .gitignore, so the files that it names count as exposed.
func TestAnIgnoreFileThatIsNoFileIsNotRead(t *testing.T) {
	for name, write := range map[string]func(at string) error{
		"link": func(at string) error { return os.Symlink("/dev/zero", at) },
		"long": func(at string) error {
			return os.WriteFile(at, append([]byte("*.key\n"), make([]byte, 64<<10)...), 0o644)
		},
	} {
		dir := t.TempDir()
		require.NoError(t, write(dir+"/.gitignore"), name)
		require.NoError(t, os.WriteFile(dir+"/server.key", []byte("TOKEN"), 0o644))
		files, whole := policy.ThisDisk{}.Exposed(preset(t, ""), policy.Search{Path: dir})
		assert.True(t, whole, name)
		assert.Equal(t, []string{dir + "/server.key"}, files, name)
	}
}

// If a directory has too many names or too many files with secrets, nod looks at only a part of it. The rest
// may have secrets, so nod asks about a search of this directory.
func TestSearchesOfDirectoriesWithTooManyNamesAsk(t *testing.T) {
	many, secrets := t.TempDir(), t.TempDir()
	for i := range 1001 {
		require.NoError(t, os.Symlink("x", filepath.Join(many, strconv.Itoa(i))))
	}
	_, whole := policy.ExposedAmong(preset(t, ""), policy.Search{Path: many}, 1001)
	assert.True(t, whole)
	_, whole = policy.ExposedAmong(preset(t, ""), policy.Search{Path: many}, 1000)
	assert.False(t, whole)
	for i := range 65 {
		require.NoError(t, os.WriteFile(filepath.Join(secrets, strconv.Itoa(i)+".key"), nil, 0o644))
	}
	_, whole = policy.ThisDisk{}.Exposed(preset(t, ""), policy.Search{Path: secrets})
	assert.False(t, whole)
	check := func(tool, input, unsearched string) policy.Verdict {
		return preset(t, "").Check(policy.Call{ToolName: tool, Input: []byte(input), Cwd: project, Project: project, Home: home, Seen: policy.Seen{Unsearched: []string{unsearched}}})
	}
	for _, line := range []string{"rg TOKEN", "rg TOKEN src", "rg -tgo TOKEN", "cd src && rg TOKEN"} {
		v := check("Bash", `{"command":"`+line+`"}`, project)
		assert.Equal(t, policy.Ask, v.Effect, line)
		assert.Contains(t, v.Why, "too many files")
		assert.Equal(t, policy.Allow, check("Bash", `{"command":"`+line+`"}`, "/other").Effect, line)
	}
	assert.Equal(t, policy.Allow, check("Bash", `{"command":"rg -g '*.go' TOKEN"}`, project).Effect)
	assert.Equal(t, policy.Allow, check("Bash", `{"command":"rg -l TOKEN"}`, project).Effect)
	for input, want := range map[string]policy.Effect{`{"pattern":"x"}`: policy.Allow, `{"pattern":"x","output_mode":"content"}`: policy.Ask, `{"pattern":"x","output_mode":"content","glob":"*.go"}`: policy.Allow} {
		assert.Equal(t, want, check("Grep", input, project).Effect, input)
	}
}

// Outside a git repository, nod ignores a .gitignore, as ripgrep does. A named pipe does not block the walk.
// If the path of a directory is too long to open, the result is incomplete.
func TestExposedFilesOutsideARepository(t *testing.T) {
	dir := projectWithSecrets(t)
	require.NoError(t, os.RemoveAll(dir+"/.git"))
	files, whole := policy.ThisDisk{}.Exposed(preset(t, ""), policy.Search{Path: dir})
	assert.True(t, whole)
	assert.Len(t, files, 6, "also the ignored files")

	require.NoError(t, syscall.Mkfifo(dir+"/pipe", 0o600))
	files, whole = policy.ThisDisk{}.Exposed(preset(t, ""), policy.Search{Path: dir + "/pipe"})
	assert.True(t, whole)
	assert.Empty(t, files)

	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	long := strings.Repeat("d", 250)
	for range 20 { // 5,000 bytes, which is too long for a path
		require.NoError(t, root.Mkdir(long, 0o755))
		next, err := root.OpenRoot(long)
		require.NoError(t, err)
		defer next.Close()
		root = next
	}
	_, whole = policy.ThisDisk{}.Exposed(preset(t, ""), policy.Search{Path: dir})
	assert.False(t, whole, "a search by relative names may still read there")
}

// nod asks about a search that would show a file with secrets. nod does not ask if the search
// excludes this file or prints only names.
func TestSearchesOfExposedFilesAsk(t *testing.T) {
	exposed := []string{project + "/deploy/server.key", project + "/wp-config.php"}
	verdict := func(p *policy.Policy, tool string, input map[string]any) policy.Verdict {
		raw, err := json.Marshal(input)
		require.NoError(t, err)
		return p.Check(policy.Call{ToolName: tool, Input: raw, Cwd: project, Project: project, Home: home, Seen: policy.Seen{Exposed: exposed}})
	}
	p := preset(t, "")
	for line, want := range map[string]policy.Effect{
		"rg TOKEN": policy.Ask, "rg TOKEN deploy": policy.Ask, "rg TOKEN .": policy.Ask, "cd deploy && rg TOKEN": policy.Ask, "rg TOKEN src": policy.Allow, "rg -l TOKEN": policy.Allow, "rg --files": policy.Allow, "rg -c TOKEN": policy.Allow,
		"rg -g '*.go' TOKEN": policy.Allow, "rg -g '!*.key' -g '!wp-config.php' TOKEN": policy.Allow, "rg -g '!*.key' TOKEN": policy.Ask, "rg -tgo TOKEN": policy.Allow, "rg -tphp TOKEN": policy.Ask, "rg -tgo TOKEN deploy": policy.Allow, "rg -l --json TOKEN": policy.Ask,
		"rg TOKEN d*": policy.Ask, "ls | rg x": policy.Ask, "grep -rn --include='*.go' TOKEN .": policy.Allow, "rg TOKEN a.go": policy.Allow,
	} {
		v := verdict(p, "Bash", map[string]any{"command": line})
		assert.Equal(t, want, v.Effect, "%s: %s", line, v.Why)
	}
	for _, c := range []struct {
		tool  string
		input map[string]any
		want  policy.Effect
	}{
		{"Grep", map[string]any{"pattern": "TOKEN"}, policy.Allow},
		{"Grep", map[string]any{"pattern": "TOKEN", "output_mode": "content"}, policy.Ask},
		{"Grep", map[string]any{"pattern": "TOKEN", "output_mode": "content", "path": "src"}, policy.Allow},
		{"Grep", map[string]any{"pattern": "TOKEN", "output_mode": "content", "glob": "*.go"}, policy.Allow},
		{"Grep", map[string]any{"pattern": "TOKEN", "output_mode": "count"}, policy.Allow},
		{"grep_search", map[string]any{"pattern": "TOKEN"}, policy.Ask},
		{"search_file_content", map[string]any{"pattern": "TOKEN", "dir_path": "src"}, policy.Allow},
		{"Glob", map[string]any{"pattern": "**/*.go"}, policy.Allow},
		{"Glob", map[string]any{"pattern": "**/CHANGELOG*"}, policy.Allow},
		{"Glob", map[string]any{"pattern": "**/.env*"}, policy.Ask},
		{"Glob", map[string]any{"pattern": "~/.s*/*"}, policy.Ask},
		{"Glob", map[string]any{"pattern": "x*/../../.ssh/*"}, policy.Ask},
		{"Grep", map[string]any{"pattern": "x", "glob": "CHANGELOG*", "output_mode": "content"}, policy.Ask},
	} {
		v := verdict(p, c.tool, c.input)
		assert.Equal(t, c.want, v.Effect, "%s %v: %s", c.tool, c.input, v.Why)
	}
	contained := preset(t, policy.PresetContained)
	v := verdict(contained, "Bash", map[string]any{"command": "rg TOKEN"})
	assert.Equal(t, policy.Contain, v.Effect, "in a container the file is empty: %s", v.Why)
	assert.Equal(t, policy.Allow, verdict(p, "Bash", map[string]any{"command": "cat a.go"}).Effect)
	assert.Equal(t, policy.Allow, verdict(pol(t, schemas.Permissions{Allow: []string{"Bash(rg:*)"}}), "Bash", map[string]any{"command": "rg TOKEN"}).Effect, "a rule of the user")
}

// nod counts a file as ignored only if ripgrep certainly ignores it. A .gitignore may re-include files that a
// .gitignore above it ignores. If a search reaches a file through a link, the .gitignore files above the link
// do not apply.
func TestAFileThatASearchMayShowIsExposed(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		top   string // the directory that the search names
		want  []string
	}{
		"included again":        {map[string]string{".gitignore": "*.pem", "a/.gitignore": "!x.pem", "a/x.pem": "", "a/b/y.pem": "", "z.pem": ""}, "", []string{"a/x.pem", "a/b/y.pem"}},
		"included above":        {map[string]string{".gitignore": "*.pem", "a/.gitignore": "!x.pem", "a/b/x.pem": ""}, "a/b", []string{"a/b/x.pem"}},
		"ripgrep's own file":    {map[string]string{".gitignore": "*.pem", "a/.ignore": "!x.pem", "a/x.pem": ""}, "", []string{"a/x.pem"}},
		"only directories":      {map[string]string{".gitignore": "*.pem/", "x.pem": "", "d.pem/x.key": ""}, "", []string{"x.pem"}},
		"a space in front":      {map[string]string{".gitignore": " x.pem", "x.pem": ""}, "", []string{"x.pem"}},
		"other classes than Go": {map[string]string{".gitignore": "[!x].pem", "x.pem": ""}, "", []string{"x.pem"}},
		"through a link":        {map[string]string{".gitignore": "*.pem\nlink", "../other/x.pem": ""}, "link", []string{"link/x.pem"}},
	} {
		top := filepath.Join(t.TempDir(), "project")
		for file, text := range test.files {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(top, file)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(top, file), []byte(text+"\n"), 0o644))
		}
		require.NoError(t, os.MkdirAll(top+"/.git", 0o755))
		require.NoError(t, os.Symlink("../other", top+"/link"))
		files, whole := policy.ThisDisk{}.Exposed(preset(t, ""), policy.Search{Path: filepath.Join(top, test.top)})
		assert.True(t, whole, name)
		for i := range test.want {
			test.want[i] = filepath.Join(top, test.want[i])
		}
		assert.ElementsMatch(t, test.want, files, name)
	}
}

// A search may use file types, or globs that exclude files. nod still asks if the search would show an
// exposed file.
func TestAFilterLeavesOutOnlyTheFilesThatItNames(t *testing.T) {
	p := preset(t, "")
	for line, test := range map[string]struct {
		file string
		want policy.Effect
	}{
		"rg TOKEN -g '!*.pem'":  {"X.PEM", policy.Ask},
		"rg TOKEN -g '!X.PEM'":  {"X.PEM", policy.Allow},
		"rg TOKEN -tgo":         {"x.pem", policy.Allow},
		"rg TOKEN -tjs -tts":    {"credentials.ts", policy.Ask},
		"rg TOKEN -ttypescript": {"credentials.ts", policy.Ask},
		"rg TOKEN -tgo -tpy":    {"credentials.ts", policy.Allow},
		"rg TOKEN -tjava":       {"keystore.properties", policy.Ask},
	} {
		c := bash(t, line)
		c.Seen.Exposed = []string{project + "/" + test.file}
		assert.Equal(t, test.want, p.Check(c).Effect, "%s with %s", line, test.file)
	}
	for _, in := range []map[string]any{
		{"pattern": "T", "output_mode": "content", "type": "typescript"},
		{"pattern": "T", "output_mode": "CONTENT"},
	} {
		c := call(t, "Grep", in)
		c.Seen.Exposed = []string{project + "/credentials.ts"}
		assert.Equal(t, policy.Ask, p.Check(c).Effect, "%v", in)
	}
}
