package schemas

import (
	"slices"
	"strings"
	"time"
)

// Scope is how far an allow reaches beyond the call that was asked about.
type Scope string

// The scopes; none is ScopeOnce.
const (
	ScopeOnce    Scope = "once"
	ScopeSession Scope = "session" // calls of the session
	ScopeAgent   Scope = "agent"   // calls of the agent, in any session
)

// Always is a remembered "yes" with its exact reach: a parsed command, whole
// or as a prefix of whole words, a path, or a tool, in one project. It allows
// what would be asked and nothing that a rule denies or asks.
type Always struct {
	Tool    string   `json:"tool"`
	Argv    []string `json:"argv,omitempty"`
	Prefix  bool     `json:"prefix,omitempty"` // more words may follow
	Path    string   `json:"path,omitempty"`   // one file, or a directory with / at its end
	Project string   `json:"project,omitempty"`
	// Dirs are where a command may stand that was shown whole: elsewhere the same
	// words are about other files. A runner's may stand anywhere in the project.
	Dirs []string `json:"dirs,omitempty"`
}

// String is the reach as a person is shown it.
func (a *Always) String() string {
	var b strings.Builder
	b.WriteString(a.Tool)
	switch {
	case len(a.Argv) > 0:
		b.WriteString("(" + quoteArgv(a.Argv))
		if a.Prefix {
			b.WriteString(":*")
		}
		b.WriteString(")")
	case a.Path != "":
		b.WriteString("(" + a.Path + ")")
	}
	if a.Project != "" {
		b.WriteString(" in " + a.Project)
	}
	if len(a.Dirs) > 0 && !slices.Equal(a.Dirs, []string{a.Project}) {
		b.WriteString(" at " + strings.Join(a.Dirs, " or "))
	}
	return b.String()
}

// quoteArgv writes words so that a shell reads them back.
func quoteArgv(argv []string) string {
	out := make([]string, len(argv))
	for i, a := range argv {
		if out[i] = a; a == "" || a[0] == '=' || strings.Trim(a, plainBytes) != "" {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// plainBytes mean themselves to every shell where they do not begin a word.
const plainBytes = "=abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:@_"

// Reach is what one answer would allow from then on: all its rules together, or
// all its permission tags.
type Reach struct {
	Rules       []Always `json:"rules,omitempty"`
	Permissions []string `json:"permissions,omitempty"`
}

// String is the reach as a person is shown it.
func (r *Reach) String() string {
	all := slices.Clone(r.Permissions)
	for i := range r.Rules {
		all = append(all, r.Rules[i].String())
	}
	return strings.Join(all, " and ")
}

// Effect is what a standing answer says of the calls that it covers.
type Effect string

// The effects.
const (
	EffectAllow Effect = "allow"
	EffectDeny  Effect = "deny"
)

// StandingAnswer is an answer that outlives its question: it allows or denies
// what it covers until it ends. It covers the calls that its rules match, the
// permissions that it names, or one call that is asked again. It is revocable; an
// ended one is kept for as long as the decision that made it could arrive again.
type StandingAnswer struct {
	GrantID   string `json:"grant_id"`
	Effect    Effect `json:"effect,omitempty"` // empty is EffectAllow
	Scope     Scope  `json:"scope"`
	SessionID string `json:"session_id,omitempty"` // in ScopeSession it holds in this session alone
	Agent     string `json:"agent"`

	Rules       []Always `json:"rules,omitempty"`
	Permissions []string `json:"permissions,omitempty"`
	// Call is the one call that it answers when that is asked again; nil if it
	// covers rules or permissions.
	Call *Call `json:"call,omitempty"`
	// Uses is how many more calls it allows, where Limited.
	Limited bool `json:"limited,omitempty"`
	Uses    int  `json:"uses,omitempty"`

	// Once is one call that was allowed when nobody waited for it any more; nil in
	// any other grant.
	Once *Once `json:"once,omitempty"`

	// DerivedFrom are the grants that a session shared of: revoking one of them
	// revokes this one.
	DerivedFrom []string `json:"derived_from,omitempty"`

	By        By        `json:"by"`
	Question  string    `json:"question,omitempty"` // the pending_id of the request that was answered
	Message   string    `json:"message,omitempty"`  // what the person said with it
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // none: until it is revoked
	RevokedAt time.Time `json:"revoked_at,omitzero"`
	RevokedBy string    `json:"revoked_by,omitempty"`
}

// Call is one exact call of a session.
type Call struct {
	Same     string `json:"same"` // Sameness of the call
	ToolName string `json:"tool_name"`
	Title    string `json:"title,omitempty"` // its payload in short, for a list
}

// Once allows one call, asked once more.
type Once struct {
	Same      string `json:"same"`       // Sameness of the call
	PendingID string `json:"pending_id"` // the request that was allowed
	ToolName  string `json:"tool_name"`
	UsedBy    string `json:"used_by,omitempty"` // the request that it let through
	// UsedAt is when it did: for a while that request finds it again.
	UsedAt time.Time `json:"used_at,omitzero"`
}

// Live reports whether the grant holds at an instant of the broker's time.
func (g *StandingAnswer) Live(now time.Time) bool {
	usedUp := g.Limited && g.Uses < 1 || g.Once != nil && g.Once.UsedBy != ""
	return g.RevokedAt.IsZero() && !usedUp && (g.ExpiresAt.IsZero() || now.Before(g.ExpiresAt))
}

// Reach is what the grant allows, for a person.
func (g *StandingAnswer) Reach() string {
	if g.Once != nil {
		return "once more the " + g.Once.ToolName + " call of " + g.Once.PendingID
	}
	r := Reach{g.Rules, g.Permissions}
	return r.String()
}

// Grants are those of one agent as they are stored, and a page of a listing.
type Grants struct {
	Type   string           `json:"type"`
	Grants []StandingAnswer `json:"grants"`
	Next   string           `json:"next,omitempty"` // After of the next page's query
}

// Revoke ends a grant. Once it is answered, every request asked afterwards is
// judged without the grant.
type Revoke struct {
	Type      string `json:"type"`
	GrantID   string `json:"grant_id"`
	SessionID string `json:"session_id,omitempty"` // of a grant in ScopeSession
	Agent     string `json:"agent,omitempty"`      // of a grant in ScopeAgent
	// From is the approver who ends it, where a connector asks and not the owner.
	From *From `json:"from,omitempty"`
}
