package cluster

import (
	"context"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// Two engines are stopped with SIGTERM and started again, one after another, while agents ask and people
// answer. A stopping engine still replies to its calls, because a client repeats a lost call only after 5 s.
func TestEnginesStopOneAfterAnotherWithoutLosingCalls(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := configure(t, 1)
	c.servers = append(c.servers, c.serve(0))
	var engines [2]*exec.Cmd
	for i := range engines {
		engines[i] = c.startEngine()
	}
	c.applies(rig.Everybody)

	asker := bus.NewAsker(c.connect(ctx, c.urls, roles.AgentID("local")), "local")
	t.Cleanup(asker.Close)
	desk := connector.NewDesk(c.connect(ctx, c.urls, roles.ConnectorID(schemas.ConnectorTerminal)), schemas.ConnectorTerminal)
	over := make(chan struct{})
	var load sync.WaitGroup
	var mu sync.Mutex
	calls, slowest := 0, time.Duration(0)
	timed := func(call func() error) bool {
		began := time.Now()
		err := call()
		mu.Lock()
		defer mu.Unlock()
		calls, slowest = calls+1, max(slowest, time.Since(began))
		return assert.NoError(t, err)
	}
	for range 4 {
		load.Go(func() {
			for going := true; going; {
				select {
				case <-over:
					return
				default:
				}
				going = timed(func() error { return automatic(ctx, t, asker) }) && byPerson(ctx, t, asker, desk, timed)
			}
		})
	}
	for range 2 {
		for i, e := range engines {
			c.drain(e)
			engines[i] = c.startEngine()
		}
	}
	close(over)
	load.Wait()
	t.Logf("%d calls, the slowest took %s", calls, slowest.Round(time.Millisecond))
	require.Greater(t, calls, 40)
	require.Less(t, slowest, 5*time.Second, "a call was lost")
}

// The function automatic sends a request that a rule allows.
func automatic(ctx context.Context, t *testing.T, asker *bus.Asker) error {
	r := rig.Lookup("S", "")
	d, err := asker.Ask(ctx, r)
	assert.Equal(t, schemas.Allowed, d.Outcome)
	return err
}

func byPerson(ctx context.Context, t *testing.T, asker *bus.Asker, desk *connector.Desk, timed func(func() error) bool) bool {
	var open *bus.OpenRequest
	asked := timed(func() (err error) {
		open, err = asker.Submit(ctx, rig.Deploy("S", bus.NewID()))
		return err
	})
	if !asked {
		return false
	}
	p, _, err := desk.Show(ctx, "S", open.PendingID)
	answered := assert.NoError(t, err) && timed(func() error {
		_, err := desk.Answer(ctx, schemas.Answer{SessionID: "S", PendingID: open.PendingID, Digest: p.Digest, Waiters: p.Waiters, OptionID: "allow_once", From: rig.Ann()})
		return err
	})
	return answered && timed(func() error {
		d, err := open.Await(ctx)
		assert.Equal(t, schemas.Allowed, d.Outcome)
		return err
	})
}

func (c *cluster) startEngine() *exec.Cmd {
	p, up := c.engine(1)
	require.Contains(c.t, <-up, "an engine is up")
	return p
}

// The method drain stops an engine with SIGTERM, and requires that it ends within 30 s.
func (c *cluster) drain(engine *exec.Cmd) {
	late := time.AfterFunc(30*time.Second, func() { _ = engine.Process.Kill() }) // Wait fails if the engine was killed
	defer late.Stop()
	require.NoError(c.t, engine.Process.Signal(syscall.SIGTERM))
	require.NoError(c.t, engine.Wait())
}
