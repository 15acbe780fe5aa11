package engine

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// secretText is only in the files with secrets.
const secretText = "hunter2"

// diskWithSecrets makes a home directory with a project, another project and secrets, and returns
// the project. The project has links that lead to secrets, to other directories and to plain files.
func diskWithSecrets(t *testing.T) (home, project string) {
	t.Helper()
	home = t.TempDir()
	project = home + "/src/app"
	for name, text := range map[string]string{
		".ssh/id_rsa": secretText, ".config/tool/login": secretText, "src/other/server.key": secretText, "src/other/main.go": "TOKEN", "src/hidden/.git/HEAD": "", "src/hidden/.gitignore": "*.pem\n", "src/hidden/x.pem": secretText,
		"src/app/.git/HEAD": "", "src/app/.gitignore": "/out/\n/vendor/\nlib/*/gen/\n", "src/app/a.go": "TOKEN", "src/app/docs/a.md": "TOKEN",
		"src/app/conf/credentials.ts": secretText, "src/app/conf/a.ts": "TOKEN", "src/app/out/server.key": secretText, "src/app/vendor/x/server.key": secretText, "src/app/lib/b/gen/server.key": secretText, "src/app/lib/b/x.go": "TOKEN", "src/app/plain/x/a.go": "TOKEN", "src/app/deep/a/b/c.txt": "TOKEN",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte(text+" TOKEN\n"), 0o644))
	}
	for name, to := range map[string]string{
		"notes.txt": "../../.ssh/id_rsa", "docs/guide.md": "../../../.ssh/id_rsa", "login.txt": home + "/.config/tool/login", "key.txt": "out/server.key", "chain.txt": "notes.txt", "src": "../other", "keys": "../../.ssh",
		"deep/a/link": "../../../other", "plain/l": "../../other", "readme.txt": "docs/a.md", "7": "notes.txt", "up": "../../../app", "lib/links.go": "../notes.txt", "loop": "loop", "over": "../..",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(project, name)))
	}
	return home, project
}

func shellCall(t *testing.T, home, project, line string) policy.Call {
	t.Helper()
	input, err := json.Marshal(map[string]string{"command": line})
	require.NoError(t, err)
	return policy.Call{ToolName: "Bash", Input: input, Cwd: project, Project: project, Home: home}
}

