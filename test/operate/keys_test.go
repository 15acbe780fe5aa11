package operate

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/test/internal/rig"
)

// keyOf copies the key with the given id to a file that no nod command removes.
func keyOf(m *rig.Machine, id roles.ID) (file string) {
	m.T.Helper()
	seed, err := os.ReadFile(filepath.Join(m.Dir, "keys", id.String()+".nk"))
	require.NoError(m.T, err)
	file = filepath.Join(m.T.TempDir(), "key")
	require.NoError(m.T, os.WriteFile(file, seed, 0o600))
	return file
}

// The function dial connects with a key. If the server closes the connection, the connection stays closed.
func dial(m *rig.Machine, file string) (*nats.Conn, error) {
	m.T.Helper()
	run, err := bus.ReadRun(m.Dir)
	require.NoError(m.T, err)
	key, err := nats.NkeyOptionFromSeed(file)
	require.NoError(m.T, err)
	nc, err := nats.Connect(run.URL, key, nats.NoReconnect(), nats.Timeout(30*time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err == nil {
		m.T.Cleanup(nc.Close)
	}
	return nc, err
}

func connects(m *rig.Machine, file string) *nats.Conn {
	m.T.Helper()
	nc, err := dial(m, file)
	require.NoError(m.T, err)
	return nc
}

func refused(m *rig.Machine, file string) {
	m.T.Helper()
	_, err := dial(m, file)
	require.ErrorIs(m.T, err, nats.ErrAuthorization)
}

func does(m *rig.Machine, args ...string) (stderr string) {
	m.T.Helper()
	_, stderr, code := m.Run(args...)
	require.Zero(m.T, code, stderr)
	return stderr
}

var ci = roles.AgentID("ci")

// A running nod accepts an added key at once. When nod keys revoke has ended, the connections of the revoked
// key are closed, and nod refuses this key even after a restart. Other connections stay open.
func TestARevokedKeyIsOut(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	require.Contains(t, does(m, "keys", "add", "agent-ci"), "in force")
	file := keyOf(m, ci)
	revoked, other := connects(m, file), connects(m, keyOf(m, roles.AgentID("local")))
	require.Contains(t, does(m, "keys", "revoke", "agent-ci"), "in force")
	require.Eventually(t, revoked.IsClosed, 30*time.Second, rig.Tick)
	require.NoError(t, other.Flush(), "the connection of another key stays")
	refused(m, file)
	_, stderr, code := m.Run("keys", "revoke", "agent-ci")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no key here")
	_, stderr, code = m.Run("keys", "revoke", "engine")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "rotate engine")
	m.Asked(t, "after-revoking", "--session", "S", "--tool", "Frobnicate")

	m.Kill()
	m.StartNod()
	refused(m, file)
	require.Contains(t, does(m, "keys", "add", "agent-ci"), "in force", "the name may have a new key")
	refused(m, file)
}

// After a rotation, the new key works at once, and the earlier key works until its overlap ends,
// even after a restart. The parts of nod itself use their earlier keys until nod is started again.
func TestARotatedKeyOverlaps(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	does(m, "keys", "add", "agent-ci")
	file := keyOf(m, ci)
	running := connects(m, file)
	require.Contains(t, does(m, "keys", "rotate", "agent-ci", "--overlap", "1h"), "accepted until")
	require.NoError(t, running.Flush())
	require.NotEqual(t, read(t, file), read(t, keyOf(m, ci)))
	connects(m, keyOf(m, ci))
	m.Kill()
	m.StartNod()
	connects(m, file)

	second := keyOf(m, ci)
	running = connects(m, second)
	does(m, "keys", "rotate", "agent-ci", "--overlap", "1s")
	require.Eventually(t, running.IsClosed, 30*time.Second, rig.Tick, "the overlap ends")
	refused(m, second)
	connects(m, keyOf(m, ci))

	engine := keyOf(m, roles.ID{Role: roles.Engine})
	require.Contains(t, does(m, "keys", "rotate", "engine", "--overlap", "0s"), "started again")
	does(m, "keys", "rotate", "engine-store", "--overlap", "0s")
	m.Asked(t, "while-rotated", "--session", "S", "--tool", "Frobnicate")
	connects(m, engine)
	m.Kill()
	m.StartNod()
	m.Asked(t, "after-restart", "--session", "S", "--tool", "Frobnicate")
	refused(m, engine)
	does(m, "log", "verify") // the earlier key's checkpoints still count

	does(m, "keys", "revoke", "agent-ci")
	refused(m, file)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// nod keys is killed at random moments. A connection with an earlier key survives each rotation,
// each key works until a command revokes it, and the next command finishes the interrupted work.
func TestKeysSurviveKillNine(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	does(m, "keys", "add", "agent-ci")
	running := connects(m, keyOf(m, ci))
	begun := time.Now()
	does(m, "keys", "rotate", "agent-ci")
	life := time.Since(begun)
	keys, err := roles.OpenKeys(m.Dir)
	require.NoError(t, err)
	for range 12 {
		c := m.Command("keys", "rotate", "agent-ci")
		require.NoError(t, c.Start())
		<-time.After(rand.N(life))
		_ = c.Process.Kill() // Kill fails if the process has ended
		_ = c.Wait()
		_, err := keys.Users()
		require.NoError(t, err)
		require.NoError(t, running.Flush())
	}
	does(m, "keys", "rotate", "agent-ci")
	require.NoError(t, running.Flush())
	connects(m, keyOf(m, ci))

	file := keyOf(m, ci)
	c := m.Command("keys", "revoke", "agent-ci")
	require.NoError(t, c.Start())
	<-time.After(rand.N(life))
	_ = c.Process.Kill()
	_ = c.Wait()
	_, stderr, code := m.Run("keys", "revoke", "agent-ci")
	if code != 0 { // the killed command had already removed the whole key
		require.Contains(t, stderr, "no key here")
	}
	require.Eventually(t, running.IsClosed, 30*time.Second, rig.Tick)
	require.Eventually(t, func() bool { _, err := dial(m, file); return err != nil }, 30*time.Second, rig.Tick)
	m.Kill()
	m.StartNod()
	refused(m, file)
}

// If nod is not running, nod keys says what to do on other servers.
func TestKeysOfOtherServersSayWhatToChange(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	require.Contains(t, does(m, "keys", "add", "agent-ci"), "nats-server --signal reload")
	stdout, stderr, code := m.Run("keys", "rotate", "agent-ci")
	require.Zero(t, code, stderr)
	require.NotEmpty(t, stdout)
	config, stderr, code := m.Run("keys", "config")
	require.Zero(t, code)
	require.Contains(t, stderr, "the earlier key of agent-ci is in the text until")
	require.Equal(t, 2, strings.Count(config, "# agent-ci\n"))
	require.Contains(t, does(m, "keys", "revoke", "agent-ci"), "nats-server --signal reload")
	config, _, _ = m.Run("keys", "config")
	require.NotContains(t, config, "# agent-ci\n")
}
