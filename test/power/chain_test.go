package power

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// chain is one disk that loses its power again and again. It also has everything that nod has told its
// clients meanwhile.
type chain struct {
	t      *testing.T
	mode   string // the value of nod's flag --sync
	random *rand.Rand
	told   *told
	cuts   int
	large  bool // true if some requests of the load are large

	work string // the directory that has the disk's files
	disk *disk
	up   *exec.Cmd
}

// chainLength is the number of cuts after which a chain goes on with an empty disk.
const chainLength = 10

func newChain(t *testing.T, mode string, part uint64) *chain {
	t.Helper()
	t.Logf("-seed %d", *seed)
	c := &chain{t: t, mode: mode, random: rand.New(rand.NewPCG(*seed, part))}
	c.empty()
	return c
}

func (c *chain) empty() {
	c.told, c.work = newTold(), c.t.TempDir()
	c.boot()
}

// nearlyABlock is the number of large requests that nearly fill a block file of 8 MiB.
const nearlyABlock = 36

// fill stores large requests that nearly fill a block file. The large requests of the load then soon
// begin a new one.
func (c *chain) fill() {
	c.large = true
	agent := join(c.t, c.disk.mount, roles.AgentID("local"))
	defer agent.Close()
	var asking sync.WaitGroup
	for i := range nearlyABlock {
		filler := &client{told: c.told, session: fmt.Sprint("fill", i), large: true, asker: bus.NewAsker(agent, "local")}
		asking.Go(func() { filler.leavePending(c.t.Context(), "fill") })
	}
	asking.Wait()
	require.Len(c.t, c.told.snapshot().Receipts, nearlyABlock)
}

// The method boot starts nod on a disk with the files in the directory work.
func (c *chain) boot() {
	c.disk = newDisk(c.t, c.work, c.random)
	if c.mode == "group" {
		c.disk.strict = []string{"KV_pending_permissions", "permission_log"} // nod must sync the names in these directories itself
	}
	c.up = startNod(c.t, c.disk.mount, "--sync", c.mode)
}

// The method load uses nod for up to two seconds. It adds to the parameter w everything that nod tells its
// clients.
func (c *chain) load(w *told) { c.run(w, func() {}) }

// loadAndCut uses nod and cuts the power meanwhile.
func (c *chain) loadAndCut(w *told, keep float64) {
	c.run(w, func() {
		c.disk.cut()
		w.end()
		kill(c.up)
	})
	c.restore(keep)
}

func (c *chain) cut(keep float64) {
	c.disk.cut()
	kill(c.up)
	c.restore(keep)
}

// restore replaces the disk's files by those that survived the power cut.
func (c *chain) restore(keep float64) {
	after := c.t.TempDir()
	require.NoError(c.t, c.disk.restore(after, keep))
	c.disk.unmount()
	require.NoError(c.t, os.RemoveAll(c.work))
	require.NoError(c.t, os.RemoveAll(c.disk.grave))
	c.work = after
}

// The method restart starts nod on the files that survived the power cut, without a disk that can lose its
// power. It returns their directory.
func (c *chain) restart() (dir string) {
	c.up = startNod(c.t, c.work)
	return c.work
}

// The method next stops the nod that the method restart has started. It then starts nod on a disk, for the
// next cut.
func (c *chain) next() {
	kill(c.up)
	if c.cuts++; c.cuts%chainLength == 0 {
		require.NoError(c.t, os.RemoveAll(c.work))
		c.empty()
		return
	}
	c.boot()
}

// newestBlock returns the number of the newest block file of the records in a data directory.
func (c *chain) newestBlock(dir string) (newest int) {
	files, _ := filepath.Glob(filepath.Join(dir, "nats/jetstream/STORE/streams/KV_pending_permissions/msgs/*.blk"))
	for _, f := range files {
		var n int
		if _, err := fmt.Sscanf(filepath.Base(f), "%d.blk", &n); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}

// The method run lets eight clients use nod for up to two seconds. It calls the function end before the
// clients stop.
func (c *chain) run(w *told, end func()) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 500*time.Millisecond+time.Duration(c.random.IntN(1500))*time.Millisecond)
	defer cancel()
	dir := c.disk.mount
	agent, person, owner := join(c.t, dir, roles.AgentID("local")), join(c.t, dir, roles.ConnectorID("terminal")), join(c.t, dir, roles.ID{Role: roles.Owner})
	me, err := user.Current()
	require.NoError(c.t, err)
	var working sync.WaitGroup
	for i := range 8 {
		user := &client{
			told: w, number: i, session: fmt.Sprint("S", i), large: c.large && i > 4, person: schemas.From{UserID: me.Username},
			asker: bus.NewAsker(agent, "local"), desk: connector.NewDesk(person, "terminal"), owner: connector.NewOwner(owner, "terminal"),
		}
		working.Go(func() { user.work(ctx, bus.NewID()) })
	}
	<-ctx.Done()
	end()
	working.Wait()
	for _, conn := range []*bus.Conn{agent, person, owner} {
		conn.Close()
	}
}
