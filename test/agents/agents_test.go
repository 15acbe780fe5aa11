// Package agents_test runs real agents through nod, in the versions that nod calls
// tested. It installs them from npm into the directory that NOD_TEST_AGENTS names, and
// keeps them there. Without that variable its tests are skipped:
//
//	NOD_TEST_AGENTS=$HOME/.cache/nod-agents go test -v -timeout 30m ./test/agents/...
//
// Each agent has its own home and project, and a model on loopback. The model asks for
// one call and ends its turn when it gets the result. It is also the proxy for all other
// traffic of the agent, and refuses that. A person's answer is a nod command. Tests check
// the file that an agent's call leaves behind, and the results that its model got.
//
// Not covered: Codex's PermissionRequest, which codex exec never raises, and its
// request_user_input, which nod leaves to Codex. docs/testing.md has the table.
package agents_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/test/agents/internal/npm"
)

// each runs a test with every version of an agent that nod calls tested. It skips the
// test if NOD_TEST_AGENTS is not set.
func each(t *testing.T, host hook.Host, pkg string, test func(t *testing.T, program string)) {
	var agents []npm.Agent
	for _, version := range host.Tested {
		agents = append(agents, npm.Agent{Name: host.Name, Package: pkg, Version: version, Program: host.Program})
	}
	with(t, test, agents...)
}

// with runs a test with each of these agents.
func with(t *testing.T, test func(t *testing.T, program string), agents ...npm.Agent) {
	dir := os.Getenv(npm.OptIn)
	if dir == "" {
		t.Skipf("runs real agents, more than a gigabyte from npm: name a directory for them, %s=DIR go test -timeout 30m ./test/agents/...", npm.OptIn)
	}
	require.True(t, filepath.IsAbs(dir), "%s=%s: name an absolute path", npm.OptIn, dir)
	require.NotEmpty(t, agents)
	for _, agent := range agents {
		t.Run(agent.Version, func(t *testing.T) {
			program, err := agent.In(dir)
			require.NoError(t, err)
			test(t, program)
		})
	}
}
