package schemas

import (
	"slices"
	"strings"
	"time"
)

// Scope says which later calls an allow covers in addition to the answered call.
type Scope string

// The scopes. An empty Scope means ScopeOnce.
const (
	ScopeOnce    Scope = "once"
	ScopeSession Scope = "session" // later calls of the same session
	ScopeAgent   Scope = "agent"   // later calls of the same agent, in any session
)

// Reach is a set of later calls that one answer would allow: those that match one of the Rules, and
// those that need one of the Permissions.
type Reach struct {
	Rules       []RememberedRule `json:"rules,omitempty"`
	Permissions []string         `json:"permissions,omitempty"`
	// Widest is the widest scope for which an answer may choose this reach. Empty means ScopeAgent.
	Widest Scope `json:"widest,omitempty"`
	Later  Later `json:"-"`
}

// MaxSessionOnly is the longest duration of a grant whose reach is offered for a session only.
const MaxSessionOnly = 8 * time.Hour

// SessionOnly reports whether an answer may choose the reach for one session only, and not for longer
// than MaxSessionOnly. A widest scope that this version of nod does not know counts as the narrowest one.
func (r *Reach) SessionOnly() bool { return r.Widest != "" && r.Widest != ScopeAgent }

// Lasts returns how many seconds a grant lasts that chooses the reach for this scope and this number of
// seconds; 0 means until it is revoked. The error is VALIDATION_ERROR if the reach is not offered for this
// scope, or not for so long.
func (r *Reach) Lasts(scope Scope, seconds int) (int, error) {
	switch most := int(MaxSessionOnly / time.Second); {
	case !r.SessionOnly():
		return seconds, nil
	case scope != ScopeSession || r.Widest != ScopeSession:
		return 0, Errorf(CodeValidation, "scope: %s is offered for one session only; allow it for the session, or once", r)
	case seconds > most:
		return 0, Errorf(CodeValidation, "for_seconds: %s is offered for one session only, and for at most %s", r, FormatDuration(MaxSessionOnly))
	case seconds == 0:
		return most, nil
	}
	return seconds, nil
}

// String describes the reach for people.
func (r *Reach) String() string {
	all := slices.Clone(r.Permissions)
	for i := range r.Rules {
		all = append(all, r.Rules[i].String())
	}
	return strings.Join(all, " and ")
}

// Effect says whether a standing answer allows or denies the calls that it covers.
type Effect string

// The effects of a standing answer.
const (
	EffectAllow Effect = "allow"
	EffectDeny  Effect = "deny"
)

// StandingAnswer is an answer that outlives its question. Until it ends or is revoked, it allows or
// denies the calls that it covers: the calls of its rules, those of its permissions, or one exact
// call. An ended answer is kept as long as an engine may handle its decision once more, because the
// engine would otherwise make the answer anew.
type StandingAnswer struct {
	GrantID   string `json:"grant_id"`
	Effect    Effect `json:"effect,omitempty"` // empty means allow
	Scope     Scope  `json:"scope"`
	SessionID string `json:"session_id,omitempty"` // the session whose calls the answer covers, in ScopeSession
	Agent     string `json:"agent"`

	Rules       []RememberedRule `json:"rules,omitempty"`
	Permissions []string         `json:"permissions,omitempty"`
	// Call is the one exact call of an answer without rules and permissions. It is nil in all other
	// answers.
	Call *ExactCall `json:"call,omitempty"`
	// Leave is set in the answer of a leave, which covers the calls of a session whose approver is away.
	// It is nil in all other answers.
	Leave *Leave `json:"leave,omitempty"`
	// SessionOnly is set in a grant whose reach was offered for one session only. It is nil in all other
	// answers.
	SessionOnly *SessionOnly `json:"session_only,omitempty"`
	// Limited means that the answer has a limited number of uses. For has the pending_ids of detached
	// requests, each of which may use the answer once. Uses is the number of remaining uses, and UsedBy
	// lists the past uses.
	Limited bool     `json:"limited,omitempty"`
	Uses    int      `json:"uses,omitempty"`
	For     []string `json:"for,omitempty"`
	UsedBy  []Use    `json:"used_by,omitempty"`

	// DerivedFrom has the grant_ids of the grants from which this grant was shared. If one of them is
	// revoked, this grant is revoked too.
	DerivedFrom []string `json:"derived_from,omitempty"`

	By By `json:"by"`
	// Votes are the allows of all people, if several people had to allow the request.
	Votes     []Vote    `json:"votes,omitempty"`
	Question  string    `json:"question,omitempty"` // the pending_id of the answered request
	Message   string    `json:"message,omitempty"`  // the message that the person wrote with the answer
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // when the answer ends; zero means only when it is revoked
	RevokedAt time.Time `json:"revoked_at,omitzero"`
	RevokedBy string    `json:"revoked_by,omitempty"`
	Later     Later     `json:"-"`
}

