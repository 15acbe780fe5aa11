package roles

import (
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// In operator mode a server knows a token service by the account TOKENS. A client that shows no JWT is taken
// as the sentinel, a user of this account without rights, and the account has the server ask the token
// service about every user but the service itself. The service answers with a user of the account EDGE, whom
// it signs; that account gives what the service signs the rights of agents.

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

// signers lists the signing keys of all accounts, with that of the token service.
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

// asksTokenService returns what makes a server ask the token service. After a revocation it names the
// revoked users: a server that names none would ask nobody, and admit the sentinel.
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
