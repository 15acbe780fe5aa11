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
	// Background sessions have nobody looking at them: their questions go to a
	// foreground session of the same user.
	Background bool `json:"background,omitempty"`
	// TimeoutSeconds overrides the timeout tiers; 0 leaves them in force.
	TimeoutSeconds int `json:"timeout_seconds,omitempty"`
	// Permissions are what a managed session holds; nil is not managed.
	Permissions *SessionPermissions `json:"permissions,omitempty"`
	// Grants are the standing answers that count in it, in a reply: they are stored
	// under keys of their own.
	Grants    []StandingAnswer `json:"grants,omitempty"`
	CreatedAt time.Time        `json:"created_at"`
	ActiveAt  time.Time        `json:"active_at"` // to the day
	// Revision is the stored session's, where this answers a query or a change.
	Revision uint64 `json:"revision,omitempty"`
}

// SessionPermissions are what a session holds. Paths are absolute and true: no
// part of one was a symbolic link when it was put here.
type SessionPermissions struct {
	WorkingDir string   `json:"working_dir,omitempty"` // to read and write
	ReadDirs   []string `json:"read_dirs,omitempty"`
	WriteDirs  []string `json:"write_dirs,omitempty"` // to read as well
	Network    bool     `json:"network"`
}

// SessionChange sets what the owner may set of a session. What is absent stays
// as it is.
type SessionChange struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	// TimeoutSeconds replaces the override; 0 removes it.
	TimeoutSeconds *int  `json:"timeout_seconds,omitempty"`
	Background     *bool `json:"background,omitempty"`
	// Permissions makes the session a managed one.
	Permissions *PermissionsChange `json:"permissions,omitempty"`
	// Unmanaged takes the whole set away first.
	Unmanaged bool `json:"unmanaged,omitempty"`
}

// PermissionsChange replaces parts of a session's set. What is absent stays.
type PermissionsChange struct {
	WorkingDir *string   `json:"working_dir,omitempty"` // "" is none
	ReadDirs   *[]string `json:"read_dirs,omitempty"`
	WriteDirs  *[]string `json:"write_dirs,omitempty"`
	Network    *bool     `json:"network,omitempty"`
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
	Type      string     `json:"type"`
	SessionID string     `json:"session_id"`
	PendingID string     `json:"pending_id,omitempty"`
	Kind      NoticeKind `json:"kind"`
	Text      string     `json:"text"`
}

// NoticeKind is what a Notice is about.
type NoticeKind string

// The kinds of notice.
const (
	NoticeShown         NoticeKind = "shown"
	NoticeUndeliverable NoticeKind = "undeliverable"
	NoticeAsked         NoticeKind = "asked"   // a background session asks, in this one's place
	NoticeDecided       NoticeKind = "decided" // and was answered
	NoticeGate          NoticeKind = "gate"    // a scheduled task lacks permissions
)
