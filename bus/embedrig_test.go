package bus_test

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/internal/testports"
)

// long is the flag -long, which runs all tests, as .ci/run does.
var long = flag.Bool("long", false, "run the tests that take long")

// onlyLong skips a test without -long. The reason names the shorter test of the same code.
func onlyLong(t *testing.T, why string) {
	t.Helper()
	if !*long {
		t.Skip("left out: " + why + "; -long runs it, as in .ci/run")
	}
}

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // many of these tests run at the same time, because they mostly wait
	flag.Parse()
	if testing.Short() { // .ci/run gives -short with the race detector, with which a login of eight at a time runs out of time
		_ = flag.Set("test.parallel", "3")
	}
	os.Exit(m.Run())
}

var (
	asOwner       = roles.ID{Role: roles.Owner}
	asOwnerStore  = roles.ID{Role: roles.OwnerStore}
	asEngine      = roles.ID{Role: roles.Engine}
	asEngineStore = roles.ID{Role: roles.EngineStore}
	asObserver    = roles.ID{Role: roles.Observer}
	asTerminal    = roles.ConnectorID(roles.Terminal)
	asWeb         = roles.ConnectorID(roles.Web)
	asTg          = roles.ConnectorID("tg")
	asWa          = roles.ConnectorID("wa")
	asAda         = roles.AgentID("ada") // in tests of attacks, ada is the attacker
	asBob         = roles.AgentID("bob") // in tests of attacks, bob is attacked
)

func everybody() []roles.ID {
	return []roles.ID{
		asOwner, asOwnerStore, asEngine, asEngineStore, asObserver, asTerminal, asWeb, asTg, asWa, asAda, asBob,
	}
}

// guarded is a server with accounts. It has a key for every role.
type guarded struct {
	t    *testing.T
	dir  string
	url  string
	keys *roles.Keys
}

func startGuarded(t *testing.T) *guarded {
	t.Helper()
	g, _, _ := embedGuarded(t)
	return g
}

// embedGuarded starts a server as startGuarded does, with more keys. It also returns the server and
// the server's users.
func embedGuarded(t *testing.T, more ...roles.ID) (*guarded, *bus.Server, []roles.User) {
	t.Helper()
	dir := t.TempDir()
	keys, users := keysOf(t, dir, append(everybody(), more...)...)
	s, err := bus.Embed(t.Context(), bus.EmbedOptions{DataDir: dir, Users: users, Log: quiet(), SyncInterval: bus.SyncAlways})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return &guarded{t: t, dir: dir, url: s.URL(), keys: keys}, s, users
}

// mode is the way in which a server knows the keys. Rights are the same in both modes.
type mode string

const (
	nkeyMode     mode = "nkeys"    // the server's configuration contains each key
	operatorMode mode = "operator" // a JWT describes each key
)

func inBothModes(t *testing.T, test func(*testing.T, mode)) {
	for _, m := range []mode{nkeyMode, operatorMode} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			test(t, m)
		})
	}
}

// startIn runs a guarded server in the mode m.
func startIn(t *testing.T, m mode) *guarded {
	t.Helper()
	if m == operatorMode {
		return startAccounts(t)
	}
	return startGuarded(t)
}

// operatorKeys makes a directory with keys for all roles and for the further ones, for servers in operator
// mode.
func operatorKeys(t *testing.T, more ...roles.ID) (dir string, keys *roles.Keys, accounts []roles.AccountJWT) {
	t.Helper()
	dir = t.TempDir()
	keys, err := roles.OpenKeys(dir)
	require.NoError(t, err)
	require.NoError(t, keys.ForOperator())
	require.NoError(t, keys.Ensure(append(everybody(), more...)...))
	accounts, err = keys.AccountJWTs(time.Now())
	require.NoError(t, err)
	return dir, keys, accounts
}

