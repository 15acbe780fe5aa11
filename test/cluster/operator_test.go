package cluster

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// onOperator starts a server in operator mode, and an engine.
func onOperator(t *testing.T) *cluster {
	t.Helper()
	c := configureKeys(t, 1, ".creds")
	c.servers = append(c.servers, c.serve(0))
	_, up := c.engine(1)
	require.Contains(t, <-up, "an engine is up")
	c.letsMeAnswer()
	return c
}

func (c *cluster) keys(args ...string) (out, said string) {
	c.t.Helper()
	p := c.command("owner", append([]string{"keys"}, args...)...)
	var stdout, stderr bytes.Buffer
	p.Stdout, p.Stderr = &stdout, &stderr
	require.NoError(c.t, p.Run(), "%s", &stderr)
	return stdout.String(), stderr.String()
}

// copied returns the content of a key file, as a thief or another machine has it.
func (c *cluster) copied(key string) []byte {
	c.t.Helper()
	file, err := os.ReadFile(c.key(key))
	require.NoError(c.t, err)
	return file
}

// dialed connects with a key file. If the server closes the connection, the connection stays closed.
func (c *cluster) dialed(file []byte) (*nats.Conn, error) {
	nc, err := nats.Connect(c.urls, nats.UserCredentialBytes(file), nats.NoReconnect(), nats.Timeout(30*time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err == nil {
		c.t.Cleanup(nc.Close)
	}
	return nc, err
}

func (c *cluster) connects(file []byte) *nats.Conn {
	c.t.Helper()
	nc, err := c.dialed(file)
	require.NoError(c.t, err)
	return nc
}

func (c *cluster) refuses(file []byte) {
	c.t.Helper()
	_, err := c.dialed(file)
	require.ErrorIs(c.t, err, nats.ErrAuthorization)
}

func (c *cluster) allowed(id string) {
	c.t.Helper()
	decided := c.asks(id)
	c.allows(id)
	require.Equal(c.t, schemas.Allowed, (<-decided).Outcome)
}

// The method allows allows a request at the terminal as soon as the request is pending.
func (c *cluster) allows(id string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		_, err := c.run("terminal", "allow", id)
		return err == nil
	}, time.Minute, 200*time.Millisecond, id)
}

// On a server in operator mode, an agent asks and a person answers. nod keys adds, rotates and revokes keys
// while the server runs, and an engine continues with its new key.
func TestNodOnServersInOperatorMode(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAServerInOperatorModeLearnsOfATokenService runs such servers")
	c := onOperator(t)
	c.allowed("first")
	c.verifiesTheLog(1)

	_, said := c.keys("add", "agent-ci")
	require.Contains(t, said, "in force", "no server has to be told")
	first := c.copied("agent-ci")
	running := c.connects(first)
	_, said = c.keys("rotate", "agent-ci", "--overlap", "1h")
	require.Contains(t, said, "until you run nod keys push after")
	second := c.copied("agent-ci")
	_, said = c.keys("push")
	require.Contains(t, said, "STORE, EDGE, OBSERVE, TOKENS: stored by n0")
	require.NoError(t, running.Flush(), "the overlap has not passed")
	c.connects(first)
	running = c.connects(second)
	_, said = c.keys("rotate", "agent-ci", "--overlap", "0s")
	require.Contains(t, said, "in force")
	require.Eventually(t, running.IsClosed, 30*time.Second, rig.Tick)
	c.refuses(second)

	third, other := c.copied("agent-ci"), c.connects(c.copied("agent-local"))
	running = c.connects(third)
	_, said = c.keys("revoke", "agent-ci")
	require.Contains(t, said, "in force")
	require.Eventually(t, running.IsClosed, 30*time.Second, rig.Tick)
	require.NoError(t, other.Flush(), "the connection of another key stays")
	for _, file := range [][]byte{first, second, third} {
		c.refuses(file)
	}

	c.keys("rotate", "engine", "--overlap", "0s")
	c.keys("rotate", "engine-store", "--overlap", "0s")
	c.allowed("second")
	c.verifiesTheLog(2)
	list, _ := c.keys("list")
	require.Contains(t, list, "jwt")
	require.NotContains(t, list, "agent-ci")

	stop(c.servers[0])
	c.servers[0] = c.serve(0)
	require.Eventually(t, func() bool { _, err := c.dialed(c.copied("agent-local")); return err == nil }, 30*time.Second, rig.Tick)
	c.refuses(third) // the restarted server's configuration is older than the revocation, but the server still refuses the key
	c.allowed("third")
}

