package roles

import (
	"slices"
	"time"

	"github.com/nats-io/jwt/v2"
)

// JWT returns the permissions in the form that a user's JWT contains.
func (p Permissions) JWT() jwt.Permissions {
	if p.All {
		p = Permissions{Publish: []string{">"}, Subscribe: []string{">"}}
	}
	permissions := jwt.Permissions{Pub: permission(p.Publish, p.DenyPublish), Sub: permission(p.Subscribe, nil)}
	if p.Responses { // what "allow_responses: true" means in a server's configuration
		permissions.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: 2 * time.Minute}
	}
	return permissions
}

// permission returns rights to subjects. If the list of allowed subjects is empty, it denies every
// subject, because a server takes a missing list for "everything".
func permission(allow, deny []string) jwt.Permission {
	if len(allow) == 0 {
		deny = []string{">"}
	}
	return jwt.Permission{Allow: allow, Deny: deny}
}

// System is the servers' own account in operator mode.
const System Account = "SYS"

// signer is a signing key of an account. A user that this key signs has exactly the rights of the
// signer's template, whatever the user's JWT says.
type signer struct {
	name    string
	account Account
	rights  jwt.Permissions
	bearer  bool // its users connect without a proof that they have a key
}

// These signers sign no user of a role.
const (
	pushSigner    = "push"         // signs the user that sends accounts to running servers
	sharesOfStore = "shares-store" // signs the tokens with which accounts import; a user that it signs has no rights
	sharesOfEdge  = "shares-edge"
	// sentinelSigner signs the sentinel. A server treats a client without a key as the sentinel, until the
	// token service has replied. jobSigner signs the agents that the token service admits. Its seed is the
	// token service's own, and is not in the operator's directory.
	sentinelSigner = "sentinel"
	jobSigner      = "job"
)

// In a template, ownName stands for the name in a user's JWT, which the server puts in its place. A
// tag of the JWT would not do, because tags have no upper-case letters.
const ownName = "{{name()}}"

// ClaimsUpdate is the subject on which servers in operator mode receive accounts.
const ClaimsUpdate = "$SYS.REQ.CLAIMS.UPDATE"

// PushInbox is the inbox prefix of the user that sends accounts to running servers.
const PushInbox = "_INBOX.push"

// signers lists the signing keys of all accounts. Each role has one key. The connectors terminal and web
// have one key each, because they have more rights than other connectors.
//
// Whoever has the signing key of agents or connectors chooses the names in the JWTs that it signs, and
// may choose "*". In the subjects of these roles the name follows the verb, and the server drops a right
// whose subject is not valid. Such a user therefore has at most the rights of all agents together, or of
// all connectors together. A name with dots makes longer subjects, which the templates deny.
func signers() []signer {
	var all []signer
	for _, id := range []ID{
		{Role: OwnerStore}, {Role: EngineStore}, {Role: Owner}, {Role: Engine}, ConnectorID(Terminal), ConnectorID(Web),
		ConnectorID(ownName), AgentID(ownName), {Role: Observer}, {Role: TokenService},
	} {
		s := signer{name: id.signer(), account: id.Account(), rights: id.Permissions().JWT()}
		if id.Name == ownName {
			s.rights.Pub.Deny = append(s.rights.Pub.Deny, "nod.v1.*.*.*.*.>")
		}
		if id.Role == CarrierConnector {
			s.rights.Pub.Deny = append(append(s.rights.Pub.Deny, reservedConnectors()...), longerForConnectors...)
			for _, name := range []string{Terminal, Web} {
				s.rights.Sub.Deny.Add(ConnectorID(name).InboxPrefix()+".>", "$SRV.*.nod-connector-"+name, "$SRV.*.nod-connector-"+name+".>")
			}
		}
		all = append(all, s)
	}
	nothing := Permissions{}.JWT()
	return append(all, signer{name: sharesOfStore, account: Store, rights: nothing}, signer{name: sharesOfEdge, account: Edge, rights: nothing},
		signer{name: sentinelSigner, account: Tokens, rights: nothing, bearer: true},
		signer{name: pushSigner, account: System, rights: Permissions{Publish: []string{ClaimsUpdate}, Subscribe: []string{PushInbox + ".>"}}.JWT()})
}

