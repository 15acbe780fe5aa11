package servers_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/agents/internal/npm"
)

// TestMCPClientHearsNotices: the official client of MCP asks for log messages, and gets a notice that comes
// while a call waits. The client gets it before the result of the call.
func TestMCPClientHearsNotices(t *testing.T) {
	dir := os.Getenv(npm.OptIn)
	if dir == "" {
		t.Skipf("runs the official MCP client from npm: name a directory for it, %s=DIR go test -timeout 30m ./test/agents/...", npm.OptIn)
	}
	dir, err := npm.MCPClient(dir)
	require.NoError(t, err)
	source, err := os.ReadFile("mcpclient.mjs")
	require.NoError(t, err)
	app := filepath.Join(dir, "mcpclient.mjs") // Node.js finds the SDK only if the program is beside it
	require.NoError(t, os.WriteFile(app, source, 0o600))

	n := startNod(t)
	client := exec.Command("node", app, n.path, "--data", n.dir, "mcp", "--session", "S")
	out, err := client.StdoutPipe()
	require.NoError(t, err)
	client.Stderr = os.Stderr
	require.NoError(t, client.Start())
	t.Cleanup(func() { _ = client.Process.Kill(); _ = client.Wait() }) // Kill and Wait fail if the client has ended
	lines := bufio.NewReader(out)

	r := n.pending(t, "S")
	said, err := n.command("gate", "--session", "S", "--name", "nightly", "--id", "g", "--permission", "@network").CombinedOutput()
	require.NoError(t, err, string(said))
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if strings.Contains(line, "nightly") {
			require.Contains(t, line, `"level":"warning","logger":"nod"`)
			break
		}
	}
	said, err = n.command("allow", r.PendingID).CombinedOutput()
	require.NoError(t, err, string(said))
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if strings.Contains(line, `\"behavior\":\"allow\"`) {
			return
		}
	}
}
