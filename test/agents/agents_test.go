// Package agents_test runs real agent programs with nod, in the versions that package hook lists as tested.
// It installs them from npm into the directory in NOD_TEST_AGENTS, and keeps them there. If that variable is
// not set, all tests are skipped:
//
//	NOD_TEST_AGENTS=$HOME/.cache/nod-agents go test -v -timeout 30m ./test/agents/...
//
// Each test gives its agent a new home, a new project, and a fake model at a loopback address. The model asks
// for one tool call, and ends its turn when it gets the result. The fake model is also the HTTP proxy of the
// agent, and refuses all traffic to other hosts. The test answers requests by nod commands. It checks the
// file that the tool call creates, and the result that the model gets.
//
// These tests cover neither Codex's event PermissionRequest, which codex exec never raises, nor Codex's tool
// request_user_input, which nod leaves to Codex. The table in docs/testing.md lists the covered cases.
package agents_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/test/agents/internal/npm"
)

// The function each runs a test with each version of the host's agent program that host.Tested lists. The
// string pkg is the name of the program's npm package. The test is skipped if NOD_TEST_AGENTS is not set.
func each(t *testing.T, host hook.Host, pkg string, test func(t *testing.T, program string)) {
	var agents []npm.Agent
	for _, version := range host.Tested {
		agents = append(agents, npm.Agent{Name: host.Name, Package: pkg, Version: version, Program: host.Program})
	}
	with(t, test, agents...)
}

// The function with runs a test with every given agent. The test is skipped if NOD_TEST_AGENTS is not set.
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
