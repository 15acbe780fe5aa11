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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

var cuts = flag.Int("cuts", 3, "power cuts in each mode")

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

// told contains the replies that nod sent to its clients.
type told struct {
	mu        sync.Mutex
	receipts  map[string]schemas.Receipt // of requests whose decision nod has not sent, by key
	decisions map[string]string          // the ids of decisions in records, by request key
	logged    map[string]bool            // the ids of decisions in the log
}

func (w *told) receipt(key string, r schemas.Receipt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.receipts[key] = r
}

func (w *told) decision(key, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.decisions[key] = id
}

func (w *told) automatic(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logged[id] = true
}

// After a power cut, nod has every receipt and decision that it had sent to a client.
func TestAPowerCutLosesNothingThatWasTold(t *testing.T) {
	for _, mode := range []string{"group", "always"} {
		t.Run(mode, func(t *testing.T) {
			for i := range *cuts {
				lost, all := cutPower(t, mode, float64(i%3)/2)
				require.Empty(t, lost)
				t.Logf("cut %d: nothing of %d lost", i, all)
			}
		})
	}
}

// With a sync interval, a power cut destroys the receipts and decisions since the last sync. This
// shows that the disk really loses data.
func TestAPowerCutLosesWritesBeforeTheNextIntervalEnds(t *testing.T) {
	lost, all := cutPower(t, "1h", 0)
	require.NotEmpty(t, lost)
	t.Logf("%d of %d lost", len(lost), all)
}

// If the disk is full, nod confirms no further request, and ends with a line that names the remedy.
// When there is space again, nod starts and has every receipt and decision that it had sent.
func TestAFullDiskEndsNodWithoutLosingWhatItTold(t *testing.T) {
	d := newDisk(t)
	up := startNod(t, d.mount)
	agent := join(t, d.mount, roles.AgentID("local"))
	asker := bus.NewAsker(agent, "local")
	q, err := asker.Submit(t.Context(), call("Deploy", "S", "told"))
	require.NoError(t, err)
	q.Drop()
	d.failSyncs(syscall.ENOSPC)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = asker.Submit(ctx, call("Deploy", "S", "full"))
	require.Error(t, err)
	require.Error(t, up.Wait())
	require.Contains(t, up.Stderr.(*bytes.Buffer).String(), "make room on the disk, then start nod again")
	agent.Close()

	d.failSyncs(0)
	up = startNod(t, d.mount)
	require.Empty(t, missing(t, d.mount, map[string]schemas.Receipt{q.Key: q.Receipt}, nil, nil))
	_ = up.Process.Kill()
	_ = up.Wait()
	require.NoError(t, d.server.Unmount())
}

