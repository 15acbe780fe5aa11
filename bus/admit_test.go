package bus_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
)

var asTokenService = roles.ID{Role: roles.TokenService}

// admitting is a server that asks a token service about clients without a key.
type admitting struct {
	*guarded
	server *bus.Server // nil in operator mode
	users  []roles.User
	log    *slog.Logger // the log of the token service; nil discards it
}

func startAdmitting(t *testing.T, m mode) *admitting {
	t.Helper()
	if m == nkeyMode {
		g, server, users := embedGuarded(t, asTokenService)
		return &admitting{guarded: g, server: server, users: users}
	}
	dir, keys, accounts := operatorKeys(t, asTokenService)
	users, err := keys.Users()
	require.NoError(t, err)
	text := fmt.Sprintf("jetstream { store_dir: %q }\n%s", dir, keys.OperatorConfig(accounts, filepath.Join(dir, "accounts")))
	return &admitting{guarded: &guarded{t: t, dir: dir, url: startText(t, text).ClientURL(), keys: keys}, users: users}
}

// serve runs a token service that admits the agent X by the token "X's token".
func (a *admitting) serve(check bus.TokenCheck) (stop func()) {
	a.t.Helper()
	keys, err := a.keys.AdmitKeys()
	require.NoError(a.t, err)
	return a.serveWith(keys, check)
}

func (a *admitting) serveWith(keys roles.AdmitKeys, check bus.TokenCheck) (stop func()) {
	a.t.Helper()
	o := bus.Options{URL: a.url, Creds: a.keys.Path(asTokenService), Inbox: asTokenService.InboxPrefix(), Log: cmp.Or(a.log, quiet())}
	if a.users == nil { // a server without users requires no keys
		o.Creds = ""
	}
	conn, err := bus.Connect(a.t.Context(), o)
	require.NoError(a.t, err)
	stopAdmitting, err := conn.AdmitAgents(keys, check)
	require.NoError(a.t, err)
	ctx, cancel := context.WithTimeout(a.t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(a.t, conn.Flush(ctx))
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			stopAdmitting()
			conn.Close()
		}
	}
	a.t.Cleanup(stop)
	return stop
}

func (a *admitting) join(user, token string, options ...nats.Option) (*nats.Conn, error) {
	nc, err := connectToSlow(a.url, append(options, nats.UserInfo(user, token), nats.CustomInboxPrefix(roles.AgentID("ada").InboxPrefix()),
		nats.Timeout(10*time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
	if err == nil {
		a.t.Cleanup(nc.Close)
	}
	return nc, err
}

func byName(ctx context.Context, agent, token string) (time.Time, error) {
	if token == agent+"'s token" {
		return time.Now().Add(time.Hour), nil
	}
	return time.Time{}, errors.New("unknown token")
}

func tellsWhatItIsAsked(asked chan<- string) bus.TokenCheck {
	return func(_ context.Context, _, token string) (time.Time, error) {
		asked <- token
		return time.Now().Add(time.Hour), nil
	}
}

func TestAnAgentWithATokenHasTheRightsOfThatAgent(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		a := startAdmitting(t, m)
		a.serve(byName)
		nc, err := a.join("ada", "ada's token")
		require.NoError(t, err)
		require.False(t, mayPublish(t, nc, roles.AdmitSubject))
		require.False(t, maySubscribe(t, nc, roles.AdmitSubject))
		requireRights(t, nc, asAda)
		again, err := a.join("ada", "ada's token")
		require.NoError(t, err, "a token is used twice")
		requireRights(t, again, asAda)
		for _, id := range everybody() { // users with keys have the same rights as without a token service
			if id != asOwnerStore {
				requireRights(t, a.as(id), id)
			}
		}
	})
}

func TestTheTokenServiceHasOnlyItsOwnRights(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		a := startAdmitting(t, m)
		nc := a.as(asTokenService)
		publishes, subscribes := allSubjects()
		for _, subject := range append(publishes, roles.AdmitSubject, "$SYS._INBOX.x.y", "_INBOX.agent.ada.x") {
			require.False(t, mayPublish(t, nc, subject), subject)
		}
		for _, subject := range append(subscribes, "$SYS.REQ.>", "$SYS.REQ.USER.>", "$SYS._INBOX.>") {
			require.False(t, maySubscribe(t, nc, subject), subject)
		}
		require.True(t, maySubscribe(t, nc, roles.AdmitSubject))
		require.True(t, maySubscribe(t, nc, asTokenService.InboxPrefix()+".>"))
	})
}

