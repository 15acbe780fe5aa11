package bus_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// forged connects as a user that the test itself signs with a role's signing seed, as a thief of the
// seed would do.
func (g *guarded) forged(seed string, claims func(*jwt.UserClaims)) (*nats.Conn, error) {
	g.t.Helper()
	token, user := signedUser(g.t, operatorSeed(g.t, g.dir, seed), claims)
	nc, err := connectToSlow(g.url, bearerOf(token, user), nats.Timeout(30*time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err == nil {
		g.t.Cleanup(nc.Close)
	}
	return nc, err
}

func (g *guarded) account(id roles.ID) string {
	g.t.Helper()
	file, err := os.ReadFile(g.keys.Path(id))
	require.NoError(g.t, err)
	token, err := nkeys.ParseDecoratedJWT(file)
	require.NoError(g.t, err)
	c, err := jwt.DecodeUserClaims(token)
	require.NoError(g.t, err)
	return c.IssuerAccount
}

// anyName replaces the names of agents and connectors in a subject, and any * in place of such a name, by
// "NAME".
func anyName(subject string) string {
	tokens := strings.Split(subject, ".")
	for i, token := range tokens {
		if slices.Contains([]string{"ada", "bob", "tg", "wa", "mallory", "*"}, token) {
			tokens[i] = "NAME"
		}
		if name, ok := strings.CutPrefix(token, "nod-connector-"); ok && (name == "tg" || name == "wa") {
			tokens[i] = "nod-connector-NAME"
		}
	}
	return strings.Join(tokens, ".")
}

// The thief of a role's signing key chooses the name in a user's JWT. Whatever the name is, the user
// has no right that no member of this role has.
func TestAStolenSigningKeyMakesOnlyItsRole(t *testing.T) {
	t.Parallel()
	g := startIn(t, operatorMode)
	publishes, subscribes := allSubjects()
	for _, role := range []struct {
		seed string
		ids  []roles.ID
	}{
		{"agent", []roles.ID{asAda, asBob}}, {"connector", []roles.ID{asTg, asWa}}, {"observer", []roles.ID{asObserver}},
		{"terminal", []roles.ID{asTerminal}}, {"owner", []roles.ID{asOwner}}, {"engine", []roles.ID{asEngine}}, {"engine-store", []roles.ID{asEngineStore}},
		{"shares-edge", nil}, {"shares-store", nil},
	} {
		t.Run(role.seed, func(t *testing.T) {
			t.Parallel()
			var pub, sub []string
			for _, id := range role.ids {
				for _, s := range strings.Fields(rightsTable[id].pub) {
					pub = append(pub, anyName(s))
				}
				for _, s := range strings.Fields(rightsTable[id].sub) {
					sub = append(sub, anyName(s))
				}
			}
			as := asAda
			if len(role.ids) > 0 {
				as = role.ids[0]
			} else if role.seed == "shares-store" {
				as = asEngineStore
			}
			account := g.account(as)
			names := []string{"*"} // only the rights of agents and connectors depend on the name
			if role.seed == "agent" || role.seed == "connector" {
				names = []string{"*", ">", "ada", "terminal", "web", "observer", "", "a.b", "ada.>", "*.*", "x y", "{{subject()}}", "{{tag(a)}}", "owner"}
			}
			for _, name := range names {
				nc, err := g.forged(role.seed, func(c *jwt.UserClaims) { c.Name, c.IssuerAccount = name, account; c.Tags.Add("a:>") })
				require.NoError(t, err)
				mayPub, maySub := rightsOf(t, nc, mappedFor(as), publishes, subscribes)
				for _, subject := range mayPub {
					require.Contains(t, pub, anyName(subject), "%q publishes", name)
				}
				for _, subject := range maySub {
					require.Contains(t, sub, anyName(subject), "%q subscribes", name)
				}
			}
		})
	}
}

// The server refuses a user whose JWT claims more rights than its signing key may give.
func TestForgedUsersAreRefused(t *testing.T) {
	t.Parallel()
	g := startIn(t, operatorMode)
	edge, store := g.account(asAda), g.account(asEngineStore)
	for what, f := range map[string]struct {
		seed   string
		claims func(*jwt.UserClaims)
	}{
		"rights of its own":       {"agent", func(c *jwt.UserClaims) { c.IssuerAccount = edge; c.Pub.Allow.Add(">") }},
		"another account":         {"agent", func(c *jwt.UserClaims) { c.IssuerAccount = store }},
		"no account":              {"agent", func(c *jwt.UserClaims) {}},
		"a bearer":                {"agent", func(c *jwt.UserClaims) { c.IssuerAccount = edge; c.BearerToken = true }},
		"the system's account":    {"agent", func(c *jwt.UserClaims) { c.IssuerAccount = systemAccount(t, g) }},
		"unlimited rights":        {"agent", func(c *jwt.UserClaims) { c.IssuerAccount = edge; c.SetScoped(false) }},
		"the store by the engine": {"engine", func(c *jwt.UserClaims) { c.IssuerAccount = store }},
	} {
		_, err := g.forged(f.seed, func(c *jwt.UserClaims) { c.Name = "ada"; f.claims(c) })
		require.ErrorIs(t, err, nats.ErrAuthorization, what)
	}
	nc, err := nats.Connect(g.url)
	if err == nil {
		nc.Close()
	}
	require.ErrorIs(t, err, nats.ErrAuthorization, "no key at all")
}

func systemAccount(t *testing.T, g *guarded) string {
	accounts, err := g.keys.AccountJWTs(time.Now())
	require.NoError(t, err)
	return roles.AccountsOf(accounts, roles.System)[0].PublicKey
}

// The user that sends accounts can do nothing else in the servers' own account. No server accepts an
// account that this user sends without the operator's signature.
func TestTheKeyThatPushesOnlyPushes(t *testing.T) {
	t.Parallel()
	g := startIn(t, operatorMode)
	accounts, err := g.keys.AccountJWTs(time.Now())
	require.NoError(t, err)
	servers, err := bus.PushAccounts(t.Context(), g.url, g.keys.PushCreds(), accounts, quiet())
	require.NoError(t, err)
	require.Len(t, servers, 1)

	edge := roles.AccountsOf(accounts, roles.Edge)[0]
	claims, err := jwt.DecodeAccountClaims(edge.JWT)
	require.NoError(t, err)
	ownSigner, err := operatorSeed(t, g.dir, "push").PublicKey()
	require.NoError(t, err)
	claims.SigningKeys = jwt.SigningKeys{}
	claims.SigningKeys.Add(ownSigner)
	for _, seed := range []string{"operator", "agent", "push"} { // the seed "operator" signs only signing keys, and so no account
		edge.JWT, err = claims.Encode(operatorSeed(t, g.dir, seed))
		require.NoError(t, err)
		_, err = bus.PushAccounts(t.Context(), g.url, g.keys.PushCreds(), []roles.AccountJWT{edge}, quiet())
		require.Equal(t, seed == "operator", err != nil, "%s: the server stores an account that others have signed, and does not follow it", seed)
		_, err = g.forged("push", func(c *jwt.UserClaims) { c.IssuerAccount = edge.PublicKey; c.SetScoped(false) })
		require.ErrorIs(t, err, nats.ErrAuthorization, seed)
		g.as(asAda)
	}
	file, err := os.ReadFile(g.keys.PushCreds())
	require.NoError(t, err)
	nc, err := nats.Connect(g.url, nats.UserCredentialBytes(bytes.TrimSpace(file)), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	for _, subject := range []string{"$SYS.REQ.SERVER.PING", "$SYS.REQ.CLAIMS.DELETE", "$SYS.REQ.CLAIMS.LIST", "$SYS.REQ.ACCOUNT." + edge.PublicKey + ".CLAIMS.UPDATE", "$SYS.REQ.SERVER.x.KICK", "nod.v1.request.ada.s.1"} {
		require.False(t, mayPublish(t, nc, subject), subject)
	}
	for _, subject := range []string{">", "$SYS.>", "$SYS.ACCOUNT.>", "_INBOX.>"} {
		require.False(t, maySubscribe(t, nc, subject), subject)
	}
}

// A server that has its accounts only in its configuration cannot store sent accounts. The error
// names the missing resolver.
func TestAServerWithoutAResolverOfItsOwnIsNamed(t *testing.T) {
	t.Parallel()
	g := startAccounts(t, layout{config: func(config string) string {
		return regexp.MustCompile(`resolver: \{.*\}`).ReplaceAllLiteralString(config, "resolver: MEMORY")
	}})
	accounts, err := g.keys.AccountJWTs(time.Now())
	require.NoError(t, err)
	_, err = bus.PushAccounts(t.Context(), g.url, g.keys.PushCreds(), accounts[1:], quiet())
	requireOneLine(t, err, "keep no accounts", "nod keys config")
}

// A revocation reaches all servers of a cluster and closes the key's connections on each. It remains in
// force after a restart with an older configuration.
func TestARevocationReachesEveryServer(t *testing.T) {
	t.Parallel()
	g, configs, ends := startOperatorCluster(t, 3)
	var connections []*nats.Conn
	for _, url := range strings.Split(g.url, ",") {
		at := &guarded{t: t, dir: g.dir, url: url, keys: g.keys}
		connections = append(connections, at.as(asAda))
	}
	other := g.as(asBob)
	stolen, err := os.ReadFile(g.keys.Path(asAda))
	require.NoError(t, err)
	require.NoError(t, g.keys.Revoke(asAda))
	accounts, err := g.keys.AccountJWTs(time.Now())
	require.NoError(t, err)
	require.Eventually(t, func() bool { // a busy server may reply so late that its reply is not counted
		servers, err := bus.PushAccounts(t.Context(), g.url, g.keys.PushCreds(), roles.AccountsOf(accounts, roles.Edge), quiet())
		return err == nil && slices.Equal(servers, []string{"n0", "n1", "n2"})
	}, time.Minute, time.Millisecond)
	refused := func(url string) {
		nc, err := nats.Connect(url, nats.UserCredentialBytes(stolen))
		if err == nil {
			nc.Close()
		}
		require.ErrorIs(t, err, nats.ErrAuthorization)
	}
	for i, url := range strings.Split(g.url, ",") {
		require.Eventually(t, func() bool { return !connections[i].IsConnected() }, 30*time.Second, time.Millisecond)
		refused(url)
	}
	require.NoError(t, other.Flush(), "another key's connection stays")
	for i, config := range configs {
		ends[i]()
		refused(startText(t, config).ClientURL())
	}
}

// After a signing key was replaced, servers refuse all users that the stolen key signs. The users in the
// directory keep their keys and can still connect.
func TestAStolenSigningKeyIsReplaced(t *testing.T) {
	t.Parallel()
	g := startIn(t, operatorMode)
	edge := g.account(asAda)
	claims := func(c *jwt.UserClaims) { c.Name, c.IssuerAccount = "ada", edge }
	stolen := operatorSeed(t, g.dir, "agent")
	forged, err := g.forged("agent", claims)
	require.NoError(t, err)
	other := g.as(asTg)
	g.replacesSigner("agent")
	require.Eventually(t, func() bool { return !forged.IsConnected() }, 30*time.Second, time.Millisecond)
	seed, err := stolen.Seed()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(g.dir, "keys", "operator", "stolen.nk"), seed, 0o600))
	_, err = g.forged("stolen", claims)
	require.ErrorIs(t, err, nats.ErrAuthorization)
	require.True(t, mayPublish(t, g.as(asAda), "nod.v1.request.ada.s.1"))
	require.NoError(t, other.Flush(), "other roles stay")
	_, err = g.keys.RotateSigner("nobody")
	require.ErrorContains(t, err, "agent")
}

// replacesSigner replaces the signing key of a role in the account EDGE, and sends the account with
// the new key to the servers.
func (g *guarded) replacesSigner(name string) {
	g.t.Helper()
	elsewhere, err := g.keys.RotateSigner(name)
	require.NoError(g.t, err)
	require.Empty(g.t, elsewhere)
	g.pushes(roles.Edge)
}

// pushes signs accounts and sends them to the servers.
func (g *guarded) pushes(names ...roles.Account) {
	g.t.Helper()
	accounts, err := g.keys.AccountJWTs(time.Now())
	require.NoError(g.t, err)
	_, err = bus.PushAccounts(g.t.Context(), g.url, g.keys.PushCreds(), roles.AccountsOf(accounts, names...), quiet())
	require.NoError(g.t, err)
}

// startOperatorCluster runs servers in operator mode, and returns their configurations and what ends them.
func startOperatorCluster(t *testing.T, n int, more ...roles.ID) (g *guarded, configs []string, ends []func()) {
	t.Helper()
	dir, keys, accounts := operatorKeys(t, more...)
	var urls []string
	options := members(t, n)
	for i, o := range options {
		configs = append(configs, fmt.Sprintf("server_name: n%d\njetstream { store_dir: %q }\ncluster { name: %s, listen: 127.0.0.1:%d, routes: [%s] }\n%s", i,
			filepath.Join(dir, fmt.Sprint("js", i)), o.ClusterName, o.ClusterPort, strings.Join(o.Routes, ","), keys.OperatorConfig(accounts, filepath.Join(dir, fmt.Sprint("accounts", i)))))
		s := startText(t, configs[i])
		urls = append(urls, s.ClientURL())
		ends = append(ends, func() { s.Shutdown(); s.WaitForShutdown() })
	}
	return &guarded{t: t, dir: dir, url: strings.Join(urls, ","), keys: keys}, configs, ends
}
