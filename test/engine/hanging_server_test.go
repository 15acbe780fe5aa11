package engine

import (
	"context"
	"testing"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// noticed limits the time in which a client must leave a silent server. Pings detect such a server
// after 9 s; the rest is for slow machines.
const noticed = 20 * time.Second

// twoWays opens a connection that has two server addresses, each behind its own proxy. It returns
// the connection and the proxy in use.
func twoWays(e *rig.Env, id roles.ID) (*bus.Conn, *rig.Wire) {
	e.T.Helper()
	one, other := e.Wire(), e.Wire()
	conn := e.Dial(id, one.URL+","+other.URL)
	e.Wires = append(e.Wires, conn.Close)
	if conn.URL() == other.URL {
		return conn, other
	}
	return conn, one
}

// A server falls silent but keeps its connections open. Clients change to another server: a waiting agent
// gets its decision, and a viewer hears of changes.
func TestClientsLeaveASilentServer(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	conn, agents := twoWays(env, roles.AgentID("ada"))
	looking, viewers := twoWays(env, roles.ConnectorID("web"))
	system := actors.NewSystem(rig.Quiet())
	t.Cleanup(system.Stop)
	seen := make(chan schemas.Prompt, 16)
	viewer, err := connector.View(env.Ctx, system, looking, "web", rig.Quiet(), func(p schemas.Prompt) { seen <- p })
	env.NoError(err)
	t.Cleanup(func() { env.NoError(viewer.Stop(context.Background())) })
	asker := bus.NewAsker(conn, "ada")
	t.Cleanup(asker.Close)
	waits, err := asker.Submit(env.Ctx, rig.Deploy("S", "1"))
	env.NoError(err)
	first := <-seen
	env.Equal("S.1", first.Key())

	agents.Hold()
	viewers.Hold()
	began := time.Now()
	env.Ann().Allows(&rig.Question{OpenRequest: waits, Agent: env.Agent("ada")})
	env.Agent("ada").Asks(rig.Deploy("S", "2"))
	within, cancel := context.WithTimeout(env.Ctx, noticed)
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

// A server that is cut off from its cluster may reply to pings and serve no calls. A waiting agent
// leaves such a server for another one.
func TestClientsLeaveAServerThatServesNoCalls(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	conn, w := twoWays(env, roles.AgentID("ada"))
	asker := bus.NewAsker(conn, "ada")
	t.Cleanup(asker.Close)
	waits, err := asker.Submit(env.Ctx, rig.Deploy("S", "1"))
	env.NoError(err)
	was := conn.URL()
	w.LoseAll(".await.")
	began := time.Now()
	env.Eventually(func() bool { return conn.URL() != "" && conn.URL() != was }, noticed, rig.Tick)
	t.Log("after", time.Since(began))
	env.Ann().Allows(&rig.Question{OpenRequest: waits, Agent: env.Agent("ada")})
	d, err := waits.Await(env.Ctx)
	env.NoError(err)
	env.Equal(schemas.Allowed, d.Outcome)
}
