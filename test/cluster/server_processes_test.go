package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/internal/testports"
	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// cluster is a set of nats-server processes with the accounts that `nod keys config` prints. Engines,
// connectors and agents are processes of nod that connect to these servers.
type cluster struct {
	t       *testing.T
	dir     string
	nod     string
	server  string
	urls    string
	suffix  string // the ending of the key files' names
	servers []*exec.Cmd
	places  []string // for each server, the part of its configuration that names its addresses and directories
}

// natsServer builds nats-server, once for all tests, and returns its path.
var natsServer = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(rig.Binary), "nats-server")
	return path, testprogram.Build("github.com/nats-io/nats-server/v2", path)
})

// newCluster starts three servers as processes. With the flag -short, it skips the test.
func newCluster(t *testing.T) *cluster {
	if testing.Short() {
		t.Skip("left out with -short: three servers as processes")
	}
	c := configure(t, 3)
	for n := range 3 {
		c.servers = append(c.servers, c.serve(n))
	}
	return c
}

// configure writes the configuration and the keys of a cluster, and the further keys that the parameter more
// names. It starts no server.
func configure(t *testing.T, servers int, more ...roles.ID) *cluster {
	return configureKeys(t, servers, ".nk", more...)
}

// configureKeys is like configure, for key files with the given suffix. The suffix .creds means servers in
// operator mode.
func configureKeys(t *testing.T, servers int, suffix string, more ...roles.ID) *cluster {
	server, err := natsServer()
	require.NoError(t, err)
	c := &cluster{t: t, dir: t.TempDir(), nod: rig.Binary, server: server, suffix: suffix}
	keys, err := roles.OpenKeys(c.dir)
	require.NoError(t, err)
	if suffix == ".creds" {
		require.NoError(t, keys.ForOperator())
	}
	require.NoError(t, keys.Ensure(append(append(roles.First(), roles.ConnectorID("tg"), roles.ID{Role: roles.Observer}), more...)...))
	ports := testports.Free(t, 2*servers)
	var urls, routes []string
	for n := range servers {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[n]))
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[servers+n]))
	}
	c.urls = strings.Join(urls, ",")
	for n := range servers {
		config := fmt.Sprintf("server_name: n%d\nlisten: 127.0.0.1:%d\nlog_file: %q\njetstream { store_dir: %q, sync_interval: always }\n",
			n, ports[n], c.log(n), filepath.Join(c.dir, fmt.Sprint("js", n)))
		if servers > 1 {
			// The cluster has a name of its own, because a server of another test may get the port of a
			// killed server.
			config += fmt.Sprintf("\ncluster { name: c%d, listen: 127.0.0.1:%d, routes: [%s] }\n", ports[0], ports[servers+n], strings.Join(routes, ","))
		}
		c.places = append(c.places, config)
		c.configures(n)
	}
	return c
}

// The method configures writes the configuration of server n, with the accounts as nod keys config now prints
// them.
func (c *cluster) configures(n int) {
	c.t.Helper()
	accounts, err := output(exec.Command(c.nod, "keys", "config", "--data", c.dir, "--resolver-dir", filepath.Join(c.dir, fmt.Sprint("accounts", n))))
	require.NoError(c.t, err)
	require.NoError(c.t, os.WriteFile(c.config(n), []byte(c.places[n]+accounts), 0o600))
}

func (c *cluster) config(n int) string { return filepath.Join(c.dir, fmt.Sprintf("n%d.conf", n)) }

func (c *cluster) log(n int) string { return filepath.Join(c.dir, fmt.Sprintf("n%d.log", n)) }

// serve starts a server. If the test fails, serve logs the end of the server's log.
func (c *cluster) serve(n int) *exec.Cmd {
	c.t.Cleanup(func() {
		if log, err := os.ReadFile(c.log(n)); err == nil && c.t.Failed() {
			c.t.Logf("the log of server %d ends:\n%s", n, log[max(0, len(log)-2000):])
		}
	})
	return c.begin(exec.Command(c.server, "-c", c.config(n)))
}

