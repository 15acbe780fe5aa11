package roles

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// AdmitSubject is the subject on which a server asks the token service about a client without a key.
const AdmitSubject = "$SYS.REQ.USER.AUTH"

// Admits has the public halves of the keys with which the token service admits agents. Issuer signs the
// users that the service makes. XKey encrypts the messages between the servers and the service.
type Admits struct{ Issuer, XKey string }

// AdmitKeys are the secret halves of Admits. On servers with plain keys, whoever has Issuer can make a user
// with any rights; on servers in operator mode, any agent.
type AdmitKeys struct {
	Issuer, XKey nkeys.KeyPair
	// Asks is the public key that the servers' questions name as their subject: Issuer's own, or in
	// operator mode that of the token service's account.
	Asks string
	// Signs is in operator mode the account of the users that Issuer signs. It is empty for plain keys.
	Signs string
}

// maxControlLine is the greatest length of a CONNECT message, which contains the token, on servers
// that admit agents by tokens. The longest token has 16 kB, and some issuers' tokens are longer than NATS's
// default of 4 kB.
const maxControlLine = 20 << 10

// AdmitWithin is how long a server waits for the token service before it refuses a client. After 2 s the
// server would ping the client, and the client would take the ping for a fault. AdmitWithin is therefore
// shorter.
const AdmitWithin = 1500 * time.Millisecond

// tokenService returns the rights of the token service in its own account, in which only the servers
// send messages: to hear their questions and to reply.
func tokenService() Permissions {
	return Permissions{Subscribe: []string{AdmitSubject}, Responses: true}
}

// callout returns the part of the configuration that makes a server ask the token service about
// clients without a key. It returns nothing if the service has no key. Users with keys never depend
// on the service, because a server would ask about such a user only if allowed_accounts named the
// user's account.
func (c Config) callout() string {
	var keys []string
	var admits Admits
	for _, u := range c.Admitting {
		keys = append(keys, u.PublicKey)
		admits = u.Admits
	}
	if len(keys) == 0 {
		return ""
	}
	return fmt.Sprintf(`max_control_line: %d
authorization {
  timeout: %.1f
  auth_callout {
    issuer: %s
    xkey: %s
    account: %s
    allowed_accounts: [%s]
    auth_users: %s
  }
}
`, maxControlLine, AdmitWithin.Seconds(), admits.Issuer, admits.XKey, Tokens, Tokens, quoteAll(keys))
}

// TokenServices returns those users that are token services.
func TokenServices(users []User) (services []User) {
	for _, u := range users {
		if u.ID.Role == TokenService {
			services = append(services, u)
		}
	}
	return services
}

// The suffixes of the key files that only the token service has.
const (
	issuerSuffix = ".issuer"
	xkeySuffix   = ".xkey"
)

func (k *Keys) admitPath(suffix string) string {
	return admitFile(k.Path(ID{Role: TokenService}), suffix)
}

// addAdmitting makes the AdmitKeys of the token service. It does nothing for other roles, or if the key
// with which the token service connects exists.
func (k *Keys) addAdmitting(id ID) error {
	if _, err := os.Stat(k.Path(id)); id.Role != TokenService || err == nil {
		return nil
	}
	var after []string // the text after the issuer's seed
	if k.operator != nil {
		after = []string{k.operator.state.Accounts[Tokens], k.operator.state.Accounts[Edge]}
	}
	err := writeSeed(k.admitPath(issuerSuffix), nkeys.CreateAccount, after...)
	if err == nil {
		err = writeSeed(k.admitPath(xkeySuffix), nkeys.CreateCurveKeys)
	}
	if err != nil {
		return fmt.Errorf("make a key for %s: %w", id, err)
	}
	if k.operator == nil {
		return nil
	}
	admits, err := k.admits(id)
	if err != nil {
		return err
	}
	return k.operator.noteAdmits(&admits)
}

