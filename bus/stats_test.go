package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// On a busy machine, an engine's reply may come only after the next request for statistics. The late
// reply still counts.
func TestALateReplyCounts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	g := startGuarded(t)
	engine, err := bus.Connect(ctx, bus.Options{URL: g.url, Creds: g.keys.Path(asEngine), Inbox: asEngine.InboxPrefix(), Name: "engine", Log: quiet()})
	require.NoError(t, err)
	t.Cleanup(engine.Close)
	_, err = engine.Serve(bus.ServiceOptions{Name: "nod-engine", Version: "1.0.0", Open: 8, Stats: func() any {
		<-time.After(700 * time.Millisecond)
		return map[string]uint64{"revision": 7}
	}}, bus.Endpoint{
		Name: "query", Verb: "query", Tokens: 2, Handle: func(c *bus.Call) { c.Reply(schemas.Page{Type: schemas.TypePage}) },
	})
	require.NoError(t, err)
	laggards, err := engine.Follow(ctx, "nod-engine", "revision", 7, nil)
	require.NoError(t, err)
	require.Empty(t, laggards)
	require.NoError(t, ctx.Err())
}

// An engine is behind if it has reported an older revision and no longer replies.
func TestAnEngineThatFallsSilentIsBehind(t *testing.T) {
	g := startGuarded(t)
	connect := func() *bus.Conn {
		c, err := bus.Connect(t.Context(), bus.Options{URL: g.url, Creds: g.keys.Path(asEngine), Inbox: asEngine.InboxPrefix(), Name: "engine", Log: quiet()})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	asked := make(chan struct{}, 100)
	engine, asker := connect(), connect()
	_, err := engine.Serve(bus.ServiceOptions{Name: "nod-engine", Version: "1.0.0", Open: 8, Stats: func() any {
		asked <- struct{}{}
		return map[string]uint64{"revision": 6}
	}}, bus.Endpoint{
		Name: "query", Verb: "query", Tokens: 2, Handle: func(c *bus.Call) { c.Reply(schemas.Page{Type: schemas.TypePage}) },
	})
	require.NoError(t, err)
	go func() {
		<-asked
		<-asked
		engine.Close()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	laggards, err := asker.Follow(ctx, "nod-engine", "revision", 7, nil)
	require.NoError(t, err)
	require.Len(t, laggards, 1)
}
