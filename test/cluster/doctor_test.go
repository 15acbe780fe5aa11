package cluster

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/test/internal/rig"
)

// With an observer's key, nod doctor --cluster finds four faults: a missing engine, a missing server, a store
// with a changed configuration, and stores with different numbers of replicas.
func TestTheClusterIsExamined(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first, up := c.engine(3)
	require.Contains(t, <-up, "an engine is up")
	_, up = c.engine(3)
	require.Contains(t, <-up, "an engine is up")

	c.examines(true, "3 replicas are current", "2 run", "all have read the same settings")
	// A hanging engine counts as missing, because it does not reply.
	require.NoError(t, first.Process.Signal(syscall.SIGSTOP))
	c.examines(true, "one runs: if it stops")
	require.NoError(t, first.Process.Signal(syscall.SIGCONT))
	c.examines(true, "2 run")
	stop(first)
	c.examines(true, "one runs: if it stops")

	// One server has an older accounts.conf without the observer's key.
	accounts := c.withoutKey(roles.ID{Role: roles.Observer}, 1)
	c.examines(false, "the NATS server at "+strings.Split(c.urls, ",")[1]+" refused the key of observer", "reload it")
	c.reloads(1, accounts)
	c.examines(true, "n1 at "+strings.Split(c.urls, ",")[1]+" runs")

	js, done := c.jetStream(c.urls)
	defer done()
	change := func(name string, edit func(*jetstream.StreamConfig)) {
		s, err := js.Stream(t.Context(), name)
		require.NoError(t, err)
		config := s.CachedInfo().Config
		edit(&config)
		_, err = js.UpdateStream(t.Context(), config)
		require.NoError(t, err)
	}
	change("KV_shown_prompts", func(config *jetstream.StreamConfig) { config.Discard = jetstream.DiscardNew })
	c.examines(false, "shown_prompts its configuration differs from the one that nod makes in discard")
	change("KV_shown_prompts", func(config *jetstream.StreamConfig) { config.Discard, config.Replicas = jetstream.DiscardOld, 1 })
	c.examines(false, "different numbers of replicas: 1 for shown_prompts; 3 for pending_permissions")

	leader := c.leader()
	stop(c.servers[(leader+1)%3])
	c.examines(false, "no NATS server answers at "+strings.Split(c.urls, ",")[(leader+1)%3], "n"+string('0'+rune((leader+1)%3))+" is not current")

	_, err := c.run("observer", "doctor", "--cluster", "--prompt")
	require.ErrorContains(t, err, "run it once for each")
}

// An older nats-server is named with its version.
func TestAnOlderServerIsNamed(t *testing.T) {
	program := os.Getenv("NOD_TEST_OLD_NATS_SERVER")
	if program == "" {
		t.Skip("NOD_TEST_OLD_NATS_SERVER does not name an older nats-server: see CONTRIBUTING.md")
	}
	t.Parallel()
	c := configure(t, 2)
	for n, server := range []string{c.server, program} {
		c.server = server
		c.servers = append(c.servers, c.serve(n))
	}
	urls := strings.Split(c.urls, ",")
	c.examines(false, "n0 at "+urls[0]+" runs, version", "n1 at "+urls[1]+" runs nats-server 2.12.0, and nod needs 2.15 or newer: upgrade it")
}

// withoutKey removes a key from server n's configuration and makes the server reload it. It returns the
// earlier configuration.
func (c *cluster) withoutKey(id roles.ID, n int) (was []byte) {
	c.t.Helper()
	keys, err := roles.OpenKeys(c.dir)
	require.NoError(c.t, err)
	user, err := keys.User(id)
	require.NoError(c.t, err)
	another, err := nkeys.CreateUser()
	require.NoError(c.t, err)
	public, err := another.PublicKey()
	require.NoError(c.t, err)
	was, err = os.ReadFile(c.config(n))
	require.NoError(c.t, err)
	c.reloads(n, bytes.ReplaceAll(was, []byte(user.PublicKey), []byte(public)))
	return was
}

// reloads gives server n a new configuration, which the server reads without a restart.
func (c *cluster) reloads(n int, config []byte) {
	c.t.Helper()
	require.NoError(c.t, os.WriteFile(c.config(n), config, 0o600))
	require.NoError(c.t, c.servers[n].Process.Signal(syscall.SIGHUP))
}

// examines repeats nod doctor --cluster until its output contains these texts. The command must succeed
// exactly if healthy is true.
func (c *cluster) examines(healthy bool, texts ...string) {
	c.t.Helper()
	var out string
	found := func() bool {
		var err error
		out, err = c.run("observer", "doctor", "--cluster")
		flat := strings.Join(strings.Fields(out), " ")
		missing := slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(flat, text) })
		return (err == nil) == healthy && !missing
	}
	if !assert.Eventually(c.t, found, time.Minute, rig.Tick) {
		c.t.Fatalf("%q are not in:\n%s", texts, out)
	}
}
