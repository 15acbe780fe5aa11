package schemas

import "time"

// Session is an agent's working context; permissions, grants and overrides are
// scoped to it. It belongs to the agent that first asks in it; to others it
// does not exist.
type Session struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	Agent     string `json:"agent,omitempty"` // empty until one asks in it
	User      string `json:"user,omitempty"`
	// TimeoutSeconds overrides the timeout tiers; 0 leaves them in force.
	TimeoutSeconds int `json:"timeout_seconds,omitempty"`
	// Grants are those in ScopeSession, ended ones too for a while.
	Grants    []Grant   `json:"grants,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	ActiveAt  time.Time `json:"active_at"` // to the day
}

// SessionChange sets what the owner may set of a session.
type SessionChange struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	// TimeoutSeconds replaces the override; 0 removes it; absent keeps it.
	TimeoutSeconds *int `json:"timeout_seconds,omitempty"`
}

// PresenceOp is what a client says of itself.
type PresenceOp string

// The presence operations.
const (
	PresenceJoin   PresenceOp = "join"
	PresenceRenew  PresenceOp = "renew"
	PresenceLeave  PresenceOp = "leave"
	PresenceLock   PresenceOp = "lock"
	PresenceUnlock PresenceOp = "unlock"
)

// ClientVoice is the kind of a voice client, which has a timeout of its own.
const ClientVoice = "voice"

// Presence says that a client is connected to a session, or wants its input
// lock. The lease must be renewed before it ends.
type Presence struct {
	Type      string     `json:"type"`
	Op        PresenceOp `json:"op"`
	SessionID string     `json:"session_id"`
	ClientID  string     `json:"client_id"`
	Kind      string     `json:"kind"` // terminal, web, voice, …
	From      From       `json:"from"`
}

// Lock answers a Presence: who holds the session's input lock, and until when.
type Lock struct {
	Type       string    `json:"type"`
	Granted    bool      `json:"granted"`
	Holder     string    `json:"holder,omitempty"` // the approver's name
	ClientID   string    `json:"client_id,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	LeaseUntil time.Time `json:"lease_until,omitzero"`
}

// Notice tells an agent's session something that decides nothing.
type Notice struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	PendingID string `json:"pending_id,omitempty"`
	Kind      string `json:"kind"` // shown, undeliverable
	Text      string `json:"text"`
}
