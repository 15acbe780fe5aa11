package cluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/test/internal/rig"
)

// With an observer's key, nod doctor --cluster finds a missing engine, a store with a changed configuration, and
// a server that is down.
func TestTheClusterIsExamined(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first, up := c.engine(3)
	_, up2 := c.engine(3)
	require.Contains(t, <-up, "an engine is up")
	require.Contains(t, <-up2, "an engine is up")
	js, done := c.jetStream(c.urls)
	defer done()

	c.examines(true, "3 replicas are current", "2 run", "all have read the same settings")
	stop(first)
	c.changes(js, "KV_shown_prompts", func(config *jetstream.StreamConfig) { config.Discard = jetstream.DiscardNew })
	lost := (c.leader() + 1) % 3
	stop(c.servers[lost])
	c.examines(false, "one runs: if it stops", "shown_prompts its configuration differs from the one that nod makes in discard",
		"no NATS server answers at "+strings.Split(c.urls, ",")[lost], fmt.Sprintf("n%d is not current", lost))
	_, err := c.run("observer", "doctor", "--cluster", "--prompt")
	require.ErrorContains(t, err, "run it once for each")
}

// nod doctor --cluster also finds an engine that hangs, a server without the observer's key, and stores with
// different numbers of replicas. It notices the end of each of these faults.
func TestTheClusterIsExaminedAgain(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestTheClusterIsExamined finds other faults")
	c := newCluster(t)
	first, up := c.engine(3)
	_, up2 := c.engine(3)
	require.Contains(t, <-up, "an engine is up")
	require.Contains(t, <-up2, "an engine is up")
	require.NoError(t, first.Process.Signal(syscall.SIGSTOP)) // an engine that does not reply counts as missing
	c.examines(true, "one runs: if it stops")
	require.NoError(t, first.Process.Signal(syscall.SIGCONT))
	c.examines(true, "2 run")

	// One server gets an older accounts.conf, which lacks the observer's key.
	accounts := c.withoutKey(roles.ID{Role: roles.Observer}, 1)
	c.examines(false, "the NATS server at "+strings.Split(c.urls, ",")[1]+" refused the key of observer", "reload it")
	c.reloads(1, accounts)
	c.examines(true, "n1 at "+strings.Split(c.urls, ",")[1]+" runs")

	js, done := c.jetStream(c.urls)
	defer done()
	c.changes(js, "KV_shown_prompts", func(config *jetstream.StreamConfig) { config.Replicas = 1 })
	c.examines(false, "different numbers of replicas: 1 for shown_prompts; 3 for pending_permissions")
}

// One of two engines loses the right to read the settings: nod doctor --cluster finds that it is behind and,
// later, that it allows nothing.
func TestAnEngineThatIsBehindIsNamed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out with -short: a server and engines as processes")
	}
	c := configure(t, 1)
	earlier, config := c.rotatesStoreKey()
	c.servers = append(c.servers, c.serve(0))
	behind := c.command("engine", "engine", "--replicas", "1", "--store-creds", earlier)
	require.Contains(t, <-c.says(behind), "an engine is up")
	_, up := c.engine(1)
	require.Contains(t, <-up, "an engine is up")
	c.letsMeAnswer()
	c.examines(true, "2 run", "all have read the same settings")

	const readsSettings = `"$JS.API.DIRECT.GET.KV_permission_settings.>", "$JS.API.STREAM.MSG.GET.KV_permission_settings"`
	c.reloads(0, bytes.Replace(config, []byte(`"$JS.API.STREAM.PURGE.permission_log"`), []byte(`"$JS.API.STREAM.PURGE.permission_log", `+readsSettings), 1))
	require.Eventually(t, func() bool {
		log, err := os.ReadFile(c.log(0))
		return err == nil && strings.Contains(string(log), "Reloaded server configuration")
	}, time.Minute, rig.Tick)
	js, done := c.jetStream(c.urls)
	defer done()
	_, err := js.Publish(t.Context(), "$KV.permission_settings.settings", []byte(`{"approvers": {"people": []}}`))
	require.NoError(t, err)
	c.examines(false, "these have not read the newest settings, freezes or sessions: ")
	c.examines(false, "these cannot read the settings or freezes, and allow nothing: ")
	c.reloads(0, config)
	c.examines(true, "all have read the same settings")
}

