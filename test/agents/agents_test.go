// Package agents_test runs real agents through nod, in the versions that nod calls
// tested. It installs them from npm into a directory that is named, where they
// are kept, and skips where none is:
//
//	NOD_TEST_AGENTS=$HOME/.cache/nod-agents go test -v -timeout 30m ./test/agents/...
//
// Each agent has a home and a project of its own, and a model on loopback that
// asks for one call and ends its turn once it is told of the result; everything
// that an agent would send elsewhere is refused there too. A person's answer is
// a command of nod's. What an agent did shows in the file that its call leaves
// behind and in what its model was told.
//
// Not here: Codex's PermissionRequest, since codex exec asks nobody, and its
// request_user_input, which nod leaves to Codex. docs/testing.md has
// the table.
package agents_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/test/agents/internal/npm"
)

// each runs a test with every version of an agent that nod calls tested. It skips
// where nobody asked for it.
func each(t *testing.T, host hook.Host, pkg string, test func(t *testing.T, program string)) {
	var agents []npm.Agent
	for _, version := range host.Tested {
		agents = append(agents, npm.Agent{Name: host.Name, Package: pkg, Version: version, Program: host.Program})
	}
	with(t, test, agents...)
}

// with runs a test with each of some agents.
func with(t *testing.T, test func(t *testing.T, program string), agents ...npm.Agent) {
	dir := os.Getenv(npm.OptIn)
	if dir == "" {
		t.Skipf("runs real agents, more than a gigabyte from npm: name a directory for them, %s=DIR go test -timeout 30m ./test/agents/...", npm.OptIn)
	}
	require.True(t, filepath.IsAbs(dir), "%s=%s: name a whole path", npm.OptIn, dir)
	require.NotEmpty(t, agents)
	for _, agent := range agents {
		t.Run(agent.Version, func(t *testing.T) {
			program, err := agent.In(dir)
			require.NoError(t, err)
			test(t, program)
		})
	}
}
