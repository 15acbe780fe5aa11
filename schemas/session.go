package schemas

import "time"

// Session is one conversation of an agent; permissions, grants and timeout overrides
// belong to it. It belongs to the agent that first asks in it and does not exist for
// other agents.
type Session struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	Agent     string `json:"agent,omitempty"` // empty until the first request
	User      string `json:"user,omitempty"`
	// Background: no person watches this session, so that its questions go to a
	// foreground session of the same user.
	Background bool `json:"background,omitempty"`
	// TimeoutSeconds overrides the timeout tiers; 0 keeps them.
	TimeoutSeconds int `json:"timeout_seconds,omitempty"`
	// Permissions are those of a managed session; nil if it is not managed.
	Permissions *SessionPermissions `json:"permissions,omitempty"`
	// Grants are the standing answers that count in this session. They are set in replies
	// only, and stored under keys of their own.
	Grants    []StandingAnswer `json:"grants,omitempty"`
	CreatedAt time.Time        `json:"created_at"`
	ActiveAt  time.Time        `json:"active_at"` // to the day
	// Revision is that of the stored session, in replies.
	Revision uint64 `json:"revision,omitempty"`
}

// SessionPermissions is the access of a managed session. Paths are absolute, and no part
// of them was a symbolic link when they were added.
type SessionPermissions struct {
	WorkingDir string   `json:"working_dir,omitempty"` // to read and write
	ReadDirs   []string `json:"read_dirs,omitempty"`
	WriteDirs  []string `json:"write_dirs,omitempty"` // to read as well
	Network    bool     `json:"network"`
}

// SessionChange changes the owner's settings of a session. Absent fields stay unchanged.
type SessionChange struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	// TimeoutSeconds replaces the override; 0 removes it.
	TimeoutSeconds *int  `json:"timeout_seconds,omitempty"`
	Background     *bool `json:"background,omitempty"`
	// Permissions also makes the session a managed one.
	Permissions *PermissionsChange `json:"permissions,omitempty"`
	// Unmanaged first removes all permissions.
	Unmanaged bool `json:"unmanaged,omitempty"`
}

// PermissionsChange replaces parts of a session's permissions. Absent fields stay
// unchanged.
type PermissionsChange struct {
	WorkingDir *string   `json:"working_dir,omitempty"` // "" removes it
	ReadDirs   *[]string `json:"read_dirs,omitempty"`
	WriteDirs  *[]string `json:"write_dirs,omitempty"`
	Network    *bool     `json:"network,omitempty"`
}

// PresenceOp is the operation of a Presence.
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

// Presence says that a client is connected to a session, or wants its input lock. It is
// a lease: the client must renew it before it ends.
type Presence struct {
	Type      string     `json:"type"`
	Op        PresenceOp `json:"op"`
	SessionID string     `json:"session_id"`
	ClientID  string     `json:"client_id"`
	Kind      string     `json:"kind"` // terminal, web, voice, …
	From      From       `json:"from"`
}

// Lock answers a Presence with the holder of the session's input lock and the end of the
// lease.
type Lock struct {
	Type       string    `json:"type"`
	Granted    bool      `json:"granted"`
	Holder     string    `json:"holder,omitempty"` // the approver's name
	ClientID   string    `json:"client_id,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	LeaseUntil time.Time `json:"lease_until,omitzero"`
}

// Notice is information for an agent's session. It decides nothing.
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
	NoticeAsked         NoticeKind = "asked"   // a background session asks, and this one shows it
	NoticeDecided       NoticeKind = "decided" // the request of NoticeAsked was answered
	NoticeGate          NoticeKind = "gate"    // a scheduled task lacks permissions
)