func TestATokenServiceRefuses(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		a := startAdmitting(t, m)
		asked := make(chan string, 100)
		a.serve(func(ctx context.Context, agent, token string) (time.Time, error) {
			asked <- agent
			if strings.HasPrefix(token, "ended") {
				return time.Now().Add(-time.Second), nil
			}
			return byName(ctx, agent, token)
		})
		service, err := a.keys.User(asTokenService)
		require.NoError(t, err)
		for name, login := range map[string][2]string{
			"another agent's token": {"ada", "bob's token"}, "no token": {"ada", ""}, "nobody": {"", ""}, "an ended token": {"ada", "ended"},
			"the name of a key": {service.PublicKey, "x"}, "every agent": {"*", "*'s token"}, "all below": {"ada.>", "ada.>'s token"}, "a subject": {"ada.x", "ada.x's token"},
			"a long name": {strings.Repeat("a", 129), strings.Repeat("a", 129) + "'s token"}, "a long token": {"ada", strings.Repeat("a", 15<<10)},
			"the name of another key": {a.users[0].PublicKey, "x"},
		} {
			_, err := a.join(login[0], login[1])
			require.ErrorIs(t, err, nats.ErrAuthorization, name)
		}
		close(asked)
		for agent := range asked {
			require.Contains(t, []string{"ada", service.PublicKey, a.users[0].PublicKey}, agent, "a name that is no agent's is not looked up")
		}
		for name, option := range map[string]nats.Option{"a token alone": nats.Token("ada's token"), "a foreign key": foreignKey(t), "nothing": nats.Name("x")} {
			_, err := nats.Connect(a.url, option)
			require.ErrorIs(t, err, nats.ErrAuthorization, name)
		}
	})
}

// The log must not contain a token, even if a job has put its token into a wrong field.
func TestTheLogOfTheTokenServiceHasNoToken(t *testing.T) {
	t.Parallel()
	a := startAdmitting(t, nkeyMode)
	var log bytes.Buffer
	a.log = slog.New(slog.NewTextHandler(&log, nil))
	stop := a.serve(byName)
	const token = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbmF0dXJl"
	for _, login := range [][2]string{{token, ""}, {token, token}, {"ada", token}, {"", token}} {
		_, err := a.join(login[0], login[1])
		require.ErrorIs(t, err, nats.ErrAuthorization)
	}
	stop()
	require.Equal(t, 4, strings.Count(log.String(), "msg=refused"))
	require.NotContains(t, log.String(), "eyJ")
}

func foreignKey(t *testing.T) nats.Option {
	pair, public := newKey(t, nkeys.CreateUser)
	return nats.Nkey(public, pair.Sign)
}

func TestWithoutATokenServiceTokensAreRefusedAndKeysWork(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		a := startAdmitting(t, m)
		refused := func(name string) {
			t.Helper()
			began := time.Now()
			_, err := a.join("ada", "ada's token")
			require.ErrorIs(t, err, nats.ErrAuthorization, name)
			require.Less(t, time.Since(began), 8*time.Second, name)
			a.as(asAda)
		}
		refused("never started")

		stop := a.serve(byName)
		_, err := a.join("ada", "ada's token")
		require.NoError(t, err)
		stop()
		refused("stopped")

		stop = a.serve(func(ctx context.Context, _, _ string) (time.Time, error) {
			<-ctx.Done()
			return time.Now().Add(time.Hour), ctx.Err()
		})
		refused("hanging")
		stop()

		other, err := roles.OpenKeys(t.TempDir())
		require.NoError(t, err)
		require.NoError(t, other.Ensure(asTokenService))
		keys, err := other.AdmitKeys()
		require.NoError(t, err)
		a.serveWith(keys, byName)
		refused("with other keys")
	})
}

// The agent and the token service may be connected to different servers of the cluster.
func TestEveryServerOfAClusterAsksTheTokenService(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		a, other := startAdmittingCluster(t, m)
		a.serve(byName)
		a.url = other
		require.Eventually(t, func() bool { // the servers need a moment to know of each other
			_, err := a.join("ada", "ada's token")
			return err == nil
		}, 30*time.Second, 10*time.Millisecond)
		nc, err := a.join("ada", "ada's token")
		require.NoError(t, err)
		require.True(t, mayPublish(t, nc, "nod.v1.request.ada.s.1"))
		require.False(t, mayPublish(t, nc, "nod.v1.request.bob.s.1"))
	})
}

// startAdmittingCluster runs two servers, and returns the URL of the second one too.
func startAdmittingCluster(t *testing.T, m mode) (a *admitting, second string) {
	t.Helper()
	if m == operatorMode {
		g, _, _ := startOperatorCluster(t, 2, asTokenService)
		first, second, _ := strings.Cut(g.url, ",")
		g.url = first
		return &admitting{guarded: g, users: []roles.User{{}}}, second
	}
	dir := t.TempDir()
	keys, users := keysOf(t, dir, append(everybody(), asTokenService)...)
	options := members(t, 2)
	for i := range options {
		options[i].Users = users
	}
	servers := embeds(t, options...)
	return &admitting{guarded: &guarded{t: t, url: servers[0].URL(), keys: keys}, users: users}, servers[1].URL()
}

func TestAConnectionEndsWithItsToken(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		a := startAdmitting(t, m)
		a.serve(func(context.Context, string, string) (time.Time, error) { return time.Now().Add(2 * time.Second), nil })
		nc, err := a.join("ada", "any", nats.NoReconnect())
		require.NoError(t, err)
		require.True(t, nc.IsConnected())
		require.Eventually(t, nc.IsClosed, 20*time.Second, time.Millisecond)
	})
}

