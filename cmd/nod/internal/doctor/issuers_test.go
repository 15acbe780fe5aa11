package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/agents/tokens"
	"github.com/nodbus/nod/connectors/agents/tokens/tokenstest"
)

var theTokenService = roles.ID{Role: roles.TokenService}

// The doctor reads the keys of each issuer of tokens. It distinguishes a server that does not ask a token
// service from a token service that does not answer.
func TestTheTokenServiceIsChecked(t *testing.T) {
	issuer, dir := tokenstest.New(t), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokens.json"), fmt.Appendf(nil,
		`{"jobs": [{"issuer": %q, "audience": "nod", "match": {"repository": "acme/web"}, "agent": "ci-web"}]}`, issuer.URL), 0o600))
	says(t, tokenService(t.Context(), options(dir)), Note, "no token service has a key")
	keys, err := roles.OpenKeys(dir)
	require.NoError(t, err)
	require.NoError(t, keys.Ensure(theTokenService))

	run(t, dir, `{}`)
	found := throughBus(t.Context(), options(dir))
	says(t, found, OK, "the keys of "+issuer.URL+" can be read")
	says(t, found, Wrong, "no token service answers the server")
	conn, err := bus.Join(t.Context(), bus.Place{DataDir: dir}, theTokenService, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	admit, err := keys.AdmitKeys()
	require.NoError(t, err)
	settings, err := tokens.Read(filepath.Join(dir, "tokens.json"))
	require.NoError(t, err)
	service, err := tokens.New(settings, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	stop, err := conn.AdmitAgents(admit, service.Check)
	require.NoError(t, err)
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, conn.Flush(ctx))
	found = throughBus(t.Context(), options(dir))
	says(t, found, OK, "a token service answers the server")

	issuer.Reply(http.StatusServiceUnavailable)
	found = throughBus(t.Context(), options(dir))
	says(t, found, Wrong, "the description of "+issuer.URL+" cannot be read: 503")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokens.json"), []byte("{"), 0o600))
	says(t, throughBus(t.Context(), options(dir)), Wrong, "tokens.json: not the settings of a token service")
	oneLineEach(t, found)
}

// A server that was started before the token service had a key does not know that key.
func TestAServerThatAsksNoTokenServiceIsNamed(t *testing.T) {
	dir := t.TempDir()
	keys, err := roles.OpenKeys(dir)
	require.NoError(t, err)
	run(t, dir, `{}`)
	require.NoError(t, keys.Ensure(theTokenService))
	says(t, tokenService(t.Context(), options(dir)), Wrong, "the server does not know the key of the token service: give the servers")
}

// If the issuer of logins fails a check, the doctor names the fault and the remedy.
func TestTheIssuerOfLoginsIsChecked(t *testing.T) {
	issuer, dir := tokenstest.New(t), t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("hunter2"), 0o600))
	run(t, dir, fmt.Sprintf(`{"connectors": {"web": {"public_url": "https://nod.example.com", "oidc": {"issuer": %q, "client_id": "nod", "client_secret_file": %q}}},
		"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]}]}}`, issuer.URL, secret))
	found := throughBus(t.Context(), options(dir))
	says(t, found, OK, issuer.URL+" is the issuer of its discovery document, and its keys can be read")
	says(t, found, Wrong, "does not accept the client nod with the redirect URI https://nod.example.com/login/oidc/callback (404 Not Found): register the redirect URI there")
	oneLineEach(t, found)
	issuer.Reply(http.StatusBadGateway)
	says(t, throughBus(t.Context(), options(dir)), Wrong, "discovery document")
	require.NoError(t, os.Remove(secret))
	says(t, throughBus(t.Context(), options(dir)), Wrong, "client_secret_file")
}

func oneLineEach(t *testing.T, found []Finding) {
	t.Helper()
	for _, f := range found {
		assert.False(t, strings.ContainsAny(f.What+f.Do, "\n"), "%+v", f)
		assert.NotContains(t, f.What+f.Do, "hunter2")
	}
}