// startAccounts runs a server in operator mode with keys for all roles. The layouts change its
// configuration.
func startAccounts(t *testing.T, layouts ...layout) *guarded {
	t.Helper()
	dir, keys, accounts := operatorKeys(t)
	signs := operatorSeed(t, dir, "accounts")
	for i := range accounts {
		claims, err := jwt.DecodeAccountClaims(accounts[i].JWT)
		require.NoError(t, err)
		for _, l := range layouts {
			if l.scope != nil {
				for _, s := range claims.SigningKeys {
					l.scope(s.(*jwt.UserScope))
				}
			}
		}
		accounts[i].JWT, err = claims.Encode(signs)
		require.NoError(t, err)
	}
	text := fmt.Sprintf("jetstream { store_dir: %q }\n%s", dir, keys.OperatorConfig(accounts, filepath.Join(dir, "accounts")))
	for _, l := range layouts {
		text = l.text(text)
	}
	return &guarded{t: t, dir: dir, url: startText(t, text).ClientURL(), keys: keys}
}

func newKey(t *testing.T, create func() (nkeys.KeyPair, error)) (pair nkeys.KeyPair, public string) {
	t.Helper()
	pair, err := create()
	require.NoError(t, err)
	public, err = pair.PublicKey()
	require.NoError(t, err)
	return pair, public
}

// operatorSeed reads a seed file from the operator's directory: the operator's own seed or a signer's.
func operatorSeed(t *testing.T, dir, name string) nkeys.KeyPair {
	t.Helper()
	seed, err := os.ReadFile(filepath.Join(dir, "keys", "operator", name+".nk"))
	require.NoError(t, err)
	pair, err := nkeys.FromSeed(bytes.TrimSpace(seed))
	require.NoError(t, err)
	return pair
}

// startText runs a server with this text as its configuration.
func startText(t *testing.T, text string) *server.Server {
	t.Helper()
	opts := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true}
	require.NoError(t, opts.ProcessConfigString(text), text)
	ns, err := server.NewServer(opts)
	require.NoError(t, err)
	ns.Start()
	require.True(t, ns.ReadyForConnections(10*time.Second))
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	return ns
}

// quiet returns a logger that discards everything, because servers under attack log each refusal.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func keysOf(t *testing.T, dir string, ids ...roles.ID) (*roles.Keys, []roles.User) {
	t.Helper()
	keys, err := roles.OpenKeys(dir)
	require.NoError(t, err)
	require.NoError(t, keys.Ensure(ids...))
	users, err := keys.Users()
	require.NoError(t, err)
	require.Len(t, users, len(ids))
	return keys, users
}

