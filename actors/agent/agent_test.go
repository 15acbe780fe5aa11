package agent_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/agent"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// A session that ends withdraws its own pending requests, but no requests of other sessions.
func TestLeavingASessionWithdrawsItsRequests(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n, err := embed.Start(ctx, embed.Options{DataDir: t.TempDir(), SyncInterval: time.Minute})
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Stop(context.Background())) }()
	conn, err := n.Connect(ctx, roles.AgentID("local"))
	require.NoError(t, err)
	defer conn.Close()
	terminal, err := n.Connect(ctx, roles.ConnectorID("terminal"))
	require.NoError(t, err)
	defer terminal.Close()
	sys := actors.NewSystem(slog.New(slog.DiscardHandler))
	defer sys.Stop()
	viewed := make(chan schemas.Prompt, 100)
	viewer, err := connector.View(ctx, sys, terminal, "terminal", slog.New(slog.DiscardHandler), func(p schemas.Prompt) { viewed <- p })
	require.NoError(t, err)
	defer func() { require.NoError(t, viewer.Stop(context.Background())) }()

	host := agent.NewHost(sys, conn, "local", slog.New(slog.DiscardHandler))
	defer host.Close()
	left, err := host.Join("left", nil)
	require.NoError(t, err)
	stays, err := host.Join("stays", nil)
	require.NoError(t, err)
	heard := make(chan schemas.Decision, 1)
	go func() {
		d, err := left.Ask(ctx, call())
		if err == nil {
			heard <- d
		}
	}()
	go func() { _, _ = stays.Ask(ctx, call()) }()
	for range 2 {
		require.Nil(t, (<-viewed).Decision)
	}
	left.Leave("the editor was closed")
	d := <-heard
	require.Equal(t, schemas.Withdrawn, d.Outcome)
	require.Equal(t, "the editor was closed", d.Message)
	pending, err := connector.NewDesk(terminal, "terminal").Pending(ctx, schemas.Query{})
	require.NoError(t, err)
	require.Len(t, pending, 1)
	require.Equal(t, "stays", pending[0].SessionID)
}

func call() schemas.Request {
	return schemas.Request{
		Kind: schemas.KindToolCall, Title: "Bash", ToolName: "Bash",
		ActionType: schemas.ActionCommand, ActionDetails: []byte(`{"command":"make"}`),
	}
}
