package policy_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

const (
	home    = "/home/ann"
	project = "/home/ann/project"
)

func pol(t testing.TB, p schemas.Permissions, layers ...schemas.PolicyLayer) *policy.Policy {
	t.Helper()
	out, err := policy.New(p, layers...)
	require.NoError(t, err)
	return out
}

func preset(t testing.TB, name string) *policy.Policy {
	t.Helper()
	return pol(t, schemas.Permissions{Preset: name})
}

func call(t testing.TB, tool string, input any) policy.Call {
	t.Helper()
	raw, err := json.Marshal(input)
	require.NoError(t, err)
	return policy.Call{ToolName: tool, Input: raw, Cwd: project, Project: project, Home: home}
}

func bash(t testing.TB, command string) policy.Call {
	t.Helper()
	return call(t, "Bash", map[string]string{"command": command})
}

// corpus opens a file of the corpora. The corpora are not part of the project, so corpus skips the
// test if the file is missing.
func corpus(t testing.TB, name string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join(corpusDir(), name))
	if err != nil {
		t.Skipf("left out: %v; set NOD_CORPUS to the directory of the corpora", err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func corpusDir() string {
	if dir := os.Getenv("NOD_CORPUS"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "..", "shared", "corpus")
}

// control replaces the visible symbols of the corpus by the control characters for which they stand, because
// the corpus itself contains no control characters.
var control = strings.NewReplacer("␊", "\n", "␉", "\t", "␍", "\r", "␛", "\x1b", "␈", "\b", "␋", "\v", "␌", "\f", "␀", "\x00")

type shellCase struct{ command, verdict, reason string }

func shellCases(t testing.TB) []shellCase {
	t.Helper()
	var out []shellCase
	lines := bufio.NewScanner(corpus(t, "shell.tsv"))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "# ") && strings.Count(lines.Text(), "\t") != 2 {
			continue
		}
		f := strings.Split(lines.Text(), "\t")
		require.Len(t, f, 3, lines.Text())
		out = append(out, shellCase{control.Replace(f[0]), f[1], f[2]})
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, out)
	return out
}

func TestShellCorpus(t *testing.T) {
	cases := shellCases(t)
	for _, name := range []string{policy.PresetDesign, policy.PresetReaders, policy.PresetProject} {
		p := preset(t, name)
		for _, c := range cases {
			v := p.Check(bash(t, c.command))
			if c.verdict == "allow" {
				assert.Equal(t, policy.Allow, v.Effect, "%s: %q: %s (%s)", name, c.command, c.reason, v.Why)
			} else {
				assert.NotEqual(t, policy.Allow, v.Effect, "%s: %q: %s", name, c.command, c.reason)
				assert.NotEmpty(t, v.Why, "%q", c.command)
			}
		}
	}
}
