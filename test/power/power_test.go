package power

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

var (
	cuts = flag.Int("cuts", 3, "power cuts in each mode")
	seed = flag.Uint64("seed", rand.Uint64(), "decides the moments of the cuts and what outlives them")
)

var nodBinary string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "power")
	if err != nil {
		panic(err)
	}
	nodBinary = filepath.Join(dir, "nod")
	build := exec.Command("go", "build", "-o", nodBinary, "./cmd/nod")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// After a power cut, nod still has everything that it has told its clients.
func TestAPowerCutLosesNothingThatWasTold(t *testing.T) {
	t.Parallel()
	for i, mode := range []string{"group", "always"} {
		t.Run(mode, func(t *testing.T) {
			c := newChain(t, mode, uint64(i))
			for n := range *cuts {
				c.loadAndCut(c.told, float64(n%3)/2)
				f := c.told.snapshot()
				require.Empty(t, f.lost(t, c.restart()))
				t.Logf("cut %d: nothing of %d lost", n, f.count())
				c.next()
			}
		})
	}
}

// halfKept is the part of the unsynced data that survives a power cut. Descriptions of streams and
// consumers, and positions of consumers, are then damaged.
const halfKept = 0.5

// While nod is used, its records begin a new block file. The power cut comes afterwards.
func TestAPowerCutWithANewBlockFileLosesNothingThatWasTold(t *testing.T) {
	t.Parallel()
	newest := 0
	for n := range max(*cuts/3, 1) {
		c := newChain(t, "group", uint64(10+n))
		c.fill()
		for range 5 {
			if c.load(c.told); c.newestBlock(c.disk.work) > 1 {
				break
			}
		}
		c.loadAndCut(c.told, halfKept)
		f := c.told.snapshot()
		require.Empty(t, f.lost(t, c.restart()))
		newest = max(newest, c.newestBlock(c.work))
		t.Logf("cut %d: nothing of %d lost", n, f.count())
		kill(c.up)
	}
	require.Greater(t, newest, 1, "no new block file began")
}

// With a sync interval, a power cut loses only data that nod stored after the last sync.
func TestAPowerCutLosesNothingOlderThanAnInterval(t *testing.T) {
	t.Parallel()
	c := newChain(t, "100ms", 2)
	for n := range *cuts {
		c.load(c.told)
		require.Eventually(t, c.disk.clean, patience, time.Millisecond, "the server syncs after each interval")
		recent := newTold()
		c.loadAndCut(recent, halfKept)
		dir := c.restart()
		require.Empty(t, c.told.snapshot().lost(t, dir))
		f := recent.snapshot()
		t.Logf("cut %d: nothing of %d lost that is older than an interval, %d of %d that are not", n, c.told.count(), len(f.lostAfter(t, dir, 0)), f.count())
		c.next()
	}
}

// A simulated power cut really loses data: with a very long sync interval, some data is gone.
func TestAPowerCutLosesWhatWasNotSynced(t *testing.T) {
	t.Parallel()
	c := newChain(t, "1h", 3)
	c.loadAndCut(c.told, 0)
	f := c.told.snapshot()
	lost := f.lost(t, c.restart())
	require.NotEmpty(t, lost)
	t.Logf("%d of %d lost", len(lost), f.count())
}

// If the disk fails or is full, nod confirms nothing more. It ends with a line that names the remedy.
// When the disk works again, nod starts with everything that it has told its clients.
func TestAFailedDiskEndsNodWithoutLosingWhatItTold(t *testing.T) {
	t.Parallel()
	room, check := "make room on the disk, then start nod again", "check the disk, then start nod again"
	for _, fault := range []struct {
		name, mode string
		faults
		says string
	}{
		{"no room for data", "group", faults{writes: syscall.ENOSPC}, room},
		{"no room at syncs", "group", faults{syncs: syscall.ENOSPC}, room},
		{"writes fail", "group", faults{writes: syscall.EIO}, check},
		{"syncs fail", "group", faults{syncs: syscall.EIO}, check},
		{"no room for data", "always", faults{writes: syscall.ENOSPC}, room},
		{"syncs fail", "always", faults{syncs: syscall.EIO}, check},
		{"no room for data", "100ms", faults{writes: syscall.ENOSPC}, room},
	} {
		t.Run(fault.name+" "+fault.mode, func(t *testing.T) {
			t.Parallel()
			c := newChain(t, fault.mode, 4)
			c.load(c.told)
			agent := join(t, c.disk.mount, roles.AgentID("local"))
			defer agent.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.disk.fail(fault.faults)
			asked := make(chan error, 1)
			go func() {
				_, err := bus.NewAsker(agent, "local").Submit(ctx, call("Deploy", "S", "full"))
				asked <- err
			}()
			failed := time.Now()
			require.Contains(t, lastWords(t, c.up), fault.says)
			t.Logf("nod ended after %v", time.Since(failed))
			require.Less(t, time.Since(failed), promptly, "nod ends without waiting for the disk")
			cancel()
			require.Error(t, <-asked)
			c.disk.fail(faults{})
			c.up = startNod(t, c.disk.mount, "--sync", fault.mode)
			require.Empty(t, c.told.snapshot().lost(t, c.disk.mount))
		})
	}
}

