package cluster

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// The stores of three servers are backed up, lost and restored. nod restore is killed after its first store,
// and engines wait until a second nod restore has finished. The request that was pending at the backup is
// denied, and an earlier decision stays.
func TestAClusterIsRestored(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAClusterLosesAServerAndAnEngine runs the same servers, and the tests of restore in test/engine restore one")
	c := newCluster(t)
	first, up := c.engine(3)
	require.Contains(t, <-up, "an engine is up")
	c.letsMeAnswer()
	decided := c.asks("decided")
	require.Eventually(t, func() bool { return len(c.pending()) == 1 }, time.Minute, 50*time.Millisecond)
	_, err := c.run("terminal", "allow", "decided")
	require.NoError(t, err)
	before := <-decided
	_, err = c.run("agent-local", "ask", "--session", "cluster", "--tool", "Frobnicate", "--id", "waits", "--async")
	require.ErrorContains(t, err, "exit status 6")
	backup := filepath.Join(c.dir, "backup")
	_, err = c.run("owner-store", "backup", backup)
	require.NoError(t, err)
	_, err = c.run("owner-store", "restore", backup, "--replicas", "3")
	require.ErrorContains(t, err, "exists: restore to NATS servers without a nod")

	stop(first)
	for n, s := range c.servers {
		stop(s)
		require.NoError(t, os.RemoveAll(filepath.Join(c.dir, fmt.Sprint("js", n))))
	}
	for n := range c.servers {
		c.servers[n] = c.serve(n)
	}
	killed := c.command("owner-store", "restore", backup, "--replicas", "3")
	for begun := false; !begun; { // nod restore fails until the servers have elected a leader
		steps, err := killed.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, killed.Start())
		lines := bufio.NewScanner(steps)
		for !begun && lines.Scan() {
			begun = strings.HasPrefix(lines.Text(), "restored KV_pending_permissions")
		}
		_ = killed.Process.Kill() // Kill fails if the process has ended
		_ = killed.Wait()
		killed = c.command("owner-store", "restore", backup, "--replicas", "3")
	}
	_, up = c.engine(3)
	finished := make(chan error, 1)
	go func() {
		_, err := c.run("owner-store", "restore", backup, "--replicas", "3")
		finished <- err
	}()
	select {
	case line := <-up:
		require.NoError(t, <-finished)
		require.Contains(t, line, "an engine is up")
	case err := <-finished:
		require.NoError(t, err)
		require.Contains(t, <-up, "an engine is up")
	}
	require.Eventually(t, func() bool {
		out, err := c.run("terminal", "show", "waits", "--json")
		return err == nil && contains(out, `"denied"`, "restored from the backup")
	}, time.Minute, 200*time.Millisecond)
	out, err := c.run("terminal", "show", "decided", "--json")
	require.NoError(t, err)
	require.True(t, contains(out, before.DecisionID), out)
	_, err = c.run("agent-local", "ask", "--session", "cluster", "--tool", "Frobnicate")
	require.ErrorContains(t, err, "exit status 3", "nod is frozen")
	_, err = c.run("owner-store", "log", "search", "--kind", "restored")
	require.NoError(t, err)
}

// The function contains reports whether a text contains all the given words.
func contains(text string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