// rotatesStoreKey replaces the engines' key for the stores. It returns the file of the earlier key, which is
// still accepted, and the server's configuration, in which the earlier key is the first one.
func (c *cluster) rotatesStoreKey() (earlier string, config []byte) {
	c.t.Helper()
	earlier = filepath.Join(c.dir, "earlier.nk")
	require.NoError(c.t, os.WriteFile(earlier, c.copied("engine-store"), 0o600))
	keys, err := roles.OpenKeys(c.dir)
	require.NoError(c.t, err)
	id := roles.ID{Role: roles.EngineStore}
	first, err := keys.User(id)
	require.NoError(c.t, err)
	second, _, err := keys.Rotate(id, time.Hour)
	require.NoError(c.t, err)
	c.configures(0)
	config, err = os.ReadFile(c.config(0))
	require.NoError(c.t, err)
	if bytes.Index(config, []byte(first.PublicKey)) > bytes.Index(config, []byte(second.PublicKey)) {
		swap := strings.NewReplacer(first.PublicKey, second.PublicKey, second.PublicKey, first.PublicKey)
		config = []byte(swap.Replace(string(config)))
		require.NoError(c.t, os.WriteFile(c.config(0), config, 0o600))
	}
	return earlier, config
}

// nod doctor --cluster names the server whose clock is wrong, even if this server leads no store.
func TestAWrongClockOfAServerIsNamed(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "it builds nats-server and the standard library once more")
	overlay, err := testprogram.SteppedClock(filepath.Join(t.TempDir(), "overlay"))
	require.NoError(t, err)
	c := configure(t, 3)
	for n := range 2 {
		c.servers = append(c.servers, c.serve(n))
	}
	stepped := filepath.Join(t.TempDir(), "nats-server")
	require.NoError(t, testprogram.Build("github.com/nats-io/nats-server/v2", stepped, "-overlay", overlay))
	clock := filepath.Join(c.dir, "clock")
	require.NoError(t, os.WriteFile(clock, []byte("-600"), 0o600))
	p := exec.Command(stepped, "-c", c.config(2))
	p.Env = append(os.Environ(), testprogram.ClockFile+"="+clock)
	c.servers = append(c.servers, c.begin(p))
	_, up := c.engine(3)
	require.Contains(t, <-up, "an engine is up")
	c.examines(false, "n0, n1, n2 are at most 10m0.", "n2 is 10m0s behind this machine")
	require.NoError(t, os.WriteFile(clock, []byte("0"), 0o600))
	c.examines(true, "the clocks of this machine and of n0, n1, n2 are at most")
}

// changes edits the configuration of a stream.
func (c *cluster) changes(js jetstream.JetStream, name string, edit func(*jetstream.StreamConfig)) {
	c.t.Helper()
	s, err := js.Stream(c.t.Context(), name)
	require.NoError(c.t, err)
	config := s.CachedInfo().Config
	edit(&config)
	_, err = js.UpdateStream(c.t.Context(), config)
	require.NoError(c.t, err)
}

// nod doctor --cluster names an older nats-server, with its version.
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

// The method reloads gives server n a new configuration, which the server reads without a restart.
func (c *cluster) reloads(n int, config []byte) {
	c.t.Helper()
	require.NoError(c.t, os.WriteFile(c.config(n), config, 0o600))
	require.NoError(c.t, c.servers[n].Process.Signal(syscall.SIGHUP))
}

// The method examines repeats nod doctor --cluster until its output contains the given texts. The command
// must succeed if healthy is true, and fail otherwise.
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
