package bus_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
)

// A server checks a connection before it adds it to the account's list. If an account changes in between,
// the connection passes a check that it would now fail, and is not yet in the list that the change goes
// through. It must still be closed.
func TestNoConnectionOutlivesARevocation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		connects func(*racing) func() (*nats.Conn, error)
		removes  func(*racing) error
		pushed   []roles.Account
		others   []roles.ID // keep their connections
	}{
		"of its key": {
			func(r *racing) func() (*nats.Conn, error) {
				stolen, err := os.ReadFile(r.keys.Path(asAda))
				require.NoError(r.t, err)
				return func() (*nats.Conn, error) {
					return nats.Connect(r.url, nats.UserCredentialBytes(stolen), nats.NoReconnect(), nats.Timeout(time.Minute))
				}
			},
			func(r *racing) error { return r.keys.Revoke(asAda) },
			[]roles.Account{roles.Edge},
			[]roles.ID{asBob},
		},
		"of the key that has signed it": {
			func(r *racing) func() (*nats.Conn, error) {
				edge := r.account(asAda)
				token, user := signedUser(r.t, operatorSeed(r.t, r.dir, "agent"), func(c *jwt.UserClaims) { c.Name, c.IssuerAccount = "ada", edge })
				return func() (*nats.Conn, error) {
					return nats.Connect(r.url, bearerOf(token, user), nats.NoReconnect(), nats.Timeout(time.Minute))
				}
			},
			func(r *racing) error { _, err := r.keys.RotateSigner("agent"); return err },
			roles.Pushed(),
			nil,
		},
		"of the token service that has admitted it": {
			func(r *racing) func() (*nats.Conn, error) {
				a := &admitting{guarded: r.guarded, users: []roles.User{{}}}
				a.serve(byName)
				return func() (*nats.Conn, error) { return a.join("ada", "ada's token", nats.NoReconnect()) }
			},
			func(r *racing) error { return r.keys.Revoke(asTokenService) },
			[]roles.Account{roles.Tokens, roles.Edge},
			[]roles.ID{asAda, asBob},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRacing(t)
			connect := c.connects(r)
			var others []*nats.Conn
			for _, id := range append(c.others, asOwner, asOwnerStore, asEngine, asEngineStore, asObserver, asTerminal, asWeb, asTg) {
				others = append(others, r.as(id))
			}
			require.NoError(t, c.removes(r))
			connected := make(chan *nats.Conn, 1)
			r.armed.Store(true)
			go func() {
				nc, err := connect()
				if err != nil {
					r.t.Error(err)
				}
				connected <- nc
			}()
			select {
			case <-r.held:
			case <-connected:
				t.Fatal("the race has not happened")
			}
			_, err := bus.PushSigned(t.Context(), r.url, r.keys, c.pushed, quiet())
			require.NoError(t, err)
			nc := <-connected
			require.NotNil(t, nc, "the race has not happened")
			t.Cleanup(nc.Close)
			require.Eventually(t, nc.IsClosed, 10*time.Second, 10*time.Millisecond)
			for _, other := range others {
				require.NoError(t, other.Flush())
				require.Zero(t, other.Stats().Reconnects, "other keys keep their connections")
			}
		})
	}
}

// racing is a server in operator mode that can stop one connection between its check and its addition to the
// list of connections. The connection goes on once the server has the next version of the account EDGE. The
// server calls its logger at this place if the account allows larger messages than the server does.
type racing struct {
	*guarded
	armed atomic.Bool   // whether the next connection stops
	held  chan struct{} // closed when it has stopped
	goes  chan struct{} // closed when it may go on
	edge  string        // the public key of the account
}

func startRacing(t *testing.T) *racing {
	t.Helper()
	dir, keys, accounts := operatorKeys(t, asTokenService)
	for i, a := range accounts {
		if a.Account == roles.Edge {
			claims, err := jwt.DecodeAccountClaims(a.JWT)
			require.NoError(t, err)
			claims.Limits.Payload = 1 << 30
			accounts[i].JWT, err = claims.Encode(operatorSeed(t, dir, "accounts"))
			require.NoError(t, err)
		}
	}
	patient := strings.Replace(keys.OperatorConfig(accounts, filepath.Join(dir, "accounts")), "timeout: 1.5", "timeout: 60", 1)
	s := startText(t, fmt.Sprintf("jetstream { store_dir: %q }\n%s", dir, patient), func(o *server.Options) {
		o.DisableShortFirstPing = true // a client that the server pings while it connects gives up
	})
	r := &racing{
		guarded: &guarded{t: t, dir: dir, url: s.ClientURL(), keys: keys}, held: make(chan struct{}), goes: make(chan struct{}),
		edge: roles.AccountsOf(accounts, roles.Edge)[0].PublicKey,
	}
	s.SetLoggerV2(r, true, false, false)
	return r
}

func (r *racing) Debugf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	switch {
	case strings.Contains(text, "Max Payload set to") && r.armed.CompareAndSwap(true, false):
		close(r.held)
		<-r.goes
	case strings.HasPrefix(text, "jwt updated - "+r.edge):
		select {
		case <-r.goes:
		default:
			close(r.goes)
		}
	}
}

func (r *racing) Noticef(string, ...any) {}
func (r *racing) Warnf(string, ...any)   {}
func (r *racing) Fatalf(string, ...any)  {}
func (r *racing) Errorf(string, ...any)  {}
func (r *racing) Tracef(string, ...any)  {}

// signedUser makes a key, and signs a user for it as a thief of the seed would do.
func signedUser(t *testing.T, seed nkeys.KeyPair, claims func(*jwt.UserClaims)) (token string, user nkeys.KeyPair) {
	t.Helper()
	user, public := newKey(t, nkeys.CreateUser)
	c := jwt.NewUserClaims(public)
	c.SetScoped(true)
	claims(c)
	token, err := c.Encode(seed)
	require.NoError(t, err)
	return token, user
}

// bearerOf is the login of a user with this JWT and this key.
func bearerOf(token string, user nkeys.KeyPair) nats.Option {
	return nats.UserJWT(func() (string, error) { return token, nil }, user.Sign)
}