// newDisk returns a mounted disk with nod's settings.
func newDisk(t *testing.T) *disk {
	t.Helper()
	dir := t.TempDir()
	work, mount, grave := filepath.Join(dir, "work"), filepath.Join(dir, "mount"), filepath.Join(dir, "grave")
	for _, d := range []string{work, mount, grave} {
		require.NoError(t, os.Mkdir(d, 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(work, "settings.json"), []byte(`{"permissions": {"allow": ["Lookup"], "join_identical": false, "remember_denials_seconds": 0}}`), 0o600))
	d, err := mountDisk(work, mount, grave)
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("no FUSE file system can be mounted here: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.server.Unmount() }) // fails if the test has unmounted the disk
	return d
}

// cutPower runs nod under load and cuts the power at a random moment. It returns the replies that nod
// had sent and then lost, and the number of all replies that nod had sent.
func cutPower(t *testing.T, mode string, keep float64) (lost []string, all int) {
	t.Helper()
	d := newDisk(t)
	mount, after := d.mount, t.TempDir()
	up := startNod(t, mount, "--sync", mode)
	w := &told{receipts: map[string]schemas.Receipt{}, decisions: map[string]string{}, logged: map[string]bool{}}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond+time.Duration(rand.IntN(1500))*time.Millisecond)
	defer cancel()
	var load sync.WaitGroup
	agent, person := join(t, mount, roles.AgentID("local")), join(t, mount, roles.ConnectorID("terminal"))
	for i := range 8 {
		load.Go(func() { w.work(ctx, agent, person, fmt.Sprint("S", i)) })
	}
	<-ctx.Done()
	d.cut()
	w.mu.Lock() // ignore the replies that clients get from now on
	receipts, decisions, logged := w.receipts, w.decisions, w.logged
	w.receipts, w.decisions, w.logged = map[string]schemas.Receipt{}, map[string]string{}, map[string]bool{}
	w.mu.Unlock()
	_ = up.Process.Kill() // fails if the process has ended
	_ = up.Wait()
	load.Wait()
	agent.Close()
	person.Close()
	require.NoError(t, d.restore(after, keep))
	require.NoError(t, d.server.Unmount())

	up = startNod(t, after)
	defer func() {
		_ = up.Process.Kill()
		_ = up.Wait()
	}()
	return missing(t, after, receipts, decisions, logged), len(receipts) + len(decisions) + len(logged)
}

func startNod(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	up := exec.Command(nodBinary, append([]string{"up", "-q", "--listen", "127.0.0.1:0"}, args...)...)
	up.Env = append(os.Environ(), "NOD_DATA="+dir, "NOD_URL=", "NOD_CREDS=")
	out, err := up.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	up.Stderr = &errs
	require.NoError(t, up.Start())
	t.Cleanup(func() { _ = up.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = up.Wait()
		require.NoError(t, err, errs.String())
	}
	require.Contains(t, line, "nod is up on")
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return up
}

func join(t *testing.T, dir string, id roles.ID) *bus.Conn {
	t.Helper()
	conn, err := bus.Join(t.Context(), bus.Place{DataDir: dir}, id, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return conn
}

// work sends three calls again and again until ctx ends. A rule allows the first. The others wait for
// a person, and work answers one of them.
func (w *told) work(ctx context.Context, agent, person *bus.Conn, session string) {
	asker, desk := bus.NewAsker(agent, "local"), connector.NewDesk(person, "terminal")
	me, _ := user.Current()
	for i := 0; ctx.Err() == nil; i++ {
		if d, err := asker.Ask(ctx, call("Lookup", session, "")); err == nil {
			w.automatic(d.DecisionID)
		}
		for n := range 2 {
			q, err := asker.Submit(ctx, call("Deploy", session, fmt.Sprint(i, "-", n)))
			if err != nil {
				continue
			}
			w.receipt(q.Key, q.Receipt)
			if n == 1 {
				q.Drop()
				continue
			}
			d, err := desk.Answer(ctx, schemas.Answer{
				SessionID: session, PendingID: q.PendingID, Digest: q.Receipt.Digest, OptionID: "allow_once", From: schemas.From{UserID: me.Username},
			})
			q.Drop()
			if err == nil {
				w.decision(q.Key, d.DecisionID)
			}
		}
	}
}

func call(tool, session, id string) schemas.Request {
	return schemas.Request{
		SessionID: session, PendingID: id, Kind: schemas.KindToolCall, Title: "Use " + tool, ToolName: tool,
		ActionType: schemas.ActionOther, ActionDetails: []byte(`{"to":"production"}`), Options: schemas.DefaultOptions(),
	}
}

// missing compares the replies that nod sent with its stores. It describes each difference.
func missing(t *testing.T, dir string, receipts map[string]schemas.Receipt, decisions map[string]string, logged map[string]bool) (lost []string) {
	t.Helper()
	conn := join(t, dir, roles.ID{Role: roles.OwnerStore})
	defer conn.Close()
	store, err := bus.OpenExistingStore(t.Context(), conn)
	require.NoError(t, err)
	for key, r := range receipts {
		entry, err := store.Records.Get(t.Context(), key)
		_, id := schemas.SplitKey(key)
		switch {
		case err != nil:
			lost = append(lost, fmt.Sprintf("the receipt of %s: %v", key, err))
		case !entry.Record.Waiter(id).Deadline.Equal(r.Deadline):
			lost = append(lost, "the deadline of "+key)
		case decisions[key] != "" && (entry.Record.Verdict(id) == nil || entry.Record.Verdict(id).DecisionID != decisions[key]):
			lost = append(lost, "the decision of "+key)
		}
	}
	require.NoError(t, conn.EachLogged(t.Context(), func(e schemas.LogEntry) error {
		if e.Decision != nil {
			delete(logged, e.Decision.DecisionID)
		}
		return nil
	}))
	for id := range logged {
		lost = append(lost, "the automatic decision "+id)
	}
	return lost
}
