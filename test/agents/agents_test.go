// Package agents_test runs real agents through nod, in the versions that nod calls
// tested. It installs them from npm into a directory that is named, where they
// are kept, and skips where none is:
//
//	NOD_TEST_AGENTS=$HOME/.cache/nod-agents go test -v -timeout 30m ./test/agents
//
// Each agent has a home and a project of its own, and a model on loopback that
// asks for one call and ends its turn once it is told of the result; everything
// that an agent would send elsewhere is refused there too. A person's answer is
// a command of nod's. What an agent did shows in the file that its call leaves
// behind and in what its model was told.
//
// Not here: Codex's PermissionRequest, since codex exec asks nobody, and its
// request_user_input, which nod leaves to Codex; Copilot CLI. docs/testing.md has
// the table.
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
		t.Skipf("runs real agents, more than a gigabyte from npm: name a directory for them, %s=DIR go test -timeout 30m ./test/agents", optIn)
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
