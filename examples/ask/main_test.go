package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/embed"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	n, err := embed.Start(t.Context(), embed.Options{
		DataDir: dir, EngineAlone: true,
		Settings: []byte(`{"permissions":{"allow":["Bash(echo hello)"],"deny":["Bash(rm *)"]}}`),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Stop(t.Context())) }()
	o := nod.Options{Place: bus.Place{DataDir: dir}}

	var out strings.Builder
	require.NoError(t, run(t.Context(), o, "echo hello", &out))
	require.Equal(t, "allowed by policy: echo hello\nhello\n", out.String())

	out.Reset()
	require.ErrorIs(t, run(t.Context(), o, "rm -rf build", &out), nod.ErrDenied)
	require.Empty(t, out.String(), "a denied command does not run")
}

func TestWithoutNodNothingRuns(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), nod.Options{Place: bus.Place{DataDir: t.TempDir()}}, "echo hello", &out)
	require.ErrorIs(t, err, bus.ErrNotRunning)
	require.Empty(t, out.String())
}