// SessionOnly is the part of a grant that is specific to a reach for one session only. Besides its time,
// the end of its session and any freeze end such a grant.
type SessionOnly struct {
	// Freezes is the revision of the stored freezes at the answer. Any later freeze ends the grant.
	Freezes uint64 `json:"freezes,omitempty"`
	Later   Later  `json:"-"`
}

// ExactCall is one exact call of a session.
type ExactCall struct {
	Same     string `json:"same"` // the call's CallDigest
	ToolName string `json:"tool_name"`
	Title    string `json:"title,omitempty"` // the call's command, path, address or title, shortened for lists
	// Contained means that the approval allows the call only contained, with exactly the limits in
	// Container. If Contained is set and Container is nil, which only an older nod has stored, the
	// approval allows nothing.
	Contained bool       `json:"contained,omitempty"`
	Container *Container `json:"container,omitempty"`
	Later     Later      `json:"-"`
}

// SameContainer reports whether two approvals allow their calls in the same way: in containers with the
// same limits, or both without a container.
func (c *ExactCall) SameContainer(o *ExactCall) bool {
	if c.Container == nil || o.Container == nil {
		return c.Contained == o.Contained && c.Container == o.Container
	}
	return c.Contained == o.Contained && c.Container.Equal(*o.Container)
}

// Use is one call that a limited answer has allowed.
type Use struct {
	PendingID string    `json:"pending_id"`
	At        time.Time `json:"at"`
	// Title describes the call for people, shortened. Only the uses of a Leave have it.
	Title string `json:"title,omitempty"`
	Later Later  `json:"-"`
}

// Denies reports whether the answer denies the calls that it covers.
func (g *StandingAnswer) Denies() bool { return g.Effect == EffectDeny }

// Live reports whether the answer is in force. The parameter now is the broker's time.
func (g *StandingAnswer) Live(now time.Time) bool {
	return g.RevokedAt.IsZero() && (!g.Limited || g.Uses > 0) && (g.ExpiresAt.IsZero() || now.Before(g.ExpiresAt))
}

// EndsByFreeze reports whether any freeze ends the answer, and returns the revision of the freezes at the
// answer. The answer is in force only while the freezes have this revision.
func (g *StandingAnswer) EndsByFreeze() (revision uint64, ends bool) {
	switch {
	case g.Leave != nil:
		return g.Leave.Freezes, true
	case g.SessionOnly != nil:
		return g.SessionOnly.Freezes, true
	}
	return 0, false
}

// Reach describes, for people, the calls that the answer covers.
func (g *StandingAnswer) Reach() string {
	switch {
	case g.Call != nil:
		return g.Call.String()
	case g.Leave != nil:
		return g.Leave.String()
	}
	r := Reach{Rules: g.Rules, Permissions: g.Permissions}
	return r.String()
}

// String describes the call for people: its tool and a short form of its payload.
func (c *ExactCall) String() string {
	if c.Title == "" {
		return c.ToolName
	}
	return c.ToolName + "(" + c.Title + ")"
}

// Grants is a page of standing answers. A stored page has exactly one answer.
type Grants struct {
	Type   string           `json:"type"`
	Grants []StandingAnswer `json:"grants"`
	Next   string           `json:"next,omitempty"` // the value for the field After in the query for the next page; empty on the last page
	Later  Later            `json:"-"`
}

// Revoke ends a grant. After the reply, no engine allows a new request by the grant.
type Revoke struct {
	Type      string `json:"type"`
	GrantID   string `json:"grant_id"`
	SessionID string `json:"session_id,omitempty"` // the grant's session, in ScopeSession
	Agent     string `json:"agent,omitempty"`      // the grant's agent, in ScopeAgent
	// From is the approver who ends the grant. It is nil if nod's owner ends the grant.
	From *From `json:"from,omitempty"`
}
