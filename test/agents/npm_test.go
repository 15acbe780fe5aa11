package agents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// optIn names the directory that the agents are installed in.
const optIn = "NOD_TEST_AGENTS"

// installed is the path of a program of an npm package, such as
// "@openai/codex@0.169.0", which is installed at the first use. It skips the
// test where nobody asked for it.
func installed(t *testing.T, pkg, program string) string {
	dir := os.Getenv(optIn)
	if dir == "" {
		t.Skipf("runs real agents, hundreds of megabytes from npm: name a directory for them, %s=DIR go test ./test/agents", optIn)
	}
	require.True(t, filepath.IsAbs(dir), "%s=%s: name a whole path", optIn, dir)
	dir = filepath.Join(dir, strings.NewReplacer("@", "", "/", "-").Replace(pkg))
	path := filepath.Join(dir, "node_modules", ".bin", program)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	out, err := exec.Command("npm", "install", "--no-audit", "--no-fund", "--prefix", dir, pkg).CombinedOutput()
	require.NoError(t, err, "npm install %s: %s", pkg, out)
	return path
}
