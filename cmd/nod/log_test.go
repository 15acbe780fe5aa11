package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// stopAtFirstWrite is a writer that stops the command when the command prints its first entries.
type stopAtFirstWrite struct{ stop context.CancelFunc }

func (w stopAtFirstWrite) Write(p []byte) (int, error) {
	w.stop()
	return len(p), nil
}

// A command that a signal stops has read only a part of the log. It must not succeed, because another
// part may have been changed.
func TestAPartOfTheLogIsNoSuccess(t *testing.T) {
	dir := t.TempDir()
	n, err := embed.Start(t.Context(), embed.Options{DataDir: dir, SyncInterval: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(t, n.Stop(ctx))
	})
	conn, err := n.Connect(t.Context(), roles.ID{Role: roles.EngineStore})
	require.NoError(t, err)
	defer conn.Close()
	store, err := bus.OpenStore(t.Context(), conn, 1)
	require.NoError(t, err)
	for i := range 200 { // more text than fits into the output's buffer
		_, _, err := store.Log.Append(t.Context(), fmt.Sprint("e", i), schemas.LogEntry{Type: schemas.TypeLogEntry, At: time.Now().UTC(), Kind: schemas.LogSession, SessionID: "S", Actor: "ann"})
		require.NoError(t, err)
	}
	for _, command := range []string{"log tail -n 5", "log export", "log search --session S"} {
		ctx, stop := context.WithCancel(t.Context())
		var stderr bytes.Buffer
		code := run(ctx, append(strings.Fields(command), "--data", dir), strings.NewReader(""), stopAtFirstWrite{stop}, &stderr)
		require.Equal(t, 1, code, command)
		require.Contains(t, stderr.String(), "stopped before the command was done", command)
		require.Zero(t, run(t.Context(), append(strings.Fields(command), "--data", dir), strings.NewReader(""), io.Discard, &stderr), command)
	}
}