// The method begin starts a process. The end of the test kills it.
func (c *cluster) begin(p *exec.Cmd) *exec.Cmd {
	require.NoError(c.t, testprogram.Start(p))
	c.t.Cleanup(func() { stop(p) })
	return p
}

func stop(p *exec.Cmd) {
	_ = p.Process.Kill() // Kill fails if the process has ended
	_ = p.Wait()
}

func (c *cluster) key(name string) string { return filepath.Join(c.dir, "keys", name+c.suffix) }

func (c *cluster) command(key string, args ...string) *exec.Cmd {
	p := exec.Command(c.nod, append(args, "--creds", c.key(key))...)
	p.Env = append(os.Environ(), "NOD_URL="+c.urls, "NOD_DATA="+c.dir)
	return p
}

// engine starts an engine as a process. The Go channel up gets the engine's first line of output (see the
// method says).
func (c *cluster) engine(replicas int) (p *exec.Cmd, up <-chan string) {
	p = c.command("engine", "engine", "--replicas", fmt.Sprint(replicas), "--store-creds", c.key("engine-store"))
	return p, c.says(p)
}

// The method says starts a process. The returned Go channel gets the first line of the process's stdout or,
// if the process ends without one, its whole stderr.
func (c *cluster) says(p *exec.Cmd) <-chan string {
	out, err := p.StdoutPipe()
	require.NoError(c.t, err)
	complaints, err := p.StderrPipe()
	require.NoError(c.t, err)
	said, complained := make(chan string, 1), make(chan string, 1)
	c.begin(p)
	go func() {
		all, _ := io.ReadAll(complaints) // if ReadAll fails, the text is incomplete
		complained <- string(all)
	}()
	go func() {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			line = <-complained
		}
		said <- line
	}()
	return said
}

// letsMeAnswer applies settings by which the user who runs the tests is an approver.
func (c *cluster) letsMeAnswer() { c.applies("{}") }

func (c *cluster) applies(settings string) {
	file := filepath.Join(c.dir, "s.json")
	require.NoError(c.t, os.WriteFile(file, rig.Apart(settings), 0o600))
	_, err := c.run("owner", "settings", "apply", file)
	require.NoError(c.t, err)
}

// pending returns the ids of the pending requests. If the command fails, it returns nil.
func (c *cluster) pending() (ids []string) {
	out, err := c.run("terminal", "pending", "--json")
	if err != nil {
		return nil // a server has ended, and the caller tries again
	}
	var rows []struct {
		ID string `json:"pending_id"`
	}
	require.NoError(c.t, json.Unmarshal([]byte(out), &rows))
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

// The method asks starts `nod ask`. The returned Go channel gets the decision that the command prints. If the
// command fails, the test fails and the Go channel is closed.
func (c *cluster) asks(id string) <-chan schemas.Decision {
	decided := make(chan schemas.Decision, 1)
	p := c.command("agent-local", "ask", "--session", "cluster", "--tool", "Frobnicate", "--id", id, "--json")
	go func() {
		defer close(decided)
		out, err := output(p)
		var d schemas.Decision
		if assert.NoError(c.t, err, id) && assert.NoError(c.t, json.Unmarshal([]byte(out), &d)) {
			decided <- d
		}
	}()
	return decided
}

func (c *cluster) run(key string, args ...string) (string, error) {
	return output(c.command(key, args...))
}

// The function output runs a command and returns its stdout. A returned error contains the command's stderr.
func output(p *exec.Cmd) (string, error) {
	var errs bytes.Buffer
	p.Stderr = &errs
	out, err := p.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, &errs)
	}
	return string(out), err
}

// jetStream connects to the stores with the engines' key. The function done ends the connection.
func (c *cluster) jetStream(url string) (js jetstream.JetStream, done func()) {
	key, err := nats.NkeyOptionFromSeed(filepath.Join(c.dir, "keys", "engine-store.nk"))
	require.NoError(c.t, err)
	nc, err := nats.Connect(url, key, nats.CustomInboxPrefix("_INBOX.engine-store"))
	require.NoError(c.t, err)
	js, err = jetstream.New(nc)
	require.NoError(c.t, err)
	return js, nc.Close
}