// The method as connects with the key of id. If a call violates the rights of that key, the
// connection's LastError says so.
func (g *guarded) as(id roles.ID) *nats.Conn {
	g.t.Helper()
	var key nats.Option
	if g.keys.Operator() {
		file, err := os.ReadFile(g.keys.Path(id))
		require.NoError(g.t, err)
		key = nats.UserCredentialBytes(file)
	} else {
		var err error
		key, err = nats.NkeyOptionFromSeed(g.keys.Path(id))
		require.NoError(g.t, err)
	}
	nc, err := connectToSlow(g.url, key, nats.CustomInboxPrefix(id.InboxPrefix()), nats.Timeout(30*time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	require.NoError(g.t, err, "connect as %s", id)
	g.t.Cleanup(nc.Close)
	return nc
}

// connectToSlow connects like nats.Connect. A server that needs longer than two seconds to check a login, such as
// under the race detector, sends PING before PONG, and the client then fails; connectToSlow tries again.
func connectToSlow(url string, options ...nats.Option) (nc *nats.Conn, err error) {
	for range 10 {
		nc, err = nats.Connect(url, options...)
		if err == nil || !strings.Contains(err.Error(), "got 'PING'") {
			break
		}
	}
	return nc, err
}

func (g *guarded) jetstream(id roles.ID) jetstream.JetStream {
	g.t.Helper()
	js, err := jetstream.New(g.as(id))
	require.NoError(g.t, err)
	return js
}

// mayPublish publishes to subject, and reports whether the server accepted the message. The server
// reports a refusal before it replies to a flush.
func mayPublish(t *testing.T, nc *nats.Conn, subject string) bool {
	t.Helper()
	before := nc.LastError()
	require.NoError(t, nc.Publish(subject, nil))
	return !refusedSince(t, nc, before)
}

func maySubscribe(t *testing.T, nc *nats.Conn, subject string) bool {
	t.Helper()
	before := nc.LastError()
	sub, err := nc.SubscribeSync(subject)
	require.NoError(t, err)
	defer func() { _ = sub.Unsubscribe() }() // after a refused Subscribe, Unsubscribe fails too
	return !refusedSince(t, nc, before)
}

var refusalText = regexp.MustCompile(`Violation for (Publish|Subscription) to "([^"]*)"`)

// rightsOf publishes to some subjects and subscribes to others, closes nc, and returns the subjects
// that the server accepted. For most subjects it waits for the refusals only once, which is much
// cheaper than mayPublish for each of them. Subjects that begin with the string mapped are tried one
// by one, because the account maps them to other subjects and a refusal names only the other subject.
func rightsOf(t *testing.T, nc *nats.Conn, mapped string, publishes, subscribes []string) (pub, sub []string) {
	t.Helper()
	refused := map[string]bool{}   // the keys are a verb and a subject
	handled := make(chan struct{}) // closed after the last refusal
	nc.SetClosedHandler(func(*nats.Conn) { close(handled) })
	for _, subject := range publishes {
		if strings.HasPrefix(subject, mapped) {
			refused["Publish "+subject] = !mayPublish(t, nc, subject)
		}
	}
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		for _, m := range refusalText.FindAllStringSubmatch(err.Error(), -1) {
			refused[m[1]+" "+m[2]] = true
		}
	})
	for _, subject := range publishes {
		if !strings.HasPrefix(subject, mapped) {
			require.NoError(t, nc.Publish(subject, nil))
		}
	}
	for _, subject := range subscribes {
		_, err := nc.SubscribeSync(subject)
		require.NoError(t, err)
	}
	require.NoError(t, nc.Flush())
	nc.Close()
	<-handled
	pub = slices.DeleteFunc(slices.Clone(publishes), func(s string) bool { return refused["Publish "+s] })
	return pub, slices.DeleteFunc(slices.Clone(subscribes), func(s string) bool { return refused["Subscription "+s] })
}

// mappedFor returns the beginning of the subjects that the account of id maps to other subjects.
func mappedFor(id roles.ID) string {
	if id.Account() == roles.Observe {
		return "$JS.API."
	}
	return "$JS.API.CONSUMER.INFO."
}

func refusedSince(t *testing.T, nc *nats.Conn, before error) bool {
	t.Helper()
	require.NoError(t, nc.Flush())
	if nc.LastError() == before {
		return false
	}
	require.ErrorIs(t, nc.LastError(), nats.ErrPermissionViolation)
	return true
}

// members returns the options of the servers of one cluster. Each server needs the routes of all servers:
// nats-server takes the number of routes as the size of the group that elects JetStream's leader. With
// fewer routes, the servers may never agree on a leader.
func members(t *testing.T, servers int) (all []bus.EmbedOptions) {
	var routes []string
	ports := testports.Free(t, servers)
	for _, port := range ports {
		routes = append(routes, fmt.Sprint("nats://127.0.0.1:", port))
	}
	for i, port := range ports {
		all = append(all, bus.EmbedOptions{
			DataDir: t.TempDir(), Log: quiet(), SyncInterval: time.Minute,
			ServerName: fmt.Sprint("n", i+1), ClusterName: fmt.Sprint("c", ports[0]), ClusterPort: port, Routes: routes,
		})
	}
	return all
}

// embeds starts servers, and closes them when the test ends.
func embeds(t *testing.T, options ...bus.EmbedOptions) (servers []*bus.Server) {
	t.Helper()
	for _, o := range options {
		s, err := bus.Embed(t.Context(), o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		servers = append(servers, s)
	}
	return servers
}
