package roles

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// AccountJWT is an account of servers in operator mode, as the operator has signed it.
type AccountJWT struct {
	Account   Account
	PublicKey string
	JWT       string
}

// AccountVersions signs all accounts twice, as AccountJWTs does. Running servers must get both versions, one
// after the other.
//
// A server checks a new connection before it adds the connection to its list. While it gets the first
// version, a connection whose key is revoked or whose signing key is removed may have passed the check and
// not be in the list yet, so the server does not close it. With the second version it does. A server looks
// for signing keys that are gone only if the account's signing keys have changed. The first version
// therefore has one signing key more.
func (k *Keys) AccountVersions(now time.Time) iter.Seq2[[]AccountJWT, error] {
	return func(yield func([]AccountJWT, error) bool) {
		for _, further := range []bool{true, false} {
			if all, err := k.signAccounts(now, further); !yield(all, err) || err != nil {
				return
			}
		}
	}
}

// AccountJWTs signs all accounts anew, for servers in operator mode. The accounts list all revoked
// keys, and those replaced keys whose overlap is over at the time in the parameter now. An overlap is
// the time in which a replaced key is still accepted. The caller holds Lock.
func (k *Keys) AccountJWTs(now time.Time) ([]AccountJWT, error) { return k.signAccounts(now, false) }

// signAccounts signs all accounts. If further is true, each account gets one more signing key. The seed of
// this key is not kept, and its users would have no rights.
func (k *Keys) signAccounts(now time.Time, further bool) (all []AccountJWT, err error) {
	if err := k.revokeEarlier(now); err != nil {
		return nil, err
	}
	issued, err := k.operator.users(issuedDir)
	if err != nil {
		return nil, err
	}
	revoked, err := k.operator.users(revokedDir)
	if err != nil {
		return nil, err
	}
	signs, err := k.operator.seed(accountSeed)
	if err != nil {
		return nil, err
	}
	defer signs.Wipe()
	if err := k.operator.awaitNewSecond(); err != nil {
		return nil, err
	}
	for _, a := range accountNames() {
		c := k.operator.state.claims(a, issued, revoked)
		if err := k.operator.addTokens(c); err != nil {
			return nil, err
		}
		if further {
			if err := addFurtherSigner(c); err != nil {
				return nil, err
			}
		}
		var problems jwt.ValidationResults
		if c.Validate(&problems); problems.IsBlocking(true) {
			return nil, fmt.Errorf("describe the account %s: %w", a, problems.Errors()[0])
		}
		token, err := c.Encode(signs)
		if err != nil {
			return nil, fmt.Errorf("sign the account %s: %w", a, err)
		}
		all = append(all, AccountJWT{a, c.Subject, token})
	}
	return all, k.operator.noteSigned()
}

func addFurtherSigner(c *jwt.AccountClaims) error {
	key, err := newPublicKey(nkeys.CreateAccount)
	if err != nil {
		return fmt.Errorf("make a further signing key: %w", err)
	}
	c.SigningKeys.AddScopedSigner(signer{name: "further", rights: Permissions{}.JWT()}.scope(key))
	return nil
}

const (
	signedName = "signed" // this file contains the time of the last signature, to the second
	// clockPatience is how far this machine's clock may be behind the time of the last signature.
	clockPatience = 5 * time.Second
)

// awaitNewSecond waits until the clock second in which the last signature was made is over. A server
// keeps the newer of two JWTs of an account, and compares only their seconds. Within one second, a
// JWT without a revocation could therefore replace a JWT that has the revocation.
func (o *operator) awaitNewSecond() error {
	text, err := os.ReadFile(o.path(signedName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the time of the last signature: %w", err)
	}
	last, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return fmt.Errorf("read the time of the last signature in %s: %w: remove the file if the clock is right", o.path(signedName), err)
	}
	wait := time.Until(time.Unix(last+1, 0))
	if wait > clockPatience {
		return fmt.Errorf("accounts were last signed at %s, which is not yet over: set the clock, because servers keep the newest account", time.Unix(last, 0).Local().Format(time.DateTime))
	}
	time.Sleep(wait)
	return nil
}

func (o *operator) noteSigned() error {
	if err := replace(o.path(signedName), []byte(strconv.FormatInt(time.Now().Unix(), 10)+"\n")); err != nil {
		return fmt.Errorf("note the time of the signature: %w", err)
	}
	return nil
}

// addTokens gives each import of an account a token, which the account that exports the subject has
// signed.
func (o *operator) addTokens(c *jwt.AccountClaims) error {
	signers := map[string]nkeys.KeyPair{}
	for _, i := range c.Imports {
		name := sharesOfStore
		if i.Account == o.state.Accounts[Edge] {
			name = sharesOfEdge
		}
		if signers[name] == nil {
			pair, err := o.seed(name)
			if err != nil {
				return err
			}
			defer pair.Wipe()
			signers[name] = pair
		}
		a := jwt.NewActivationClaims(c.Subject)
		a.Name, a.IssuerAccount, a.ImportSubject, a.ImportType = i.Name, i.Account, i.Subject, i.Type
		token, err := a.Encode(signers[name])
		if err != nil {
			return fmt.Errorf("sign the import of %s: %w", i.Subject, err)
		}
		i.Token = token
	}
	return nil
}

// OperatorConfig returns the configuration of a server in operator mode, which contains no secret. The
// server keeps accounts in the directory resolverDir.
func (k *Keys) OperatorConfig(accounts []AccountJWT, resolverDir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "max_payload: %d\n", MaxPayload)
	b.WriteString(k.AdmitConfig())
	fmt.Fprintf(&b, "operator: %s\nsystem_account: %s\n", k.operator.state.Operator, k.operator.state.Accounts[System])
	// For each account, a server keeps the newer of the stored version and the version in its
	// configuration, so a restart loses no revocation.
	fmt.Fprintf(&b, "resolver: {type: full, dir: %q, allow_delete: false, interval: \"10s\"}\nresolver_preload: {\n", resolverDir)
	for _, a := range accounts {
		fmt.Fprintf(&b, "  # %s\n  %s: %s\n", a.Account, a.PublicKey, a.JWT)
	}
	b.WriteString("}\n")
	return b.String()
}

// PushCreds returns the path of the key file of the user that sends accounts to running servers.
func (k *Keys) PushCreds() string { return k.operator.path(pushName) }

// Name returns the name in the account's JWT.
func (a AccountJWT) Name() string { return jwtAccount(a.Account) }

func jwtAccount(a Account) string { return "nod-" + string(a) }

// Pushed lists the accounts that are sent to running servers. The servers' own account is not among them,
// because it is in their configuration.
func Pushed() []Account { return accountNames()[1:] }

// AccountsOf returns the accounts with these names.
func AccountsOf(accounts []AccountJWT, names ...Account) []AccountJWT {
	return slices.DeleteFunc(slices.Clone(accounts), func(a AccountJWT) bool { return !slices.Contains(names, a.Account) })
}