// leader returns the index in c.servers of the server that leads the stream with the records.
func (c *cluster) leader() int {
	js, done := c.jetStream(c.urls)
	defer done()
	stream, err := js.Stream(c.t.Context(), "KV_pending_permissions")
	require.NoError(c.t, err)
	return int(stream.CachedInfo().Cluster.Leader[1] - '0')
}

// Two engines run on three servers. One engine, and the server that leads the stream with the records, are
// killed while agents send requests. Every asker gets its decision.
func TestAClusterLosesAServerAndAnEngine(t *testing.T) {
	t.Parallel()
	requests := 20
	if *rig.Long {
		requests = 50
	} else {
		t.Log("20 requests; -long runs 50")
	}
	c := newCluster(t)
	first, up1 := c.engine(3)
	_, up2 := c.engine(3)
	for _, up := range []<-chan string{up1, up2} {
		require.Contains(t, <-up, "an engine is up")
	}
	c.letsMeAnswer()

	var all sync.WaitGroup
	for n := range requests {
		all.Go(func() {
			d := <-c.asks(fmt.Sprintf("request-%02d", n)) // in these ids, none is the beginning of another
			assert.Equal(t, schemas.Allowed, d.Outcome)
		})
	}
	require.Eventually(t, func() bool { return len(c.pending()) > requests/3 }, time.Minute, 50*time.Millisecond)
	stop(c.servers[c.leader()])
	stop(first)
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	deadline := time.After(2 * time.Minute)
	for {
		for _, id := range c.pending() {
			_, _ = c.run("terminal", "allow", id) // if the answer is lost, the request stays pending, and the test answers again
		}
		select {
		case <-done:
			return
		case <-deadline:
			t.Fatal("an asker still waits")
		default:
		}
	}
}

// Engines and connectors may start before their servers, and wait for them. Once the servers run, a person
// can answer a request.
func TestRolesStartBeforeTheirServers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out with -short: servers and roles as processes")
	}
	c := configure(t, 3)
	engine, up := c.engine(3)
	terminal := c.says(c.command("terminal", "connector", "terminal"))
	require.NotNil(t, engine.Process)
	for n := range 3 { // the servers start one after another
		c.servers = append(c.servers, c.serve(n))
	}
	require.Contains(t, <-up, "an engine is up")
	require.Contains(t, <-terminal, "the connector terminal is up")
	c.letsMeAnswer()
	decided := c.asks("early-bird")
	require.Eventually(t, func() bool { return len(c.pending()) == 1 }, time.Minute, 50*time.Millisecond)
	_, err := c.run("terminal", "allow", "early-bird")
	require.NoError(t, err)
	require.Equal(t, schemas.Allowed, (<-decided).Outcome)
}

// The only server is killed and started again. Askers continue to wait. While the server is down, an answer
// fails with an error; later answers reach the askers.
func TestAskersWaitThroughARestartOfTheBroker(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out with -short: a server and roles as processes")
	}
	c := configure(t, 1)
	c.servers = append(c.servers, c.serve(0))
	_, up := c.engine(1)
	require.Contains(t, <-up, "an engine is up")
	c.letsMeAnswer()
	first, second := c.asks("first-one"), c.asks("second-one")
	require.Eventually(t, func() bool { return len(c.pending()) == 2 }, time.Minute, 50*time.Millisecond)

	stop(c.servers[0])
	_, away := c.run("terminal", "deny", "second-one")
	require.ErrorContains(t, away, "nod: ", "the answer is not stored, and the command says so")
	c.servers[0] = c.serve(0)
	require.Eventually(t, func() bool { return len(c.pending()) == 2 }, time.Minute, 50*time.Millisecond)
	for id, decided := range map[string]<-chan schemas.Decision{"first-one": first, "second-one": second} {
		_, err := c.run("terminal", "allow", id)
		require.NoError(t, err)
		require.Equal(t, schemas.Allowed, (<-decided).Outcome, id)
	}
}
