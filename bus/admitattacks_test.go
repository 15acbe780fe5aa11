package bus_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/internal/testports"
)

// Whoever answers the servers' questions with the token service's key and its xkey, but without its issuer,
// admits nobody. The server also refuses such answers if they are not encrypted.
func TestAnswersOfAnotherIssuerAdmitNobody(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		a := startAdmitting(t, m)
		own, err := a.keys.AdmitKeys()
		require.NoError(t, err)
		foreign, _ := newKey(t, nkeys.CreateAccount)
		issuers := map[string]nkeys.KeyPair{"foreign": foreign}
		signer := own.Issuer // signs answers in the clear
		if m == operatorMode {
			signer = operatorSeed(t, a.dir, "token-service")
			for _, seed := range []string{"token-service", "sentinel", "observer", "engine-store"} {
				issuers[seed] = operatorSeed(t, a.dir, seed)
			}
		}
		for name, issuer := range issuers {
			forged := own
			forged.Issuer = issuer
			stop := a.serveWith(forged, byName)
			_, err := a.join("ada", "ada's token")
			require.ErrorIs(t, err, nats.ErrAuthorization, name)
			stop()
			require.ErrorIs(t, a.answersInTheClear(forged, issuer), nats.ErrAuthorization, name)
			require.ErrorIs(t, a.answersInTheClear(forged, signer), nats.ErrAuthorization, name)
		}
		require.NoError(t, a.answersInTheClear(own, signer), "this answer must succeed, or the failure of the others proves nothing")
	})
}

// answersInTheClear connects as ada, while it answers the server's question without encryption. The answer
// contains a user that keys has signed, and signer signs the answer.
func (a *admitting) answersInTheClear(keys roles.AdmitKeys, signer nkeys.KeyPair) error {
	a.t.Helper()
	nc := a.as(asTokenService)
	defer nc.Close()
	_, err := nc.Subscribe(roles.AdmitSubject, func(m *nats.Msg) {
		answer, err := clearAnswer(m, keys, signer)
		if err == nil {
			err = m.Respond(answer)
		}
		if err != nil {
			a.t.Error(err)
		}
	})
	require.NoError(a.t, err)
	require.NoError(a.t, nc.Flush())
	_, err = a.join("ada", "ada's token")
	return err
}

func clearAnswer(m *nats.Msg, keys roles.AdmitKeys, signer nkeys.KeyPair) ([]byte, error) {
	text, err := keys.XKey.Open(m.Data, m.Header.Get("Nats-Server-Xkey"))
	if err != nil {
		return nil, err
	}
	q, err := jwt.DecodeAuthorizationRequestClaims(string(text))
	if err != nil {
		return nil, err
	}
	r := jwt.NewAuthorizationResponseClaims(q.UserNkey)
	r.Audience = q.Server.ID
	if r.Jwt, err = keys.User(q.UserNkey, asAda, time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	answer, err := r.Encode(signer)
	return []byte(answer), err
}

// The sentinel, which needs no key, gives no rights, even beside another login.
func TestTheSentinelGivesNoRights(t *testing.T) {
	t.Parallel()
	a := startAdmitting(t, operatorMode)
	a.serve(byName)
	config := []byte(a.keys.AdmitConfig())
	sentinel := string(bytes.TrimSpace(bytes.SplitAfter(config, []byte("default_sentinel: "))[1]))
	for name, options := range map[string][]nats.Option{
		"alone": {bearer(sentinel)}, "a token in its field": {bearer(sentinel), nats.Token("ada's token")},
		"another's token": {bearer(sentinel), nats.UserInfo("ada", "bob's token")}, "no token": {bearer(sentinel), nats.UserInfo("ada", "")},
	} {
		_, err := nats.Connect(a.url, options...)
		require.ErrorIs(t, err, nats.ErrAuthorization, name)
	}
	nc, err := nats.Connect(a.url, bearer(sentinel), nats.UserInfo("ada", "ada's token"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	requireRights(t, nc, asAda)

	// The server does not ask about the token service itself. The thief of the sentinel's signing key can
	// therefore connect in the service's place without its key, and then has the sentinel's rights.
	service, err := a.keys.User(asTokenService)
	require.NoError(t, err)
	c := jwt.NewUserClaims(service.PublicKey)
	c.Name, c.IssuerAccount = "token-service", a.account(asTokenService)
	c.SetScoped(true)
	token, err := c.Encode(operatorSeed(t, a.dir, "sentinel"))
	require.NoError(t, err)
	nc, err = nats.Connect(a.url, bearer(token), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	publishes, subscribes := allSubjects()
	pub, sub := rightsOf(t, nc, mappedFor(asAda), append(publishes, roles.AdmitSubject), append(subscribes, roles.AdmitSubject, "$SYS._INBOX.>"))
	require.Empty(t, pub)
	require.Empty(t, sub)
}

// A token admits a client, never a leaf node, which could acknowledge every prompt.
func TestNoTokenConnectsALeafNode(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		address := fmt.Sprint("127.0.0.1:", testports.Free(t, 1)[0])
		dir, keys, config := admittingConfig(t, m)
		s := startText(t, fmt.Sprintf("jetstream { store_dir: %q }\n%s\nleafnodes { listen: %q }\n", dir, config, address))
		a := &admitting{guarded: &guarded{t: t, dir: dir, url: s.ClientURL(), keys: keys}, users: []roles.User{{}}}
		asked := make(chan string, 10)
		a.serve(tellsWhatItIsAsked(asked))
		for _, login := range []map[string]any{{"user": "ada", "pass": "by a user's name"}, {"auth_token": "by a token alone"}} {
			require.Contains(t, leafNodeAs(t, address, func(string) map[string]any { return login }), "Authorization Violation")
		}
		_, err := a.join("ada", "as a client")
		require.NoError(t, err)
	})
}

// admittingConfig returns the configuration of a server that asks a token service, without its addresses and
// its store.
func admittingConfig(t *testing.T, m mode) (dir string, keys *roles.Keys, config string) {
	t.Helper()
	if m == operatorMode {
		dir, keys, accounts := operatorKeys(t, asTokenService)
		return dir, keys, keys.OperatorConfig(accounts, filepath.Join(dir, "accounts"))
	}
	dir = t.TempDir()
	keys, users := keysOf(t, dir, append(everybody(), asTokenService)...)
	return dir, keys, roles.Config{Users: users, Admitting: roles.TokenServices(users)}.String()
}