// removeAdmitting removes the AdmitKeys of the token service. It runs before the key with which the
// service connects is removed. If the process is killed in between, the keys that remain are
// refused as incomplete.
func (k *Keys) removeAdmitting(id ID) error {
	if id.Role != TokenService {
		return nil
	}
	if k.operator != nil {
		if err := k.operator.noteAdmits(nil); err != nil {
			return err
		}
	}
	for _, suffix := range []string{issuerSuffix, xkeySuffix} {
		if err := os.Remove(k.admitPath(suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the key of %s: %w", id, err)
		}
	}
	return nil
}

// ReadAdmitKeys reads the keys with which the token service admits agents. Their files are beside the key
// with which the service connects, and differ from it only in their suffixes.
func ReadAdmitKeys(keyFile string) (keys AdmitKeys, err error) {
	var accounts []string
	if keys.Issuer, accounts, err = readAdmitKey(admitFile(keyFile, issuerSuffix), nkeys.PrefixByteAccount); err != nil {
		return AdmitKeys{}, err
	}
	if keys.XKey, _, err = readAdmitKey(admitFile(keyFile, xkeySuffix), nkeys.PrefixByteCurve); err != nil {
		return AdmitKeys{}, err
	}
	if len(accounts) == 2 {
		keys.Asks, keys.Signs = accounts[0], accounts[1]
		return keys, nil
	}
	keys.Asks, err = keys.Issuer.PublicKey()
	return keys, err
}

// admitFile returns the name of a file beside the key with which the token service connects.
func admitFile(keyFile, suffix string) string {
	return strings.TrimSuffix(strings.TrimSuffix(keyFile, keySuffix), credsSuffix) + suffix
}

// AdmitKeys reads the token service's AdmitKeys in this directory. It refuses files that others may read.
func (k *Keys) AdmitKeys() (AdmitKeys, error) {
	for _, suffix := range []string{issuerSuffix, xkeySuffix} {
		if info, err := os.Stat(k.admitPath(suffix)); err == nil && exposed(info) {
			return AdmitKeys{}, fmt.Errorf("other users may read the key %s (mode %04o): chmod 600 it, or make new ones (nod keys revoke token-service) if others had access", k.admitPath(suffix), info.Mode().Perm())
		}
	}
	return ReadAdmitKeys(k.Path(ID{Role: TokenService}))
}

func (k *Keys) admits(id ID) (a Admits, err error) {
	if id.Role != TokenService {
		return Admits{}, nil
	}
	keys, err := k.AdmitKeys()
	if err != nil {
		return Admits{}, err
	}
	defer keys.Issuer.Wipe()
	defer keys.XKey.Wipe()
	if a.Issuer, err = keys.Issuer.PublicKey(); err == nil {
		a.XKey, err = keys.XKey.PublicKey()
	}
	return a, err
}

// readAdmitKey reads a seed, and the public keys of accounts after it.
func readAdmitKey(path string, kind nkeys.PrefixByte) (pair nkeys.KeyPair, accounts []string, err error) {
	const again = "nod keys revoke token-service, then nod keys add token-service"
	seed, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("the token service lacks a key: %w: copy it beside the others, or %s", err, again)
	}
	defer clear(seed)
	trimmed, rest, _ := bytes.Cut(bytes.TrimSpace(seed), []byte("\n"))
	accounts = strings.Fields(string(rest))
	prefix, _, err := nkeys.DecodeSeed(trimmed)
	switch {
	case err != nil || prefix != kind || slices.ContainsFunc(accounts, notAnAccount) || len(accounts) != 0 && len(accounts) != 2:
		err = nkeys.ErrIncompatibleKey
	case kind == nkeys.PrefixByteCurve:
		pair, err = nkeys.FromCurveSeed(trimmed)
	default:
		pair, err = nkeys.FromSeed(bytes.Clone(trimmed)) // the key pair keeps the slice, so it gets a copy
	}
	if err != nil { // the library's error may quote the seed, so it is left out
		return nil, nil, fmt.Errorf("the key %s is damaged: restore it, or %s", path, again)
	}
	return pair, accounts, nil
}

func notAnAccount(public string) bool { return !nkeys.IsValidPublicAccountKey(public) }

// User signs a user for a client about which a server has asked. The parameter key is the public key in the
// server's question. The user has the rights of the agent id until the time until.
func (a AdmitKeys) User(key string, id ID, until time.Time) (string, error) {
	claims := jwt.NewUserClaims(key)
	claims.Expires = until.Unix()
	if a.Signs != "" { // the account gives the rights, by the name
		claims.Name, claims.IssuerAccount = id.jwtName(), a.Signs
		claims.SetScoped(true)
		return claims.Encode(a.Issuer)
	}
	claims.Name, claims.Audience = id.String(), string(id.Account())
	claims.User.Permissions = id.Permissions().JWT()
	claims.User.AllowedConnectionTypes = jwt.StringList{jwt.ConnectionTypeStandard, jwt.ConnectionTypeWebsocket}
	return claims.Encode(a.Issuer)
}
