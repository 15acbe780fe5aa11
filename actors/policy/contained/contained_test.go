package contained_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy/contained"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/secrets"
)

const (
	home    = "/home/ann"
	project = "/home/ann/project"
)

// judge returns the tests' only Judge, because building a Judge takes longer than checking a line.
var judge = sync.OnceValue(func() *contained.Judge { return contained.New(secrets.Compile()) })

func judgement(src string) contained.Judgement {
	return judge().Line(src, pathname.Locate(project, project, home))
}

// lines returns the command lines of a file. If a line opens a here-document or a quote, the
// command line continues to the line that closes it.
func lines(t testing.TB, name string) []string {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	var out []string
	open := ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if open == "" {
			out = append(out, line)
			switch {
			case strings.Contains(line, `"$(cat <<'EOF'`):
				open = `)"`
			case strings.Contains(line, "<<"):
				open = "EOF"
			}
			continue
		}
		out[len(out)-1] += "\n" + line
		if line == open {
			open = ""
		}
	}
	return out
}

func TestLinesThatRunContained(t *testing.T) {
	all := lines(t, "run.txt")
	assert.GreaterOrEqual(t, len(all), 200)
	for _, line := range all {
		j := judgement(line)
		assert.Empty(t, j.Why, "%q", line)
		assert.Empty(t, j.Needs, "%q", line)
	}
}

func TestLinesThatAsk(t *testing.T) {
	all := lines(t, "ask.txt")
	assert.GreaterOrEqual(t, len(all), 200)
	for _, line := range all {
		assert.NotEmpty(t, judgement(line).Why, "%q", line)
	}
}

func TestMissingPermissionsAreNamed(t *testing.T) {
	for line, want := range map[string][]string{
		"npm ci":                               {"@network:registry.npmjs.org:443"},
		"npm install x":                        {"@network:registry.npmjs.org:443"},
		"yarn":                                 {"@network:registry.yarnpkg.com:443"},
		"go mod tidy":                          {"@network:proxy.golang.org:443", "@network:sum.golang.org:443"},
		"go get x@v1":                          {"@network:proxy.golang.org:443", "@network:sum.golang.org:443"},
		"pip install -r requirements.txt":      {"@network:files.pythonhosted.org:443", "@network:pypi.org:443"},
		"python3 -m pip install x":             {"@network:files.pythonhosted.org:443", "@network:pypi.org:443"},
		"uv pip install x":                     {"@network:files.pythonhosted.org:443", "@network:pypi.org:443"},
		"cargo fetch":                          {"@network:index.crates.io:443", "@network:static.crates.io:443"},
		"git fetch":                            {"@network"},
		"git pull --ff-only":                   {"@network"},
		"curl -s https://example.com/a | head": {"@network:example.com:443"},
		"curl http://Example.com:8080/a":       {"@network:example.com:8080"},
		"npx create-thing":                     {"@network:registry.npmjs.org:443"},
		"go build -o /home/ann/bin/app .":      {"@read:/home/ann/bin/app", "@write:/home/ann/bin"},
		"cat ../other/a.go > /tmp/a && make":   {"@read:/home/ann/other/a.go"},
		"mkdir -p /srv/data":                   {"@read:/srv/data", "@write:/srv"},
		"npm ci && npm test && git commit -m 'npm ci'": {"@network:registry.npmjs.org:443"},
	} {
		j := judgement(line)
		assert.Empty(t, j.Why, "%q", line)
		var got []string
		for _, n := range j.Needs {
			got = append(got, n.Permission)
		}
		assert.Equal(t, want, got, "%q", line)
	}
}

func TestWithoutAKnownProjectNothingIsContained(t *testing.T) {
	by := contained.New(secrets.Compile())
	for _, loc := range []pathname.Location{
		pathname.Locate("", "", home), pathname.Locate("", project, home), pathname.Locate(home, home, home), pathname.Locate("/home", "/home", ""),
		pathname.Locate("/", "/", home), pathname.Locate("/srv/other", project, home),
	} {
		assert.NotEmpty(t, by.Line("make test", loc).Why, "%+v", loc)
	}
}

func TestAWorkTreeIsItsOwnProject(t *testing.T) {
	by := contained.New(secrets.Compile())
	tree := project + "/.claude/worktrees/one"
	j := by.Line("make test", pathname.Locate(tree+"/src", project, home))
	assert.Equal(t, tree, j.Project)
	assert.Empty(t, j.Why)
	assert.Empty(t, by.Line("rm -rf "+tree+"/build", pathname.Locate(tree, project, home)).Why)
	assert.NotEmpty(t, by.Line("rm -rf "+project+"/build", pathname.Locate(tree, project, home)).Why)
}
