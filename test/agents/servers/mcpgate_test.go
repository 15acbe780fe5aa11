package servers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/agents/internal/npm"
)

// TestMCPGate runs the MCP inspector, which calls a tool of the official filesystem server through nod mcp
// gate. The tool writes its file after an allow, and not after a denial.
func TestMCPGate(t *testing.T) {
	inspector, server := program(t, npm.Inspector), program(t, npm.Filesystem)
	n := startNod(t)
	dir := t.TempDir()
	for _, c := range []struct {
		answer []string
		ran    bool
		hears  string
	}{
		{[]string{"allow"}, true, "Successfully wrote"},
		{[]string{"deny", "-m", "use another file"}, false, "use another file"},
	} {
		file := filepath.Join(dir, c.answer[0])
		call := exec.Command(inspector, "--cli", n.path, "--data", n.dir, "mcp", "gate", "--name", "fs", "--session", c.answer[0], "--", server, dir,
			"--method", "tools/call", "--tool-name", "write_file", "--tool-arg", "path="+file, "--tool-arg", "content=x")
		said := make(chan string, 1)
		go func() {
			out, _ := call.CombinedOutput() // the test reads the output, so the exit code does not matter
			said <- string(out)
		}()
		r := n.pending(t, c.answer[0])
		require.Equal(t, "mcp__fs__write_file", r.ToolName)
		require.Contains(t, r.Reason, "The server claims, unchecked")
		out, err := n.command(append([]string{c.answer[0], r.PendingID}, c.answer[1:]...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, <-said, c.hears)
		_, err = os.Stat(file)
		require.Equal(t, c.ran, err == nil)
	}
}