// The test runs each line with the real tools. A line that shows a secret is never allowed without a
// question, whether its words reach the secret through a link, a pattern, an ignored directory or a
// path outside the project.
func TestNoLineShowsASecretThroughTheDisk(t *testing.T) {
	home, project := diskWithSecrets(t)
	p, err := policy.New(schemas.Permissions{})
	require.NoError(t, err)
	for line, want := range map[string]policy.Effect{
		// searches of other places
		"rg TOKEN ../other": policy.Ask, "rg TOKEN " + home + "/src/other": policy.Ask, "rg TOKEN ~/src/other": policy.Ask, "rg TOKEN ../hidden": policy.Allow, "rg TOKEN ../hidden/x.pem": policy.Ask, "cd ../other && rg TOKEN": policy.Ask, "rg TOKEN ../other -g '*.go'": policy.Allow, "rg -l TOKEN ../other": policy.Allow,
		// patterns that name ignored directories or links
		"rg TOKEN ./v*": policy.Ask, "rg TOKEN ./*/x": policy.Ask, "rg TOKEN lib/*/gen": policy.Ask, "rg TOKEN lib/?/x.go": policy.Allow, "rg TOKEN ./[v]endor": policy.Ask, "rg TOKEN ./?endor/x": policy.Ask, "rg TOKEN plai*/l": policy.Ask, "rg TOKEN plai*/x": policy.Allow, "rg TOKEN deep/*/*": policy.Ask, "rg TOKEN deep/a/?/c.txt": policy.Allow, "rg TOKEN ./**/l": policy.Ask, "rg TOKEN ./s*": policy.Ask,
		// links to directories
		"rg TOKEN src": policy.Ask, "rg TOKEN src/": policy.Ask, "rg TOKEN over/src/other": policy.Ask, "rg TOKEN over": policy.Ask, "cd src && rg TOKEN .": policy.Ask, "rg TOKEN src/../other": policy.Ask, "rg TOKEN keys": policy.Ask, "cat keys/i*": policy.Ask, "cat ke*/id*": policy.Ask, "cd keys && head -n 2 i*": policy.Ask,
		// links to files
		"rg TOKEN key.txt": policy.Ask, "rg TOKEN notes.txt": policy.Ask, "grep TOKEN notes.txt": policy.Ask, "cat notes.txt": policy.Ask, "head -n1 docs/guide.md": policy.Ask, "cat < chain.txt": policy.Ask, "cat login.txt": policy.Ask, "sed -n 1p no*.txt": policy.Ask, "wc -l readme.txt && tail -n1 chain.txt": policy.Ask, "jq -R . notes.txt": policy.Ask, "awk '{print $1}' key.txt": policy.Ask, "sort docs/g*.md": policy.Ask, "od -c docs/../notes.txt": policy.Ask, "diff a.go key.txt": policy.Ask, "tac docs/*.md": policy.Ask, "cut -c1-9 ./notes.txt": policy.Ask, "grep -n TOKEN a.go key.txt": policy.Ask, "cat over/src/app/notes.txt": policy.Ask,
		"cat readme.txt docs/a.md": policy.Allow, "head a.go": policy.Allow, "cat src/main.go": policy.Allow, "cat lib/b/*.go": policy.Allow, "rg TOKEN docs": policy.Allow, "cat up/a.go": policy.Allow, "rg TOKEN lib": policy.Ask, "rg TOKEN ./lib/b": policy.Ask, "cd lib && rg TOKEN b": policy.Ask, "rg TOKEN a.go readme.txt": policy.Allow, "ls -l": policy.Allow, "cat nowhere.txt": policy.Allow, "cat a.go/x": policy.Allow, "grep -rn --include='*.md' TOKEN docs": policy.Allow,
		// recursive searches that follow links
		"grep -Rn --include='*.go' TOKEN lib": policy.Ask, "rg -L TOKEN docs": policy.Ask, "grep -R --include=*.md TOKEN docs": policy.Ask, "grep -Rl --include='*.go' TOKEN lib": policy.Allow,
		"cat loop": policy.Ask, "cat 7": policy.Ask, "tail -n 1 7": policy.Ask,
		// patterns and filters that name a secret among sources
		"cat conf/*.ts": policy.Ask, "cat conf/a*.ts": policy.Allow, "rg TOKEN -g '*.ts'": policy.Ask, "rg TOKEN -g '*.go'": policy.Allow, "rg TOKEN -g '*.ts' docs": policy.Allow, "grep -rn --include='*.ts' TOKEN .": policy.Ask, "grep -rn --include='*.go' TOKEN .": policy.Allow, "rg TOKEN": policy.Ask, "rg TOKEN -g '*.ts' -g '!credentials.ts'": policy.Allow,
	} {
		c := shellCall(t, home, project, line)
		var recent exposures
		c.Seen = recent.look(p, c)
		v := p.Check(c)
		assert.Equal(t, want, v.Effect, "%s: %s", line, v.Why)
		cmd := exec.Command("bash", "-c", line)
		cmd.Dir, cmd.Env = project, append(os.Environ(), "HOME="+home)
		out, err := cmd.Output()
		require.NotContains(t, string(out), "not found", "%s: %v", line, err)
		if strings.Contains(string(out), secretText) {
			assert.NotEqual(t, policy.Allow, v.Effect, "%s shows a secret", line)
		} else if want == policy.Ask {
			t.Logf("asks, although it shows no secret here: %s", line)
		}
	}
}

