package schemas

import "time"

// Session is one conversation of an agent, with its permissions, grants and timeout. A session
// belongs to the first agent that uses it. Any other agent that names it gets NOT_FOUND.
type Session struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	Agent     string `json:"agent,omitempty"` // the agent to which the session belongs; empty until its first request
	User      string `json:"user,omitempty"`
	// Background means that no person watches this session. A foreground session of the same user shows
	// its requests.
	Background bool `json:"background,omitempty"`
	// Uncontained means that the session's host once ran a call without a container, although the call
	// was allowed only contained. For later calls of the session, nod asks a person instead of running
	// them contained.
	Uncontained bool `json:"uncontained,omitempty"`
	// TimeoutSeconds replaces the timeouts of the settings. 0 means that the timeouts of the settings
	// apply.
	TimeoutSeconds int `json:"timeout_seconds,omitempty"`
	// Permissions is nil unless the session is managed. The calls of a managed session need permissions.
	Permissions *SessionPermissions `json:"permissions,omitempty"`
	// Grants are the standing answers in force in this session. They are set only in replies, because
	// they are stored under other keys.
	Grants    []StandingAnswer `json:"grants,omitempty"`
	CreatedAt time.Time        `json:"created_at"`
	ActiveAt  time.Time        `json:"active_at"` // when the last request came; it is stored once a day, and so may be a day old
	// Revision is the revision of the stored session. It is set only in replies.
	Revision uint64 `json:"revision,omitempty"`
	Later    Later  `json:"-"`
}

// SessionPermissions is the access of a managed session. All paths are absolute. nod's owner must make
// sure that they contain no symbolic links.
type SessionPermissions struct {
	WorkingDir string   `json:"working_dir,omitempty"` // a directory that the session may read and write
	ReadDirs   []string `json:"read_dirs,omitempty"`
	WriteDirs  []string `json:"write_dirs,omitempty"` // directories that the session may read and write
	Network    bool     `json:"network"`
	Hosts      []string `json:"hosts,omitempty"` // each is a HOST:PORT, for contained commands; other commands need the whole network
	Later      Later    `json:"-"`
}

// SessionChange changes those properties of a session that nod's owner sets. If a field is absent, the
// property stays unchanged.
type SessionChange struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	// TimeoutSeconds replaces the session's timeout. 0 removes the timeout.
	TimeoutSeconds *int  `json:"timeout_seconds,omitempty"`
	Background     *bool `json:"background,omitempty"`
	// Permissions changes the session's permissions, and makes the session managed.
	Permissions *PermissionsChange `json:"permissions,omitempty"`
	// Unmanaged removes all permissions of the session. The change in Permissions comes after that. If
	// Permissions is nil, the session is no longer managed.
	Unmanaged bool `json:"unmanaged,omitempty"`
}

// PermissionsChange replaces parts of a session's permissions. If a field is absent, that part stays
// unchanged.
type PermissionsChange struct {
	WorkingDir *string   `json:"working_dir,omitempty"` // the new working directory; "" removes it
	ReadDirs   *[]string `json:"read_dirs,omitempty"`
	WriteDirs  *[]string `json:"write_dirs,omitempty"`
	Network    *bool     `json:"network,omitempty"`
}

// PresenceOp says what a Presence reports or requests.
type PresenceOp string

// The operations of a Presence.
const (
	PresenceJoin   PresenceOp = "join"
	PresenceRenew  PresenceOp = "renew"
	PresenceLeave  PresenceOp = "leave"
	PresenceLock   PresenceOp = "lock"
	PresenceUnlock PresenceOp = "unlock"
)

// ClientVoice is the name of the voice connector, and also the kind of its clients. Requests that are
// asked by voice have their own timeout.
const ClientVoice = "voice"

// Presence reports that a client is connected to a session, or takes or releases the session's input
// lock. The presence and the lock are leases, which the client must renew before they end.
type Presence struct {
	Type      string     `json:"type"`
	Op        PresenceOp `json:"op"`
	SessionID string     `json:"session_id"`
	ClientID  string     `json:"client_id"`
	Kind      string     `json:"kind"` // the kind of client: terminal, web, voice, …
	From      From       `json:"from"`
}

// Lock is the reply to a Presence: the holder of the session's input lock, and when that lease ends.
// Granted means that the calling client is the holder.
type Lock struct {
	Type       string    `json:"type"`
	Granted    bool      `json:"granted"`
	Holder     string    `json:"holder,omitempty"` // the approver's name
	ClientID   string    `json:"client_id,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	From       *From     `json:"from,omitempty"` // the login of a holder who has logged in at an issuer; only in the store
}
