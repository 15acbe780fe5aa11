package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/opencode"
)

const claimDirVariable = "NOD_TEST_CLAIM_DIR"

// TestClaimingProcess is the process that TestAKilledClaim kills: it claims a reply and waits.
func TestClaimingProcess(t *testing.T) {
	dir := os.Getenv(claimDirVariable)
	if dir == "" {
		t.Skip("only a part of TestAKilledClaim")
	}
	_, err := claimIn(t.Context(), dir, "a")
	require.NoError(t, err)
	fmt.Println("it has the claim")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// If the process that sends a reply is killed, exactly one other process reports the loss, so that
// people are told. No other process sends the reply, because it may have been sent already.
func TestAKilledClaim(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestClaimingProcess$")
	cmd.Env = append(os.Environ(), claimDirVariable+"="+dir)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer func() { _ = in.Close() }()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	heard := bufio.NewScanner(out)
	for heard.Scan() && heard.Text() != "it has the claim" {
	}
	waits, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = claimIn(waits, dir, "a")
	require.ErrorIs(t, err, context.DeadlineExceeded, "the process still sends")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // Wait fails, because the process was killed

	_, err = claimIn(t.Context(), dir, "a")
	require.ErrorIs(t, err, opencode.ErrClaimLost)
	_, err = claimIn(t.Context(), dir, "a")
	require.ErrorIs(t, err, opencode.ErrClaimTaken)
}

// Only one of several processes claims a reply.
func TestOneClaimsAReply(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var mine, taken atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			done, err := claimIn(t.Context(), dir, "a")
			if err != nil {
				assert.ErrorIs(t, err, opencode.ErrClaimTaken)
				taken.Add(1)
				return
			}
			mine.Add(1)
			done()
		})
	}
	all.Wait()
	assert.EqualValues(t, 1, mine.Load())
	assert.EqualValues(t, 7, taken.Load())
	old := time.Now().Add(-keepClaims - time.Hour)
	require.NoError(t, os.Chtimes(dir+"/a", old, old))
	_, err := claimIn(t.Context(), dir, "b")
	require.NoError(t, err)
	assert.NoFileExists(t, dir+"/a")
}
