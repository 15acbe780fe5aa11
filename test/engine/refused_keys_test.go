package engine

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/internal/testports"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// refusals counts a server's warnings, one for each refused key.
type refusals struct {
	slog.Handler
	n *atomic.Int64
}

func (r refusals) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (r refusals) Handle(context.Context, slog.Record) error { r.n.Add(1); return nil }

// Clients reconnect after a server has refused their keys for a while. Servers may do so while
// their configuration changes.
func TestClientsReconnectAfterTheirKeysWereRefused(t *testing.T) {
	t.Parallel()
	port := testports.Free(t, 1)[0]
	env := rig.Start(t, rig.OverTheNetwork, func(s *rig.Setup) { s.Port = port })
	q := env.Agent("ada").Asks(rig.Deploy("S", "one"))
	env.NoError(env.Server.Close())

	strangers, err := roles.OpenKeys(t.TempDir())
	env.NoError(err)
	env.NoError(strangers.Ensure(roles.First()...))
	users, err := strangers.Users()
	env.NoError(err)
	var refused atomic.Int64
	other, err := bus.Embed(env.Ctx, bus.EmbedOptions{
		DataDir: t.TempDir(), Port: port, Users: users, Log: slog.New(refusals{slog.DiscardHandler, &refused}),
	})
	env.NoError(err)
	env.Soon("the clients were refused several times", func() bool { return refused.Load() >= 20 })
	env.NoError(other.Close())

	users, err = env.Keys.Users()
	env.NoError(err)
	env.Server, err = bus.Embed(env.Ctx, bus.EmbedOptions{DataDir: env.Dir, Port: port, Users: users, SyncInterval: bus.SyncAlways, Log: rig.Quiet()})
	env.NoError(err)
	env.Ann().Allows(q)
	q.Ends(schemas.Allowed)
}
