package schemas

import "time"

// Session is one conversation of an agent, with its permissions, grants and timeout. It belongs
// to the first agent that uses it; other agents get NOT_FOUND.
type Session struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	Agent     string `json:"agent,omitempty"` // the agent to which the session belongs; empty until its first request
	User      string `json:"user,omitempty"`
	// Background means that no person watches this session: a foreground session of the same
	// user shows its requests.
	Background bool `json:"background,omitempty"`
	// Uncontained means that the session's host ran a call without its container, although the
	// call was allowed only contained. Later calls of the session ask instead of running
	// contained.
	Uncontained bool `json:"uncontained,omitempty"`
	// TimeoutSeconds replaces the timeouts of the settings; 0 leaves them in force.
	TimeoutSeconds int `json:"timeout_seconds,omitempty"`
	// Permissions is nil unless the session is managed. The calls of a managed session need
	// permissions.
	Permissions *SessionPermissions `json:"permissions,omitempty"`
	// Grants are the standing answers in force in this session. Only replies set them; the
	// store has them under other keys.
	Grants    []StandingAnswer `json:"grants,omitempty"`
	CreatedAt time.Time        `json:"created_at"`
	ActiveAt  time.Time        `json:"active_at"` // the time of the last request, stored once a day and so up to a day old
	// Revision is the revision of the stored session. Only replies set it.
	Revision uint64 `json:"revision,omitempty"`
	Later    Later  `json:"-"`
}

// SessionPermissions is the access of a managed session. Paths are absolute. nod's owner must
// make sure that they contain no symbolic links.
type SessionPermissions struct {
	WorkingDir string   `json:"working_dir,omitempty"` // a directory that the session may read and write
	ReadDirs   []string `json:"read_dirs,omitempty"`
	WriteDirs  []string `json:"write_dirs,omitempty"` // directories that the session may read and write
	Network    bool     `json:"network"`
	Hosts      []string `json:"hosts,omitempty"` // each is a HOST:PORT, for contained commands; other commands need the whole network
	Later      Later    `json:"-"`
}

// SessionChange changes the properties of a session that nod's owner sets. A property whose
// field is absent stays unchanged.
type SessionChange struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	// TimeoutSeconds replaces the session's timeout; 0 removes it.
	TimeoutSeconds *int  `json:"timeout_seconds,omitempty"`
	Background     *bool `json:"background,omitempty"`
	// Permissions changes the permissions, and makes the session managed.
	Permissions *PermissionsChange `json:"permissions,omitempty"`
	// Unmanaged removes all permissions before Permissions is applied. If Permissions is nil,
	// the session is no longer managed.
	Unmanaged bool `json:"unmanaged,omitempty"`
}

// PermissionsChange replaces parts of a session's permissions. A part whose field is absent
// stays unchanged.
type PermissionsChange struct {
	WorkingDir *string   `json:"working_dir,omitempty"` // the new working directory; "" removes it
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

// ClientVoice is the connector of voice, and the kind of its clients. They have a timeout of their own.
const ClientVoice = "voice"

// Presence reports that a client is connected to a session, or takes or releases the session's
// input lock. Connection and lock are leases, which the client must renew before they end.
type Presence struct {
	Type      string     `json:"type"`
	Op        PresenceOp `json:"op"`
	SessionID string     `json:"session_id"`
	ClientID  string     `json:"client_id"`
	Kind      string     `json:"kind"` // the kind of client: terminal, web, voice, …
	From      From       `json:"from"`
}

// Lock is the reply to a Presence: the holder of the session's input lock and the end of that
// lease. Granted means that the calling client holds the lock.
type Lock struct {
	Type       string    `json:"type"`
	Granted    bool      `json:"granted"`
	Holder     string    `json:"holder,omitempty"` // the approver's name
	ClientID   string    `json:"client_id,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	From       *From     `json:"from,omitempty"` // a holder by login; only in the store
}