// A running server follows changes of its users, except for the token service: it refuses a new key of
// the service until its next start.
func TestARevokedTokenServiceAdmitsNoMore(t *testing.T) {
	t.Parallel()
	a := startAdmitting(t, nkeyMode)
	a.serve(byName)
	owner := a.as(asOwner)
	nc, err := a.join("ada", "ada's token", nats.NoReconnect())
	require.NoError(t, err)

	require.NoError(t, a.keys.Revoke(asTokenService))
	_, without := keysOf(t, a.dir, everybody()...)
	require.NoError(t, a.server.SetUsers(without))
	require.Eventually(t, nc.IsClosed, 10*time.Second, time.Millisecond)
	_, err = a.join("ada", "ada's token")
	require.ErrorIs(t, err, nats.ErrAuthorization)
	require.True(t, owner.IsConnected(), "connections of keys stay open")
	entries, err := os.ReadDir(filepath.Join(a.dir, "keys"))
	require.NoError(t, err)
	require.Len(t, entries, len(everybody()), "no key of the service is left")

	_, again := keysOf(t, a.dir, append(everybody(), asTokenService, roles.AgentID("new"))...)
	require.NoError(t, a.server.SetUsers(again), "other keys are followed")
	a.as(roles.AgentID("new"))
	_, err = bus.Connect(t.Context(), bus.Options{URL: a.url, Creds: a.keys.Path(asTokenService), Log: quiet()})
	require.ErrorIs(t, err, bus.ErrRefused, "until the server is started again")
}

// A question that no server has made gets no answer, although only servers can send to the token service.
func TestForgedQuestionsAreNotAnswered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys, err := roles.OpenKeys(dir)
	require.NoError(t, err)
	require.NoError(t, keys.Ensure(asTokenService))
	open, err := bus.Embed(t.Context(), bus.EmbedOptions{DataDir: t.TempDir(), Log: quiet()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, open.Close()) })
	a := &admitting{guarded: &guarded{t: t, url: open.URL(), keys: keys}}
	a.serve(byName)
	admits, err := keys.User(asTokenService)
	require.NoError(t, err)

	server, err := nkeys.CreateServer()
	require.NoError(t, err)
	x, xkey := newKey(t, nkeys.CreateCurveKeys)
	_, public := newKey(t, nkeys.CreateUser)
	question := func(change func(*jwt.AuthorizationRequestClaims)) []byte {
		q := jwt.NewAuthorizationRequestClaims(admits.Admits.Issuer)
		q.Audience, q.UserNkey, q.Expires = "nats-authorization-request", public, time.Now().Add(time.Minute).Unix()
		q.Server = jwt.ServerID{ID: "S", Name: "s", XKey: xkey}
		q.ConnectOptions.Username, q.ConnectOptions.Password = "ada", "ada's token"
		change(q)
		text, err := q.Encode(server)
		require.NoError(t, err)
		return []byte(text)
	}
	seal := func(text []byte) []byte {
		sealed, err := x.Seal(text, admits.Admits.XKey)
		require.NoError(t, err)
		return sealed
	}
	nc, err := nats.Connect(a.url)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	within := 10 * time.Second
	ask := func(data []byte, key string) error {
		m := &nats.Msg{Subject: roles.AdmitSubject, Data: data, Header: nats.Header{}}
		if key != "" {
			m.Header.Set("Nats-Server-Xkey", key)
		}
		_, err := nc.RequestMsg(m, within)
		return err
	}
	good := question(func(*jwt.AuthorizationRequestClaims) {})
	require.NoError(t, ask(seal(good), xkey))
	within = 300 * time.Millisecond
	require.ErrorIs(t, ask(good, ""), nats.ErrTimeout, "not encrypted")
	require.ErrorIs(t, ask(good, xkey), nats.ErrTimeout, "not encrypted, with a key")
	require.ErrorIs(t, ask(seal([]byte("x")), xkey), nats.ErrTimeout, "malformed")
	require.ErrorIs(t, ask(seal(append(good[:len(good)-4], "AAAA"...)), xkey), nats.ErrTimeout, "signature")
	for name, change := range map[string]func(*jwt.AuthorizationRequestClaims){
		"audience":   func(q *jwt.AuthorizationRequestClaims) { q.Audience = "x" },
		"old":        func(q *jwt.AuthorizationRequestClaims) { q.Expires = time.Now().Add(-time.Minute).Unix() },
		"other xkey": func(q *jwt.AuthorizationRequestClaims) { q.Server.XKey = admits.Admits.XKey },
		"other issuer": func(q *jwt.AuthorizationRequestClaims) {
			_, q.Subject = newKey(t, nkeys.CreateAccount)
		},
	} {
		require.ErrorIs(t, ask(seal(question(change)), xkey), nats.ErrTimeout, name)
	}
}
