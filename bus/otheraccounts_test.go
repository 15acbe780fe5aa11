package bus_test

import (
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
)

// The operator of a company may also sign accounts that are not nod's. Such an account can import
// from an account of nod only with a token that a signing key of nod's account has signed. With a
// token that a stolen signing key of EDGE has signed, the other account reads only the messages that an
// observer may read, and can send neither requests nor answers.
func TestWhatOtherAccountsOfAnOperatorImport(t *testing.T) {
	t.Parallel()
	g := startIn(t, operatorMode)
	hears := func(other *nats.Conn) bool {
		heard, err := other.SubscribeSync("nod.v1.request.*.*.*")
		require.NoError(t, err)
		require.NoError(t, other.Flush())
		engine, answers := g.listen(asEngine, "nod.v1.answer.>")
		ada := g.as(asAda)
		require.NoError(t, ada.Publish("nod.v1.request.ada.s.1", nil))
		require.NoError(t, ada.Flush())
		require.NoError(t, other.Publish("nod.v1.answer.terminal.s.1", nil))
		require.NoError(t, other.Flush())
		require.NoError(t, engine.Flush())
		requireSilent(t, answers)
		n, _, err := heard.Pending()
		require.NoError(t, err)
		return n > 0
	}
	for _, seed := range []string{"", "observer", "engine-store"} {
		require.False(t, hears(g.otherAccount(seed)), "%q", seed)
	}
	other := g.otherAccount("agent")
	require.True(t, hears(other))
	g.replacesSigner("agent")
	require.Eventually(t, func() bool { return !hears(other) }, 10*time.Second, 10*time.Millisecond, "the token is worth nothing any more")
}

// otherAccount connects to a new account of the same operator. This account imports requests and answers
// from EDGE, with tokens that the key of the seed has signed.
func (g *guarded) otherAccount(seed string) *nats.Conn {
	g.t.Helper()
	_, public := newKey(g.t, nkeys.CreateAccount)
	signer, signerPublic := newKey(g.t, nkeys.CreateAccount)
	claims := jwt.NewAccountClaims(public)
	claims.SigningKeys.Add(signerPublic)
	edge := g.account(asAda)
	var err error
	for subject, kind := range map[jwt.Subject]jwt.ExportType{"nod.v1.request.*.*.*": jwt.Stream, "nod.v1.answer.terminal.*.*": jwt.Service} {
		i := &jwt.Import{Name: string(subject), Account: edge, Type: kind, Subject: subject}
		if seed != "" {
			a := jwt.NewActivationClaims(public)
			a.IssuerAccount, a.ImportSubject, a.ImportType = edge, subject, kind
			i.Token, err = a.Encode(operatorSeed(g.t, g.dir, seed))
			require.NoError(g.t, err)
		}
		claims.Imports.Add(i)
	}
	account := roles.AccountJWT{Account: "OTHER", PublicKey: public}
	account.JWT, err = claims.Encode(operatorSeed(g.t, g.dir, "accounts"))
	require.NoError(g.t, err)
	_, err = bus.PushAccounts(g.t.Context(), g.url, g.keys.PushCreds(), []roles.AccountJWT{account}, quiet())
	require.NoError(g.t, err)

	user, name := newKey(g.t, nkeys.CreateUser)
	c := jwt.NewUserClaims(name)
	c.IssuerAccount = public
	token, err := c.Encode(signer)
	require.NoError(g.t, err)
	nc, err := connectToSlow(g.url, bearerOf(token, user), nats.Timeout(30*time.Second))
	require.NoError(g.t, err)
	g.t.Cleanup(nc.Close)
	return nc
}