// longerForConnectors are the subjects that result if a connector's name has dots. The templates deny
// them, because otherwise an acknowledgement could name the consumer of another stream.
var longerForConnectors = []string{
	"$JS.ACK.permission_prompts.*.*.*.*.*.*.>", "$JS.API.CONSUMER.MSG.NEXT.permission_prompts.*.>", "_NOD.consumer_info.*.>",
}

// reservedConnectors returns the subjects that contain a connector's name that no worker may have.
func reservedConnectors() (subjects []string) {
	for _, name := range []string{Terminal, Web, ObserverName} {
		subjects = append(subjects, "nod.v1.*."+name, "nod.v1.*."+name+".>")
	}
	return subjects
}

// signer returns the name of the key that signs the users with this ID.
func (id ID) signer() string {
	if id.Role == Agent || id.Role == CarrierConnector {
		return string(id.Role)
	}
	return id.String()
}

// jwtName returns the name in a JWT for this ID. The rights of an agent or a connector depend on this
// name.
func (id ID) jwtName() string {
	if id.Role == Agent || id.Role == CarrierConnector {
		return id.Name
	}
	return id.String()
}

// scope describes the signing key in an account's JWT. The parameter key is its public half.
func (s signer) scope(key string) *jwt.UserScope {
	scope := jwt.NewUserScope()
	scope.Key, scope.Role, scope.Template.Permissions = key, s.name, s.rights
	scope.Template.AllowedConnectionTypes, scope.Template.BearerToken = ConnectionTypes(), s.bearer
	return scope
}

// accountNames lists the accounts of a server in operator mode.
func accountNames() []Account { return []Account{System, Store, Edge, Observe, Tokens} }

// never is the time of every revocation. A revocation refuses JWTs that were signed before its time, so a
// revoked key stays refused for ever.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// claims returns the content of an account's JWT, without the tokens of its imports.
func (s *operatorState) claims(a Account, issued, revoked []User) *jwt.AccountClaims {
	c := jwt.NewAccountClaims(s.Accounts[a])
	c.Name = jwtAccount(a)
	c.DefaultPermissions = Permissions{}.JWT() // for a user that no signer of a role has signed
	for _, sign := range s.signers() {
		if sign.account == a {
			c.SigningKeys.AddScopedSigner(sign.scope(s.signerKey(sign.name)))
		}
	}
	if a == Tokens {
		c.Authorization = s.asksTokenService(issued, revoked)
	}
	for _, u := range revoked {
		if u.Account() == a {
			c.RevokeAt(u.PublicKey, never)
		}
	}
	if a == Store {
		c.Limits.JetStreamLimits = jwt.JetStreamLimits{
			MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit,
			MaxAckPending: jwt.NoLimit, MemoryMaxStreamBytes: jwt.NoLimit, DiskMaxStreamBytes: jwt.NoLimit,
		}
	}
	for _, m := range mappings(a) {
		c.AddMapping(jwt.Subject(m.request), jwt.WeightedMapping{Subject: jwt.Subject(numbered(m.mapped)), Weight: 100})
	}
	for _, sh := range shares() {
		if sh.from == a && !slices.ContainsFunc(shares(), sh.within) {
			c.Exports.Add(sh.export())
		}
		if sh.to == a {
			c.Imports.Add(&jwt.Import{
				Name: sh.subject, Account: s.Accounts[sh.from], Type: sh.exportType(),
				Subject: jwt.Subject(sh.subject), LocalSubject: jwt.RenamingSubject(sh.local),
			})
		}
	}
	return c
}

// within reports whether the other export is of the same account and has a wider subject. The JWT of
// an account must not have both exports. Without the narrower export, imports of its subject still
// work, because their tokens name that subject.
func (s share) within(other share) bool {
	return s.from == other.from && s.stream == other.stream && s.subject != other.subject &&
		jwt.Subject(s.subject).IsContainedIn(jwt.Subject(other.subject))
}

func (s share) export() *jwt.Export {
	e := &jwt.Export{Name: s.subject, Subject: jwt.Subject(s.subject), Type: s.exportType(), TokenReq: true}
	if !s.stream {
		e.ResponseType = jwt.ResponseTypeSingleton
	}
	if s.replies {
		e.ResponseType = jwt.ResponseTypeStream
	}
	return e
}

func (s share) exportType() jwt.ExportType {
	if s.stream {
		return jwt.Stream
	}
	return jwt.Service
}
