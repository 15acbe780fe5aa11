package tokens_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/agents/tokens"
	"github.com/nodbus/nod/connectors/agents/tokens/tokenstest"
)

// A NATS server refuses the bearer of an invalid token, with plain keys and in operator mode.
func TestServersRefuseInvalidTokens(t *testing.T) {
	for mode, start := range map[string]func(*testing.T) (string, *roles.Keys){"nkeys": plainServer, "operator": operatorServer} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			i, other := tokenstest.New(t), tokenstest.New(t)
			url, keys := start(t)
			admits(t, url, keys, service(t, i, web))
			agent := roles.AgentID("ci-web")
			join := func(token string) error {
				nc, err := nats.Connect(url, nats.UserInfo(agent.Name, token), nats.CustomInboxPrefix(agent.InboxPrefix()), nats.Timeout(10*time.Second))
				if err == nil {
					nc.Close()
				}
				return err
			}
			require.NoError(t, join(i.Token(nil)))
			for name, token := range invalidTokens(t, i, other) {
				require.ErrorIs(t, join(token), nats.ErrAuthorization, name)
			}
			require.NoError(t, join(i.Token(nil)))
		})
	}
}

var tokenService = roles.ID{Role: roles.TokenService}

// admits runs a token service on a server.
func admits(t *testing.T, url string, keys *roles.Keys, s *tokens.Service) {
	t.Helper()
	conn, err := bus.Connect(t.Context(), bus.Options{URL: url, Creds: keys.Path(tokenService), Inbox: tokenService.InboxPrefix(), Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	admit, err := keys.AdmitKeys()
	require.NoError(t, err)
	stop, err := conn.AdmitAgents(admit, s.Check)
	require.NoError(t, err)
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, conn.Flush(ctx))
}

func plainServer(t *testing.T) (url string, keys *roles.Keys) {
	keys, err := roles.OpenKeys(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, keys.Ensure(tokenService))
	users, err := keys.Users()
	require.NoError(t, err)
	return serve(t, roles.Config{Users: users, Admitting: users}.String()), keys
}

func operatorServer(t *testing.T) (url string, keys *roles.Keys) {
	dir := t.TempDir()
	keys, err := roles.OpenKeys(dir)
	require.NoError(t, err)
	require.NoError(t, keys.ForOperator())
	require.NoError(t, keys.Ensure(tokenService))
	accounts, err := keys.AccountJWTs(time.Now())
	require.NoError(t, err)
	return serve(t, keys.OperatorConfig(accounts, filepath.Join(dir, "accounts"))), keys
}

func serve(t *testing.T, config string) (url string) {
	opts := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true}
	require.NoError(t, opts.ProcessConfigString(fmt.Sprintf("jetstream { store_dir: %q }\n%s", t.TempDir(), config)))
	ns, err := server.NewServer(opts)
	require.NoError(t, err)
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	require.True(t, ns.ReadyForConnections(10*time.Second))
	return ns.ClientURL()
}
