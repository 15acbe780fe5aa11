package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// cluster is three nats-servers as processes, with the accounts and keys of
// nod keys config, and nod's roles against them.
type cluster struct {
	t       *testing.T
	dir     string
	nod     string
	server  string
	urls    string
	servers []*exec.Cmd
}

func newCluster(t *testing.T) *cluster {
	nod, err := binary()
	require.NoError(t, err)
	c := &cluster{t: t, dir: t.TempDir(), nod: nod}
	c.server = filepath.Join(c.dir, "nats-server")
	out, err := exec.Command("go", "build", "-o", c.server, "github.com/nats-io/nats-server/v2").CombinedOutput()
	require.NoError(t, err, string(out))
	accounts, err := exec.Command(nod, "keys", "config", "--data", c.dir).Output()
	require.NoError(t, err)
	ports := freePorts(t, 6)
	var urls, routes []string
	for n := range 3 {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[n]))
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[3+n]))
	}
	c.urls = strings.Join(urls, ",")
	for n := range 3 {
		config := fmt.Sprintf("server_name: n%d\nlisten: 127.0.0.1:%d\njetstream { store_dir: %q }\ncluster { name: c, listen: 127.0.0.1:%d, routes: [%s] }\n%s",
			n, ports[n], filepath.Join(c.dir, fmt.Sprint("js", n)), ports[3+n], strings.Join(routes, ","), accounts)
		require.NoError(t, os.WriteFile(c.config(n), []byte(config), 0o600))
		c.servers = append(c.servers, c.serve(n))
	}
	return c
}

func freePorts(t *testing.T, n int) []int {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}

func (c *cluster) config(n int) string { return filepath.Join(c.dir, fmt.Sprintf("n%d.conf", n)) }

func (c *cluster) serve(n int) *exec.Cmd { return c.begin(exec.Command(c.server, "-c", c.config(n))) }

// begin starts a process that ends with the test.
func (c *cluster) begin(p *exec.Cmd) *exec.Cmd {
	require.NoError(c.t, p.Start())
	c.t.Cleanup(func() { stop(p) })
	return p
}

func stop(p *exec.Cmd) {
	_ = p.Process.Kill() // it may have ended
	_ = p.Wait()
}

func (c *cluster) command(key string, args ...string) *exec.Cmd {
	p := exec.Command(c.nod, append(args, "--creds", filepath.Join(c.dir, "keys", key+".nk"))...)
	p.Env = append(os.Environ(), "NOD_URL="+c.urls, "NOD_DATA="+c.dir)
	return p
}

// engine starts an engine, and waits until it says that it is up.
func (c *cluster) engine() (p *exec.Cmd, up <-chan string) {
	p = c.command("engine", "engine", "--replicas", "3", "--store-creds", filepath.Join(c.dir, "keys", "engine-store.nk"))
	out, err := p.StdoutPipe()
	require.NoError(c.t, err)
	said := make(chan string, 1)
	c.begin(p)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		said <- line
	}()
	return p, said
}

func (c *cluster) run(key string, args ...string) (string, error) {
	p := c.command(key, args...)
	var errs bytes.Buffer
	p.Stderr = &errs
	out, err := p.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, &errs)
	}
	return string(out), err
}

// leader is which server leads the stream of the records.
func (c *cluster) leader() int {
	key, err := nats.NkeyOptionFromSeed(filepath.Join(c.dir, "keys", "engine-store.nk"))
	require.NoError(c.t, err)
	nc, err := nats.Connect(c.urls, key, nats.CustomInboxPrefix("_INBOX.engine-store"))
	require.NoError(c.t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(c.t, err)
	stream, err := js.Stream(c.t.Context(), "KV_pending_permissions")
	require.NoError(c.t, err)
	return int(stream.CachedInfo().Cluster.Leader[1] - '0')
}

// Two engines on three servers: the leader of the records and one engine are
// killed in the middle of 50 requests, and every asker hears its decision.
func TestAClusterLosesAServerAndAnEngine(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: three servers and two engines as processes")
	}
	const requests = 50
	c := newCluster(t)
	first, up1 := c.engine()
	_, up2 := c.engine()
	for _, up := range []<-chan string{up1, up2} {
		require.Contains(t, <-up, "an engine is up")
	}
	settings := filepath.Join(c.dir, "s.json")
	require.NoError(t, os.WriteFile(settings, []byte("{}"), 0o600))
	_, err := c.run("owner", "settings", "apply", settings)
	require.NoError(t, err)

	var all sync.WaitGroup
	waiting := make(chan struct{}, requests)
	for n := range requests {
		all.Go(func() {
			waiting <- struct{}{}
			out, err := c.run("agent-local", "ask", "--session", "cluster", "--tool", "Frobnicate", "--id", fmt.Sprint("request-", n), "--json")
			if !assert.NoError(t, err, n) {
				return
			}
			var d schemas.Decision
			assert.NoError(t, json.Unmarshal([]byte(out), &d))
			assert.Equal(t, schemas.Allowed, d.Outcome)
		})
	}
	pending := func() (ids []string) {
		out, err := c.run("terminal", "pending", "--json")
		if err != nil {
			return nil // a server is gone: ask again
		}
		var rows []struct {
			ID string `json:"pending_id"`
		}
		require.NoError(t, json.Unmarshal([]byte(out), &rows))
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		return ids
	}
	require.Eventually(t, func() bool { return len(pending()) > requests/3 }, time.Minute, 50*time.Millisecond)
	stop(c.servers[c.leader()])
	stop(first)
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	deadline := time.After(2 * time.Minute)
	for {
		for _, id := range pending() {
			_, _ = c.run("terminal", "allow", id) // what did not arrive is pending still
		}
		select {
		case <-done:
			return
		case <-deadline:
			t.Fatal("somebody still waits")
		default:
		}
	}
}
