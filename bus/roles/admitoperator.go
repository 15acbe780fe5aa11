package roles

import (
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// In operator mode, the account TOKENS makes a server ask the token service. The server treats a client
// without a JWT as the sentinel, a user of this account without rights. The account tells the server to ask
// the token service about each of the account's users, except the token services themselves. The token
// service replies with a user of the account EDGE, which it has signed with its own key. EDGE gives the users
// that this key has signed the rights of agents.

// noteAdmits stores the public halves of the token service's keys, or that there is no service.
func (o *operator) noteAdmits(a *Admits) error {
	o.state.Admits = a
	text, err := o.state.text()
	if err != nil {
		return err
	}
	return o.store(text)
}

// completeSentinel signs a missing sentinel. The sentinel's own key is not kept, because clients connect
// as the sentinel without it.
func (o *operator) completeSentinel() error {
	if o.state.Sentinel != "" {
		return nil
	}
	public, err := newPublicKey(nkeys.CreateUser)
	if err == nil {
		o.state.Sentinel, err = o.userJWT(sentinelSigner, Tokens, sentinelSigner, public)
	}
	if err != nil {
		return fmt.Errorf("make the sentinel: %w", err)
	}
	return nil
}

// signers lists the signing keys of all accounts. If there is a token service, the list has its key too.
func (s *operatorState) signers() []signer {
	all := signers()
	if s.Admits == nil {
		return all
	}
	for _, agents := range all {
		if agents.name == AgentID(ownName).signer() {
			agents.name = jobSigner
			return append(all, agents)
		}
	}
	return all
}

// signerKey returns the public half of a signing key.
func (s *operatorState) signerKey(name string) string {
	if name == jobSigner {
		return s.Admits.Issuer
	}
	return s.Signers[name]
}

// asksTokenService returns the part of the account TOKENS that makes a server ask the token service. It
// also lists revoked token services, because a server asks only if the list is not empty. With an empty
// list the server would admit the sentinel without a question.
func (s *operatorState) asksTokenService(issued, revoked []User) (a jwt.ExternalAuthorization) {
	for _, u := range append(TokenServices(issued), TokenServices(revoked)...) {
		a.AuthUsers.Add(u.PublicKey)
	}
	if s.Admits != nil {
		a.AllowedAccounts.Add(s.Accounts[Edge])
		a.XKey = s.Admits.XKey
	}
	return a
}

// AdmitConfig returns the lines that make a server in operator mode ask the token service about clients
// without a key, or nothing if there is no token service.
func (k *Keys) AdmitConfig() string {
	if k.operator == nil || k.operator.state.Admits == nil {
		return ""
	}
	return fmt.Sprintf("max_control_line: %d\nauthorization { timeout: %.1f }\ndefault_sentinel: %s\n",
		maxControlLine, AdmitWithin.Seconds(), k.operator.state.Sentinel)
}