// The file tools follow links as a shell command does. Before an edit through a link that leads out of
// the project, nod asks a person, even if a rule allows edits of the project's files.
func TestFileToolsAreJudgedByTheFilesToWhichTheyLead(t *testing.T) {
	home, project := diskWithSecrets(t)
	for _, test := range []struct {
		tool, path string
		rules      schemas.Permissions
		want       policy.Effect
	}{
		{"Read", project + "/notes.txt", schemas.Permissions{}, policy.Ask},
		{"Read", project + "/keys/id_rsa", schemas.Permissions{}, policy.Ask},
		{"Read", project + "/login.txt", schemas.Permissions{Allow: []string{"Read"}}, policy.Ask},
		{"Read", project + "/readme.txt", schemas.Permissions{}, policy.Allow},
		{"Read", project + "/src/main.go", schemas.Permissions{}, policy.Allow},
		{"Read", project + "/src/main.go", schemas.Permissions{Deny: []string{"Read(~/src/other/**)"}}, policy.Deny},
		{"Write", project + "/src/main.go", schemas.Permissions{Preset: policy.PresetProject}, policy.Ask},
		{"Edit", project + "/notes.txt", schemas.Permissions{Preset: policy.PresetProject}, policy.Ask},
		{"Edit", project + "/src/new.go", schemas.Permissions{Allow: []string{"Edit(src/**)"}}, policy.Ask},
		{"Edit", project + "/readme.txt", schemas.Permissions{Preset: policy.PresetProject}, policy.Allow},
		{"Edit", project + "/a.go", schemas.Permissions{Preset: policy.PresetProject}, policy.Allow},
		{"Edit", project + "/docs/new.md", schemas.Permissions{Allow: []string{"Edit(docs/**)"}}, policy.Allow},
		{"Grep", project + "/src", schemas.Permissions{}, policy.Ask},
		{"Grep", project + "/key.txt", schemas.Permissions{}, policy.Ask},
		{"Grep", home + "/src/other", schemas.Permissions{}, policy.Ask},
		{"Grep", project + "/conf", schemas.Permissions{}, policy.Ask},
		{"Read", project + "/7", schemas.Permissions{}, policy.Ask},
		{"Grep", project + "/docs", schemas.Permissions{}, policy.Allow},
	} {
		p, err := policy.New(test.rules)
		require.NoError(t, err)
		name := map[string]string{"Grep": "path"}[test.tool]
		if name == "" {
			name = "file_path"
		}
		input, err := json.Marshal(map[string]string{name: test.path, "output_mode": "content", "pattern": "TOKEN"})
		if test.tool != "Grep" {
			input, err = json.Marshal(map[string]string{name: test.path})
		}
		require.NoError(t, err)
		c := policy.Call{ToolName: test.tool, Input: input, Cwd: project, Project: project, Home: home}
		var recent exposures
		c.Seen = recent.look(p, c)
		v := p.Check(c)
		assert.Equal(t, test.want, v.Effect, "%s %s: %s", test.tool, test.path, v.Why)
	}
}

// A project that is itself reached through a link is judged by its own paths.
func TestAProjectBehindALinkIsAProject(t *testing.T) {
	home, project := diskWithSecrets(t)
	link := filepath.Join(t.TempDir(), "app")
	require.NoError(t, os.Symlink(project, link))
	p, err := policy.New(schemas.Permissions{Preset: policy.PresetProject})
	require.NoError(t, err)
	for line, want := range map[string]policy.Effect{"cat a.go": policy.Allow, "cat readme.txt": policy.Allow, "cat notes.txt": policy.Ask, "rg TOKEN docs": policy.Allow, "rg TOKEN out": policy.Ask, "git status": policy.Allow} {
		c := shellCall(t, home, link, line)
		var recent exposures
		c.Seen = recent.look(p, c)
		v := p.Check(c)
		assert.Equal(t, want, v.Effect, "%s: %s", line, v.Why)
	}
	c := policy.Call{ToolName: "Edit", Input: []byte(`{"file_path":"` + link + `/a.go"}`), Cwd: link, Project: link, Home: home}
	var recent exposures
	c.Seen = recent.look(p, c)
	assert.Equal(t, policy.Allow, p.Check(c).Effect)
}

// A search of a directory skips an ignored directory in it. If the search also names the ignored
// directory, it shows the directory's files.
func TestASearchThatNamesAnIgnoredDirectoryAsks(t *testing.T) {
	project := t.TempDir()
	for name, text := range map[string]string{".git/HEAD": "", ".gitignore": "/out/\n", "out/server.key": "TOKEN", "src/a.go": ""} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(project, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(project, name), []byte(text), 0o644))
	}
	p, err := policy.New(schemas.Permissions{})
	require.NoError(t, err)
	for line, want := range map[string]policy.Effect{"rg TOKEN .": policy.Allow, "rg TOKEN . src": policy.Allow, "rg TOKEN . out": policy.Ask, "cd out && rg TOKEN": policy.Ask} {
		c := shellCall(t, "", project, line)
		var recent exposures
		c.Seen = recent.look(p, c)
		assert.Equal(t, want, p.Check(c).Effect, line)
	}
}
