package secrets

import (
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With the flag -t, ripgrep also searches hidden files of a type. For the types in sourceTypes, no
// pattern of ripgrep matches a hidden secret.
func TestTypesOfSourceMatchNoHiddenSecret(t *testing.T) {
	if _, err := exec.LookPath("rg"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("rg is not installed: .ci/run installs it")
		}
		t.Skip("left out: rg is not installed")
	}
	out, err := exec.Command("rg", "--no-config", "--type-list").Output()
	require.NoError(t, err)
	known := 0
	for line := range strings.Lines(string(out)) {
		name, globs, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if !SourceType(name) {
			continue
		}
		known++
		for glob := range strings.SplitSeq(globs, ", ") {
			for _, secret := range secretNames {
				if strings.HasPrefix(secret, ".") && !strings.ContainsAny(secret, "/*") {
					matches, err := path.Match(glob, secret)
					require.NoError(t, err, glob)
					assert.False(t, matches, "-t %s matches %s by %s", name, secret, glob)
				}
			}
		}
	}
	assert.Greater(t, known, 30)
}