// A killed nod may leave data that only the kernel has. The next nod writes this data to disk before it
// tells clients about it.
func TestWhatAKilledNodLeftIsOnDiskBeforeItIsTold(t *testing.T) {
	t.Parallel()
	c := newChain(t, "group", 5)
	c.load(c.told)
	release := c.disk.hold()
	c.load(newTold()) // this load stores requests, and no client hears of them
	_ = c.up.Process.Kill()
	release() // the process can end only after its syncs have returned
	_ = c.up.Wait()
	c.up = startNod(t, c.disk.mount)
	conn := join(t, c.disk.mount, roles.ConnectorID("terminal"))
	listed, err := connector.NewDesk(conn, "terminal").Pending(t.Context(), schemas.Query{})
	require.NoError(t, err)
	conn.Close()
	before := len(c.told.Receipts)
	for _, p := range listed {
		c.told.Receipts[p.Key()] = schemas.Receipt{Deadline: p.Deadline}
	}
	require.Greater(t, len(c.told.Receipts), before, "nod was killed with data that was not synced")
	c.cut(0)
	require.Empty(t, c.told.snapshot().lost(t, c.restart()))
}

// newDisk mounts a disk with the files in the directory work.
func newDisk(t *testing.T, work string, random *rand.Rand) *disk {
	t.Helper()
	mount, grave := t.TempDir(), t.TempDir()
	d, err := mountDisk(work, mount, grave, random)
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("no FUSE file system can be mounted here: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(d.unmount)
	return d
}

// startNod starts nod on a data directory. The Stderr of the result has nod's errors. On a busy machine
// with a slow disk, nod may give up. startNod then tries again, as a supervisor does.
func startNod(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	up, err := tryToStart(t, dir, args...)
	for try := 1; err != nil && try < 3; try++ {
		t.Log(err)
		up, err = tryToStart(t, dir, args...)
	}
	require.NoError(t, err)
	return up
}

func tryToStart(t *testing.T, dir string, args ...string) (*exec.Cmd, error) {
	t.Helper()
	me, err := user.Current()
	require.NoError(t, err)
	settings := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(settings, settingsWith(me.Username, "Marker"), 0o600))
	if entries, _ := os.ReadDir(filepath.Join(dir, "nats")); len(entries) == 0 { // only the first start applies settings
		args = append(args, "--settings", settings)
	}
	up := exec.Command(nodBinary, append([]string{"up", "-q", "--listen", "127.0.0.1:0"}, args...)...)
	up.Env = append(os.Environ(), "NOD_DATA="+dir, "NOD_URL=", "NOD_CREDS=")
	out, err := up.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	up.Stderr = &errs
	require.NoError(t, up.Start())
	t.Cleanup(func() { kill(up) })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = up.Wait()
		return nil, fmt.Errorf("nod did not start: %s", errs.String())
	}
	require.Contains(t, line, "nod is up on")
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return up, nil
}

// promptly is shorter than the time for which an orderly stop waits for a failed disk.
const promptly = 10 * time.Second

// lastWords waits until a process has ended with an error. It returns the process's output.
func lastWords(t *testing.T, p *exec.Cmd) string {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(patience):
		_ = p.Process.Signal(syscall.SIGQUIT) // this signal makes Go print all goroutines
		<-ended
		require.Fail(t, "the process does not end", p.Stderr.(*bytes.Buffer).String())
	}
	return p.Stderr.(*bytes.Buffer).String()
}

func kill(p *exec.Cmd) {
	_ = p.Process.Kill()
	_ = p.Wait()
}

func join(t *testing.T, dir string, id roles.ID) *bus.Conn {
	t.Helper()
	conn, err := bus.Join(t.Context(), bus.Place{DataDir: dir}, id, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return conn
}

func call(tool, session, id string) schemas.Request {
	return schemas.Request{
		SessionID: session, PendingID: id, Kind: schemas.KindToolCall, Title: "Use " + tool, ToolName: tool,
		ActionType: schemas.ActionOther, ActionDetails: []byte(`{"to":"production"}`), Options: schemas.DefaultOptions(),
	}
}