// verifiesTheLog starts an engine, which signs a checkpoint at its start. It then verifies the log, and
// requires that the given number of keys has signed the checkpoints.
func (c *cluster) verifiesTheLog(keys int) {
	c.t.Helper()
	_, up := c.engine(1)
	require.Contains(c.t, <-up, "an engine is up")
	require.Eventually(c.t, func() bool {
		out, err := c.run("owner-store", "log", "verify", "--json")
		var report struct{ Keys []string }
		return err == nil && json.Unmarshal([]byte(out), &report) == nil && len(report.Keys) == keys
	}, 30*time.Second, 200*time.Millisecond)
}

// nod keys is killed at random moments. After the next revocation, the server accepts no version of the
// revoked key.
func TestRevocationsSurviveKillNine(t *testing.T) {
	t.Parallel()
	if !*rig.Long {
		t.Skip("left out without -long: it starts a hundred processes")
	}
	c := configureKeys(t, 1, ".creds")
	c.servers = append(c.servers, c.serve(0))
	require.Eventually(t, func() bool { _, err := c.dialed(c.copied("agent-local")); return err == nil }, 30*time.Second, rig.Tick)
	begun := time.Now()
	c.keys("push")
	life := time.Since(begun)
	for range 20 {
		c.keys("add", "agent-ci")
		file := c.copied("agent-ci")
		for _, args := range [][]string{{"rotate", "agent-ci", "--overlap", "1h"}, {"revoke", "agent-ci"}} {
			p := c.command("owner", append([]string{"keys"}, args...)...)
			require.NoError(t, p.Start())
			<-time.After(rand.N(life))
			_ = p.Process.Kill() // Kill fails if the process has ended
			_ = p.Wait()
		}
		p := c.command("owner", "keys", "revoke", "agent-ci")
		out, err := p.CombinedOutput()
		if err != nil { // the killed command has noted the revocation, and may not have told the servers
			require.Contains(t, string(out), "no key here")
			c.keys("push")
		}
		c.refuses(file)
	}
}

// nod keys says what to do if it has no server address, or if the servers do not trust its operator.
func TestKeysOfOperatorModeSayWhatToDo(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	does := func(args ...string) string {
		_, stderr, code := m.Run(args...)
		require.Zero(t, code, stderr)
		return stderr
	}
	fails := func(args ...string) string {
		_, stderr, code := m.Run(args...)
		require.Equal(t, 1, code)
		require.Equal(t, 1, strings.Count(strings.TrimSpace(stderr), "\n")+1, stderr)
		return stderr
	}
	does("keys", "add", "agent-ci", "--jwt")
	require.Contains(t, does("keys", "revoke", "agent-ci"), "nod keys push")
	require.Contains(t, fails("keys", "push"), "--nats-url")

	does("keys", "config")
	require.Contains(t, fails("keys", "revoke", "engine"), "nod keys rotate engine")
	require.NoError(t, os.Remove(filepath.Join(m.Dir, "keys", "engine.creds"))) // the engine's key file is missing, as if it was lost or moved to another machine
	for _, verb := range []string{"rotate", "add"} {
		require.Contains(t, fails("keys", verb, "engine"), "nod keys revoke engine")
	}
	does("keys", "revoke", "engine")
	does("keys", "add", "engine")

	require.Contains(t, fails("up", "-q"), "operator mode")
	require.Contains(t, fails("invite", "laptop"), "nod keys add agent-laptop")
	c := configureKeys(t, 1, ".creds")
	c.servers = append(c.servers, c.serve(0))
	require.Eventually(t, func() bool { _, err := c.dialed(c.copied("agent-local")); return err == nil }, 30*time.Second, rig.Tick)
	require.Contains(t, fails("keys", "push", "--nats-url", c.urls), "do not trust this directory's operator")

	plain := t.TempDir()
	does("keys", "add", "agent-ci", "--data", plain)
	require.Contains(t, fails("keys", "push", "--data", plain), "plain keys")
	require.Contains(t, fails("keys", "config", "--jwt", "--data", plain), "plain keys")
	require.Contains(t, fails("keys", "config", "--nsc", filepath.Join(plain, "x"), "--data", plain), "--jwt")
}
