package policy_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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
	files := policy.ThisDisk{}.Exposed(preset(t, ""), dir)
	assert.ElementsMatch(t, []string{dir + "/server.key", dir + "/deploy/credentials.json"}, files)
	assert.Empty(t, policy.ThisDisk{}.Exposed(preset(t, ""), dir+"/plain"))
	assert.Empty(t, policy.ThisDisk{}.Exposed(preset(t, ""), dir+"/missing"))
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skipf("left out: the comparison with ripgrep: %v", err)
	}
	cmd := exec.Command(rg, "-l", "--no-require-git", "TOKEN", dir)
	out, err := cmd.Output()
	require.NoError(t, err)
	for _, f := range files {
		assert.Contains(t, string(out), f, "ripgrep shows it")
	}
	for _, hidden := range []string{"ignored.pem", "x.pem", "local.key", ".env"} {
		assert.NotContains(t, string(out), hidden)
	}
}

// A repository can contain a .gitignore that is a link to a device without an end. Neither this nor
// a very long one is read, and the files then count as exposed.
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
		assert.Equal(t, []string{dir + "/server.key"}, policy.ThisDisk{}.Exposed(preset(t, ""), dir), name)
	}
}

// A search that would show a file with secrets asks; one that leaves the file out, or prints names
// alone, does not.
func TestSearchesOfExposedFilesAsk(t *testing.T) {
	exposed := []string{project + "/deploy/server.key", project + "/wp-config.php"}
	verdict := func(p *policy.Policy, tool string, input map[string]any) policy.Verdict {
		raw, err := json.Marshal(input)
		require.NoError(t, err)
		return p.Check(policy.Call{ToolName: tool, Input: raw, Cwd: project, Project: project, Home: home, Exposed: exposed})
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
