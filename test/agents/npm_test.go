package agents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
)

// optIn names the directory that the agents are installed in.
const optIn = "NOD_TEST_AGENTS"

// each runs a test with every version of an agent that nod calls tested. It skips
// where nobody asked for it.
func each(t *testing.T, host hook.Host, pkg string, test func(t *testing.T, program string)) {
	dir := os.Getenv(optIn)
	if dir == "" {
		t.Skipf("runs real agents, more than a gigabyte from npm: name a directory for them, %s=DIR go test ./test/agents", optIn)
	}
	require.True(t, filepath.IsAbs(dir), "%s=%s: name a whole path", optIn, dir)
	require.NotEmpty(t, host.Tested)
	for _, version := range host.Tested {
		t.Run(version, func(t *testing.T) {
			test(t, installed(t, filepath.Join(dir, host.Name+"-"+version), pkg+"@"+version, host.Program))
		})
	}
}

// installed is the path of a program of an npm package, which is installed in dir
// at the first use.
func installed(t *testing.T, dir, pkg, program string) string {
	path := filepath.Join(dir, "node_modules", ".bin", program)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	out, err := exec.Command("npm", "install", "--no-audit", "--no-fund", "--prefix", dir, pkg).CombinedOutput()
	require.NoError(t, err, "npm install %s: %s", pkg, out)
	return path
}
