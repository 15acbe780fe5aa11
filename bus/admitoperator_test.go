package bus_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
)

// In operator mode, a running server follows the revocation of the token service, and later the addition of
// a new token service. After the revocation, the server closes the connections that a token service has
// admitted, and admits no client as the sentinel.
func TestAServerInOperatorModeFollowsTheTokenService(t *testing.T) {
	t.Parallel()
	a := startAdmitting(t, operatorMode)
	stop := a.serve(byName)
	owner := a.as(asOwner)
	nc, err := a.join("ada", "ada's token", nats.NoReconnect())
	require.NoError(t, err)
	stolen, err := a.keys.AdmitKeys()
	require.NoError(t, err)

	require.NoError(t, a.keys.Revoke(asTokenService))
	a.pushes(roles.Pushed()...)
	require.Eventually(t, nc.IsClosed, 10*time.Second, time.Millisecond)
	_, err = a.join("ada", "ada's token")
	require.ErrorIs(t, err, nats.ErrAuthorization)
	_, err = nats.Connect(a.url)
	require.ErrorIs(t, err, nats.ErrAuthorization)
	_, err = a.stolenIssuer(stolen)
	require.ErrorIs(t, err, nats.ErrAuthorization)
	require.NoError(t, owner.Flush(), "connections of keys stay open")
	stop()

	require.NoError(t, a.keys.Ensure(asTokenService))
	a.pushes(roles.Pushed()...)
	a.serve(byName)
	nc, err = a.join("ada", "ada's token")
	require.NoError(t, err)
	requireRights(t, nc, asAda)
	_, err = a.stolenIssuer(stolen)
	require.ErrorIs(t, err, nats.ErrAuthorization)
}

// stolenIssuer connects as an agent that the thief of the token service's issuer key has signed.
func (a *admitting) stolenIssuer(keys roles.AdmitKeys) (*nats.Conn, error) {
	a.t.Helper()
	user, public := newKey(a.t, nkeys.CreateUser)
	token, err := keys.User(public, asAda, time.Now().Add(time.Hour))
	require.NoError(a.t, err)
	nc, err := connectToSlow(a.url, bearerOf(token, user), nats.Timeout(30*time.Second))
	if err == nil {
		a.t.Cleanup(nc.Close)
	}
	return nc, err
}

// Directories of earlier versions have no account for a token service.
func TestAnEarlierOperatorGetsATokenService(t *testing.T) {
	t.Parallel()
	dir, keys, accounts := operatorKeys(t)
	without := strings.ReplaceAll(keys.OperatorConfig(accounts[:4], filepath.Join(dir, "accounts")), `interval: "10s"`, `interval: "1h"`)
	s := startText(t, fmt.Sprintf("jetstream { store_dir: %q }\n%s", dir, without))
	require.NotContains(t, without, "sentinel")
	state := filepath.Join(dir, "keys", "operator", "operator.json")
	text, err := os.ReadFile(state)
	require.NoError(t, err)
	require.NotContains(t, string(text), "admits")

	require.NoError(t, keys.Ensure(asTokenService))
	a := &admitting{guarded: &guarded{t: t, dir: dir, url: s.ClientURL(), keys: keys}, users: []roles.User{{}}}
	a.pushes(roles.Pushed()...)
	a.serve(byName)
	require.Contains(t, keys.AdmitConfig(), "default_sentinel: eyJ")
	sentinel := strings.TrimSpace(strings.SplitAfter(keys.AdmitConfig(), "default_sentinel: ")[1])
	_, err = a.join("ada", "ada's token")
	require.ErrorIs(t, err, nats.ErrAuthorization, "the server's configuration names no sentinel yet")
	nc, err := a.join("ada", "ada's token", bearer(sentinel))
	require.NoError(t, err)
	requireRights(t, nc, asAda)
	for _, token := range []string{"", "bob's token"} {
		_, err = a.join("ada", token, bearer(sentinel))
		require.ErrorIs(t, err, nats.ErrAuthorization)
	}
}

// bearer shows a JWT without a proof that the client has its key.
func bearer(token string) nats.Option {
	return func(o *nats.Options) error {
		o.UserJWT = func() (string, error) { return token, nil }
		o.SignatureCB = func([]byte) ([]byte, error) { return nil, nil }
		return nil
	}
}

// Whoever has the token service's issuer key can make agents, and nothing else.
func TestAStolenIssuerOfTokensMakesOnlyAgents(t *testing.T) {
	t.Parallel()
	a := startAdmitting(t, operatorMode)
	keys, err := a.keys.AdmitKeys()
	require.NoError(t, err)
	seed, err := keys.Issuer.Seed()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(a.dir, "keys", "operator", "stolen.nk"), seed, 0o600))
	edge := a.account(asAda)
	publishes, subscribes := allSubjects()
	for _, name := range []string{"*", ">", "ada", "terminal", "", "a.b", "ada.>", "owner"} {
		nc, err := a.forged("stolen", func(c *jwt.UserClaims) { c.Name, c.IssuerAccount = name, edge })
		require.NoError(t, err)
		pub, sub := rightsOf(t, nc, mappedFor(asAda), publishes, subscribes)
		for _, subject := range pub {
			require.Contains(t, namesOf(rightsTable[asAda].pub), anyName(subject), "%q publishes", name)
		}
		for _, subject := range sub {
			require.Contains(t, namesOf(rightsTable[asAda].sub), anyName(subject), "%q subscribes", name)
		}
	}
	for what, claims := range map[string]func(*jwt.UserClaims){
		"another account":        func(c *jwt.UserClaims) { c.IssuerAccount = a.account(asEngineStore) },
		"the service's account":  func(c *jwt.UserClaims) { c.IssuerAccount = a.account(asTokenService) },
		"rights of its own":      func(c *jwt.UserClaims) { c.IssuerAccount = edge; c.Pub.Allow.Add(">") },
		"the servers' account":   func(c *jwt.UserClaims) { c.IssuerAccount = systemAccount(t, a.guarded) },
		"a user without a scope": func(c *jwt.UserClaims) { c.IssuerAccount = edge; c.SetScoped(false) },
	} {
		_, err := a.forged("stolen", func(c *jwt.UserClaims) { c.Name = "ada"; claims(c) })
		require.ErrorIs(t, err, nats.ErrAuthorization, what)
	}
	for _, seed := range []string{"token-service", "sentinel"} { // without a service, a server refuses all users of its account
		_, err := a.forged(seed, func(c *jwt.UserClaims) { c.Name, c.IssuerAccount = "token-service", a.account(asTokenService) })
		require.ErrorIs(t, err, nats.ErrAuthorization, seed)
	}
}

func namesOf(table string) (subjects []string) {
	for _, s := range strings.Fields(table) {
		subjects = append(subjects, anyName(s))
	}
	return subjects
}
