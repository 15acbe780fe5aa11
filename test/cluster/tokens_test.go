package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/agents/tokens/tokenstest"
	"github.com/nodbus/nod/test/internal/rig"
)

// job returns a command of a CI job, which has a token of an issuer and no key.
func (c *cluster) job(token string, args ...string) *exec.Cmd {
	file := filepath.Join(c.t.TempDir(), "token")
	require.NoError(c.t, os.WriteFile(file, []byte(token), 0o600))
	p := exec.Command(c.nod, args...)
	p.Env = append(os.Environ(), "NOD_URL="+c.urls, "NOD_DATA="+c.t.TempDir(), "NOD_CREDS=", "NOD_TOKEN_FILE="+file, "NOD_AGENT=ci-web")
	return p
}

// A NATS server asks the token services about clients without a key. Each of two services can admit a job,
// even with a long token and after the server has reloaded its configuration. Without a service, jobs are
// refused and keys still work.
func TestOwnServersAdmitJobsByTheirTokens(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out with -short: a server, an engine and token services as processes")
	}
	for mode, suffix := range map[string]string{"nkeys": ".nk", "operator": ".creds"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			admitsJobs(t, configureKeys(t, 1, suffix, roles.ID{Role: roles.TokenService}))
		})
	}
}

func admitsJobs(t *testing.T, c *cluster) {
	issuer := tokenstest.New(t)
	server := c.serve(0)
	c.servers = append(c.servers, server)
	_, up := c.engine(1)
	require.Contains(t, <-up, "an engine is up")
	c.applies(rig.Everybody)
	jobs := fmt.Sprintf(`{"jobs": [{"issuer": %q, "audience": "nod", "match": {"repository_id": "7"}, "agent": "ci-web"}]}`, issuer.URL)
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "tokens.json"), []byte(jobs), 0o600))
	lookup := []string{"ask", "--session", "ci", "--tool", "Lookup", "--json"}
	refused := func() {
		t.Helper()
		out, err := c.job(issuer.Token(nil), lookup...).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "no nod token-service runs")
		_, err = c.run("agent-local", "ask", "--session", "local", "--tool", "Lookup")
		require.NoError(t, err)
	}

	refused()
	var services [2]*exec.Cmd
	for i := range services {
		services[i] = c.command("token-service", "token-service")
		require.Contains(t, <-c.says(services[i]), "the token service is up")
	}
	admitted := func() {
		t.Helper()
		long := issuer.Token(map[string]any{"groups": strings.Repeat("x", 6000)})
		for _, token := range []string{issuer.Token(nil), long} {
			out, err := c.job(token, lookup...).CombinedOutput()
			require.NoError(t, err, string(out))
			require.Contains(t, string(out), `"outcome": "allowed"`)
		}
	}
	admitted()
	stop(services[0])
	admitted()
	require.NoError(t, server.Process.Signal(syscall.SIGHUP)) // nats-server --signal reload sends the same signal
	admitted()
	stop(services[1])
	refused()
	log, err := os.ReadFile(c.log(0))
	require.NoError(t, err)
	require.NotContains(t, string(log), strings.Split(issuer.Token(nil), ".")[0], "no token reaches the server's log")
	require.NotContains(t, string(log), "[ERR] Authorization callout", "the configuration is whole")
}

// A server in operator mode accepts a new token service after a reload of its configuration and nod keys
// push. nod keys revoke suffices to revoke the service, and closes the connections of clients with tokens.
func TestAServerInOperatorModeLearnsOfATokenService(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out with -short: a server and a token service as processes")
	}
	issuer := tokenstest.New(t)
	c := configureKeys(t, 1, ".creds")
	c.servers = append(c.servers, c.serve(0))
	require.Eventually(t, func() bool { _, err := c.dialed(c.copied("agent-local")); return err == nil }, 30*time.Second, rig.Tick)
	jobs := fmt.Sprintf(`{"jobs": [{"issuer": %q, "audience": "nod", "match": {"repository_id": "7"}, "agent": "ci-web"}]}`, issuer.URL)
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "tokens.json"), []byte(jobs), 0o600))
	_, said := c.keys("add", "token-service")
	require.Contains(t, said, "nod keys push")
	c.configures(0)
	require.NoError(t, c.servers[0].Process.Signal(syscall.SIGHUP))
	c.keys("push")
	require.Contains(t, <-c.says(c.command("token-service", "token-service")), "the token service is up")
	join := func() (nc *nats.Conn, err error) {
		nc, err = nats.Connect(c.urls, nats.UserInfo("ci-web", issuer.Token(nil)), nats.NoReconnect(), nats.Timeout(30*time.Second))
		if err == nil {
			t.Cleanup(nc.Close)
		}
		return nc, err
	}
	var nc *nats.Conn
	require.Eventually(t, func() (ok bool) { // the server needs a moment for the reload
		var err error
		nc, err = join()
		return err == nil
	}, 30*time.Second, rig.Tick)
	_, said = c.keys("revoke", "token-service")
	require.Contains(t, said, "TOKENS")
	require.Contains(t, said, "in force")
	require.Eventually(t, nc.IsClosed, 30*time.Second, rig.Tick)
	_, err := join()
	require.ErrorIs(t, err, nats.ErrAuthorization)
}
