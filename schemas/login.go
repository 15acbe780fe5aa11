package schemas

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/nodbus/nod/internal/loopback"
)

// MaxLoginAge is the age from which on a Login no longer counts. The connector then asks the issuer
// again.
const MaxLoginAge = time.Minute

// Login is a person's login at an issuer of OpenID Connect, as a connector has last checked it. Issuer
// and subject together identify the person. All other fields may change.
type Login struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
	Name    string `json:"name,omitempty"` // a display name, which identifies nobody
	// Groups are those of the person's groups at the issuer that the settings name.
	Groups    []string  `json:"groups,omitempty"`
	CheckedAt time.Time `json:"checked_at"` // the time of the check, by the broker's clock
	Later     Later     `json:"-"`
}

// OIDC configures the logins of the web inbox at an issuer of OpenID Connect.
type OIDC struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"client_id"`
	// ClientSecretFile or ClientSecretEnv names the file or the environment variable with the client's
	// secret, on the machine of the web inbox. Without a secret the client is public in the sense of
	// OAuth, and only PKCE protects the authorization code.
	ClientSecretFile string `json:"client_secret_file,omitempty"`
	ClientSecretEnv  string `json:"client_secret_env,omitempty"`
	// Scopes are requested in addition to openid. Nil means DefaultScopes.
	Scopes []string `json:"scopes,omitzero"`
	// UserClaim is the claim that identifies a person. Empty means sub, the only claim whose value is
	// certain to stay with the same person. An e-mail address counts only if the issuer has verified it.
	UserClaim   string `json:"user_claim,omitempty"`
	NameClaim   string `json:"name_claim,omitempty"`   // the claim with the display name; empty means name
	GroupsClaim string `json:"groups_claim,omitempty"` // the claim with the groups; empty means groups
	// Consent makes the issuer show its page of consent at each login. By the standard, an issuer gives a
	// refresh token only after this page. Nil means true.
	Consent *bool  `json:"consent,omitempty"`
	Label   string `json:"label,omitempty"` // the issuer's name on the login button; empty means its host
}

// DefaultScopes are the scopes that are requested in addition to openid if the settings name none.
var DefaultScopes = []string{"profile", "offline_access"}

// The claims that nod uses by default, and the claims about an e-mail address.
const (
	ClaimSubject  = "sub"
	claimName     = "name"
	claimGroups   = "groups"
	ClaimEmail    = "email"
	ClaimVerified = "email_verified"
)

// User, DisplayName and Groups return the names of three claims: the claim that identifies a person, the
// claim with the person's name, and the claim with the person's groups.
func (o *OIDC) User() string        { return cmp.Or(o.UserClaim, ClaimSubject) }
func (o *OIDC) DisplayName() string { return cmp.Or(o.NameClaim, claimName) }
func (o *OIDC) Groups() string      { return cmp.Or(o.GroupsClaim, claimGroups) }

// Title returns the issuer's name on the login button.
func (o *OIDC) Title() string {
	u, err := url.Parse(o.Issuer)
	if o.Label != "" || err != nil {
		return o.Label
	}
	return u.Host
}

// UserID returns the web identity of the person whose claim UserClaim has this value. Different issuers,
// claims and values give different identities. None of them can be an identity of a login link.
func (o *OIDC) UserID(value string) string { return o.userPrefix() + value }

func (o *OIDC) userPrefix() string {
	if o.User() == ClaimSubject {
		return o.Issuer + "|"
	}
	return o.Issuer + "|" + o.User() + "="
}

// IsLoginUser reports whether a web identity has the form of OIDC.UserID, which only people with a login
// at an issuer have.
func IsLoginUser(userID string) bool {
	return strings.Contains(userID, "|") && (strings.HasPrefix(userID, "https://") || strings.HasPrefix(userID, "http://"))
}

// OIDC returns the settings for logins at an issuer. It returns nil if the settings have no such
// logins.
func (s *Settings) OIDC() *OIDC {
	if s.Connectors.Web == nil {
		return nil
	}
	return s.Connectors.Web.OIDC
}

// vouches reports whether a person's identity in the web inbox agrees with the person's login, and
// whether this login is at the issuer in the settings. It does not check the age of the login.
func (s *Settings) vouches(from *From) bool {
	o, l := s.OIDC(), from.Login
	return o != nil && l != nil && l.Issuer == o.Issuer && l.Subject != "" && strings.HasPrefix(from.UserID, o.userPrefix()) &&
		(o.User() != ClaimSubject || from.UserID == o.UserID(l.Subject))
}

// Wanted returns those of a person's groups at the issuer that the settings name. It returns each group
// once.
func (s *Settings) Wanted(groups []string) (wanted []string) {
	has := make(map[string]bool, len(groups))
	for _, g := range groups {
		has[g] = true
	}
	for _, g := range s.Groups() {
		for _, name := range g.OIDCGroups {
			if has[name] {
				wanted = append(wanted, name)
				has[name] = false
			}
		}
	}
	return wanted
}

// memberOf returns those groups of the settings whose members a login's person is, in the order of
// the settings.
func (s *Settings) memberOf(l *Login) (all []Group) {
	for _, g := range s.Groups() {
		if slices.ContainsFunc(g.OIDCGroups, func(name string) bool { return slices.Contains(l.Groups, name) }) {
			all = append(all, g)
		}
	}
	return all
}

// member returns the approver for a person who has logged in at the issuer and belongs to a group of
// the settings. If the person belongs to several groups, the first group limits what the person may
// decide.
func (s *Settings) member(from *From) (Approver, bool) {
	of := s.memberOf(from.Login)
	name := from.Login.approverName()
	taken := slices.ContainsFunc(s.People(), func(a Approver) bool { return a.Name == name }) ||
		slices.ContainsFunc(s.Groups(), func(g Group) bool { return g.Name == name })
	if len(of) == 0 || taken {
		return Approver{}, false
	}
	return Approver{
		Name: name, Identities: []Identity{{Connector: ConnectorWeb, UserID: from.UserID}},
		For: of[0].For, MaxRisk: of[0].MaxRisk, ByLogin: true, InGroups: groupNames(of),
	}, true
}

func groupNames(all []Group) []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}

const (
	maxShownName    = 48 // both limits are in characters
	maxShownSubject = 40
)

// approverName returns the name under which nod shows and counts the person's answers. The name
// contains the person's subject at the issuer, because people may choose their display names, and two
// people may have the same display name. It contains no characters that control a terminal or the
// direction of text.
func (l *Login) approverName() string {
	shown := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == '(' || r == ')' || r == '@' {
			return -1
		}
		return r
	}, l.Name)
	if runes := []rune(shown); len(runes) > maxShownName {
		shown = string(runes[:maxShownName])
	}
	subject := l.Subject
	if len(subject) > maxShownSubject || strings.ContainsFunc(subject, func(r rune) bool { return r <= ' ' || r > '~' }) {
		sum := sha256.Sum256([]byte(subject))
		subject = "…" + hex.EncodeToString(sum[:12]) // the character … shows that the subject is shortened, because only a subject without this character is shown whole
	}
	return strings.TrimSpace(strings.TrimSpace(shown) + " (" + subject + ")")
}

// tellsLoginsApart reports whether the settings name each person in approvers.people by the person's
// subject at the issuer. A person who is not named so could also be a member of a group by login, and
// would then count as two people. An identity by another claim does not help, because the person may
// be able to change that claim.
func (s *Settings) tellsLoginsApart() bool {
	o := s.OIDC()
	return o != nil && (o.User() == ClaimSubject || len(s.People()) == 0) && !slices.ContainsFunc(s.People(), func(a Approver) bool {
		return !slices.ContainsFunc(a.Identities, func(id Identity) bool { return id.Connector == ConnectorWeb && IsLoginUser(id.UserID) })
	})
}

// CountsApart returns FORBIDDEN if the approver might be the same person as another approver of the
// settings. Conditions about several people do not count such an approver.
func (s *Settings) CountsApart(who *Approver) error {
	if !who.ByLogin || s.tellsLoginsApart() {
		return nil
	}
	return Errorf(CodeForbidden, "nod cannot tell whether %s is one of approvers.people: give each of these people an identity at %s by its subject (user_claim sub), or name this person there", who.Name, s.OIDC().Issuer)
}

// couldAllow reports whether a member of the group by login could allow a request under a rule.
func (s *Settings) couldAllow(g *Group, c *Confirm, accepts func(Identity) bool) bool {
	who := g.Limits()
	return len(g.OIDCGroups) > 0 && who.UpTo(c.Risk) && accepts(Identity{Connector: ConnectorWeb}) &&
		(len(c.People) == 0 || slices.Contains(c.People, g.Name)) &&
		(c.Votes < 2 && !c.NotRequester || s.tellsLoginsApart())
}

// ByLogin reports whether some group of the settings has members by login.
func (s *Settings) ByLogin() bool {
	return slices.ContainsFunc(s.Groups(), func(g Group) bool { return len(g.OIDCGroups) > 0 })
}

// checkLogins returns an error for an issuer whose settings are not safe. It also returns an error for
// groups and identities at an issuer if the settings do not name this issuer.
func (s *Settings) checkLogins() error {
	o := s.OIDC()
	if o != nil {
		const at = "connectors.web.oidc"
		u, err := url.Parse(o.Issuer)
		switch {
		case s.Connectors.Web.PublicURL == "":
			return invalid("connectors.web.public_url", "is missing; the issuer of connectors.web.oidc sends people back to it")
		case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Contains(o.Issuer, "|"):
			return invalid(at+".issuer", "%s is not the address of an issuer, such as https://login.example.com", quote(o.Issuer))
		case u.Scheme != "https" && !loopback.Is(u.Hostname()):
			return invalid(at+".issuer", "must begin with https://")
		case o.ClientSecretEnv != "" && o.ClientSecretFile != "":
			return invalid(at, "name client_secret_env or client_secret_file, not both")
		}
	}
	for i, a := range s.People() {
		for j, id := range a.Identities {
			if id.Connector == ConnectorWeb && IsLoginUser(id.UserID) && (o == nil || !strings.HasPrefix(id.UserID, o.userPrefix())) {
				return invalid(fmt.Sprintf("approvers.people[%d].identities[%d].user_id", i, j), "is of an issuer or a claim that connectors.web.oidc does not name")
			}
		}
	}
	for i, g := range s.Groups() {
		at := fmt.Sprintf("approvers.groups[%d]", i)
		limited := g.MaxRisk != "" || len(g.For.Agents)+len(g.For.Projects)+len(g.For.Hosts) > 0
		switch {
		case len(g.OIDCGroups) > 0 && o == nil:
			return invalid(at+".oidc_groups", "needs an issuer: set connectors.web.oidc")
		case len(g.OIDCGroups) == 0 && len(g.People) == 0:
			return invalid(at, "has nobody: name people or oidc_groups")
		case len(g.OIDCGroups) == 0 && limited:
			return invalid(at, "for and max_risk limit the members of oidc_groups; limit a person under approvers.people")
		}
	}
	return nil
}
