package test

import (
	"context"
	"testing"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// noticed is the longest that a client may take to leave a silent server: generous, but
// less than the half minute that it took before this was fixed.
const noticed = 20 * time.Second

// twoWays opens a connection that has two addresses, each behind a proxy, and returns
// it with the proxy of the address that it uses.
func (e *env) twoWays(id roles.ID) (*bus.Conn, *wire) {
	e.t.Helper()
	one, other := e.wire(), e.wire()
	conn := e.dial(id, one.url+","+other.url)
	e.wires = append(e.wires, conn.Close)
	if conn.URL() == other.url {
		return conn, other
	}
	return conn, one
}

// A server falls silent: a waiting agent gets its decision through another server, and
// a viewer sees the new requests there.
func TestClientsLeaveAServerThatSaysNothing(t *testing.T) {
	t.Parallel()
	env := start(t)
	conn, agents := env.twoWays(roles.AgentID("ada"))
	looking, viewers := env.twoWays(roles.ConnectorID("web"))
	system := actors.NewSystem(quiet())
	t.Cleanup(system.Stop)
	seen := make(chan schemas.Prompt, 16)
	viewer, err := connector.View(env.ctx, system, looking, "web", quiet(), func(p schemas.Prompt) { seen <- p })
	env.NoError(err)
	t.Cleanup(func() { env.NoError(viewer.Stop(context.Background())) })
	asker := bus.NewAsker(conn, "ada")
	t.Cleanup(asker.Close)
	waits, err := asker.Submit(env.ctx, deploy("S", "1"))
	env.NoError(err)
	first := <-seen
	env.Equal("S.1", first.Key())

	agents.hold()
	viewers.hold()
	began := time.Now()
	env.Ann().Allows(&question{waits, env.Agent("ada")})
	env.Agent("ada").Asks(deploy("S", "2"))
	within, cancel := context.WithTimeout(env.ctx, noticed)
	defer cancel()
	d, err := waits.Await(within)
	env.NoError(err)
	env.Equal(schemas.Allowed, d.Outcome)
	t.Log("the asker heard after", time.Since(began))
	decided, fresh := false, false
	for !decided || !fresh {
		select {
		case p := <-seen:
			decided = decided || p.Key() == "S.1" && p.Decision != nil
			fresh = fresh || p.Key() == "S.2"
		case <-within.Done():
			env.Fail("the viewer has not seen both changes", "decided: %v, new: %v", decided, fresh)
			return
		}
	}
	t.Log("the viewer saw it after", time.Since(began))
}

// A server answers pings and serves nothing, like one that is cut off from its cluster:
// a waiting agent changes to another server.
func TestClientsLeaveAServerThatServesNothing(t *testing.T) {
	t.Parallel()
	env := start(t)
	conn, w := env.twoWays(roles.AgentID("ada"))
	asker := bus.NewAsker(conn, "ada")
	t.Cleanup(asker.Close)
	waits, err := asker.Submit(env.ctx, deploy("S", "1"))
	env.NoError(err)
	was := conn.URL()
	w.loseAll(".await.")
	began := time.Now()
	env.Eventually(func() bool { return conn.URL() != "" && conn.URL() != was }, noticed, tick)
	t.Log("after", time.Since(began))
	env.Ann().Allows(&question{waits, env.Agent("ada")})
	d, err := waits.Await(env.ctx)
	env.NoError(err)
	env.Equal(schemas.Allowed, d.Outcome)
}
