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

// MaxLoginAge is the age of a Login at which it no longer counts. The connector then asks the
// issuer again.
const MaxLoginAge = time.Minute

// Login is a person's login at an issuer of OpenID Connect, as a connector has last checked it.
// The issuer and the subject together are the person; all other fields may change.
type Login struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
	Name    string `json:"name,omitempty"` // a display name, which identifies nobody
	// Groups are the person's groups at the issuer, as far as the settings name them.
	Groups    []string  `json:"groups,omitempty"`
	CheckedAt time.Time `json:"checked_at"` // the time of the check, by the broker's clock
	Later     Later     `json:"-"`
}

// OIDC configures the logins of the web inbox at an issuer of OpenID Connect.
type OIDC struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"client_id"`
	// ClientSecretFile or ClientSecretEnv names the file or the environment variable, on the
	// machine of the web inbox, with the client's secret. Without a secret the client is public,
	// and PKCE alone protects the code.
	ClientSecretFile string `json:"client_secret_file,omitempty"`
	ClientSecretEnv  string `json:"client_secret_env,omitempty"`
	// Scopes are requested beside openid; nil means DefaultScopes.
	Scopes []string `json:"scopes,omitzero"`
	// UserClaim is the claim that identifies a person; empty means sub. No other claim is
	// certain to stay with its person. An e-mail address counts only if the issuer has verified
	// it.
	UserClaim   string `json:"user_claim,omitempty"`
	NameClaim   string `json:"name_claim,omitempty"`   // the claim with the display name; empty means name
	GroupsClaim string `json:"groups_claim,omitempty"` // the claim with the groups; empty means groups
	// Consent makes the issuer show its page of consent at each login. By the standard, an issuer
	// gives no refresh token without this page. Nil means true.
	Consent *bool  `json:"consent,omitempty"`
	Label   string `json:"label,omitempty"` // the issuer's name on the login button; empty means its host
}

// DefaultScopes are the scopes that are requested beside openid if the settings name none.
var DefaultScopes = []string{"profile", "offline_access"}

// The default claims.
const (
	ClaimSubject  = "sub"
	claimName     = "name"
	claimGroups   = "groups"
	ClaimEmail    = "email"
	ClaimVerified = "email_verified"
)

// User, DisplayName and Groups return the names of the claims that identify a person, name the
// person, and list the person's groups.
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

// UserID returns the identity on the web of the person whose claim UserClaim has this value.
// Identities of different issuers, subjects and claims differ, and none of them is an identity
// of a login link.
func (o *OIDC) UserID(value string) string { return o.userPrefix() + value }

func (o *OIDC) userPrefix() string {
	if o.User() == ClaimSubject {
		return o.Issuer + "|"
	}
	return o.Issuer + "|" + o.User() + "="
}

// IsLoginUser reports whether a web identity has the form of OIDC.UserID. Only a person who has
// logged in at an issuer has such an identity.
func IsLoginUser(userID string) bool {
	return strings.Contains(userID, "|") && (strings.HasPrefix(userID, "https://") || strings.HasPrefix(userID, "http://"))
}

// OIDC returns the settings of logins at an issuer, or nil.
func (s *Settings) OIDC() *OIDC {
	if s.Connectors.Web == nil {
		return nil
	}
	return s.Connectors.Web.OIDC
}

// vouches reports whether the issuer of the settings can have vouched for a person of the web
// inbox. It does not check the age of the login.
func (s *Settings) vouches(from *From) bool {
	o, l := s.OIDC(), from.Login
	return o != nil && l != nil && l.Issuer == o.Issuer && l.Subject != "" && strings.HasPrefix(from.UserID, o.userPrefix()) &&
		(o.User() != ClaimSubject || from.UserID == o.UserID(l.Subject))
}

// Wanted returns those of a person's groups at the issuer that the settings name, each once.
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

// memberOf returns the groups of the settings in which a login is, in their order.
func (s *Settings) memberOf(l *Login) (all []Group) {
	for _, g := range s.Groups() {
		if slices.ContainsFunc(g.OIDCGroups, func(name string) bool { return slices.Contains(l.Groups, name) }) {
			all = append(all, g)
		}
	}
	return all
}

// member returns the approver that a person is who has logged in at the issuer and is in one of
// the groups of the settings. The first of these groups limits what the person may decide.
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
	maxShownName    = 48 // in characters
	maxShownSubject = 40
)

// approverName returns the name under which the person's answers are shown and counted. It
// contains the subject, because two people may have the same display name, and may choose it. No
// character of it controls a terminal or the direction of text.
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
		subject = "…" + hex.EncodeToString(sum[:12]) // a subject that is shown whole has no such character
	}
	return strings.TrimSpace(strings.TrimSpace(shown) + " (" + subject + ")")
}

// tellsLoginsApart reports whether each of approvers.people has an identity by the subject at the
// issuer. A person without such an identity, or with one by a claim that the person can change, may
// also be a member of a group by login, and would count as two people.
func (s *Settings) tellsLoginsApart() bool {
	o := s.OIDC()
	return o != nil && (o.User() == ClaimSubject || len(s.People()) == 0) && !slices.ContainsFunc(s.People(), func(a Approver) bool {
		return !slices.ContainsFunc(a.Identities, func(id Identity) bool { return id.Connector == ConnectorWeb && IsLoginUser(id.UserID) })
	})
}

// CountsApart returns FORBIDDEN if an approver may be the same person as another one of the
// settings, so that conditions about several people cannot count the approver.
func (s *Settings) CountsApart(who *Approver) error {
	if !who.ByLogin || s.tellsLoginsApart() {
		return nil
	}
	return Errorf(CodeForbidden, "nod cannot tell whether %s is one of approvers.people: give each of these people an identity at %s by its subject (user_claim sub), or name this person there", who.Name, s.OIDC().Issuer)
}

// couldAllow reports whether a member of the group by login could allow under a rule.
func (s *Settings) couldAllow(g *Group, c *Confirm, accepts func(Identity) bool) bool {
	who := g.Limits()
	return len(g.OIDCGroups) > 0 && who.UpTo(c.Risk) && accepts(Identity{Connector: ConnectorWeb}) &&
		(len(c.People) == 0 || slices.Contains(c.People, g.Name)) &&
		(c.Votes < 2 && !c.NotRequester || s.tellsLoginsApart())
}

// ByLogin reports whether a group of the settings has members by their login.
func (s *Settings) ByLogin() bool {
	return slices.ContainsFunc(s.Groups(), func(g Group) bool { return len(g.OIDCGroups) > 0 })
}

// checkLogins returns an error for an issuer that cannot be trusted, and for groups and
// identities at an issuer that the settings do not have.
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
