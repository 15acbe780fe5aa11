package schemas

import (
	"cmp"
	"encoding/json"
	"time"
)

// Settings is settings.json. A file that does not match its JSON Schema is
// refused whole, and the running settings stay.
type Settings struct {
	Permissions Permissions `json:"permissions,omitzero"`
	// Policies are further layers of rules for some agents, projects or hosts.
	Policies []PolicyLayer `json:"policies,omitempty"`
	// Approvers may answer; nil lets nobody in.
	Approvers  *Approvers `json:"approvers,omitempty"`
	Connectors Connectors `json:"connectors,omitzero"`
	Log        Log        `json:"log,omitzero"`
}

// Log is what permission_log holds.
type Log struct {
	// Payloads: of what was asked of people also the request, whole, for as long
	// as the log is kept. nod policy suggest reads it.
	Payloads bool `json:"payloads,omitempty"`
	// MaxDays is for how many days an entry is kept at most; 0 is DefaultLogDays.
	MaxDays int `json:"max_days,omitempty"`
	// MaxBytes is how large the log gets before its oldest entries go; 0 is
	// DefaultLogBytes.
	MaxBytes int `json:"max_bytes,omitempty"`
}

// Permissions are the rules and the timeouts. Deny wins over ask, ask over
// allow, and all three over the built-in table.
type Permissions struct {
	Allow []string `json:"allow,omitempty"`
	Ask   []string `json:"ask,omitempty"`
	Deny  []string `json:"deny,omitempty"`

	// Preset is what is allowed where no rule matches: design, readers
	// (default) or project.
	Preset string `json:"preset,omitempty"`

	// HardenGit has git reads that are allowed by themselves run without the
	// programs that a repository's configuration names. The agent's host must
	// be one that takes a changed input.
	HardenGit bool `json:"harden_git,omitempty"`

	// Confirm is what it takes to allow what is risky.
	Confirm []Confirm `json:"confirm,omitempty"`

	// Tools say what else tools need of a session that holds permissions.
	Tools []ToolNeeds `json:"tools,omitempty"`

	ConnectedTimeoutSeconds    int `json:"connected_timeout_seconds,omitempty"`    // default 60
	DisconnectedTimeoutSeconds int `json:"disconnected_timeout_seconds,omitempty"` // default 7 days
	// NotifyAfterSeconds is how long a request that somebody is there for waits
	// before it goes to phones and chats as well.
	NotifyAfterSeconds int `json:"notify_after_seconds,omitempty"` // default 15

	// JoinIdentical has a call that is asked while the very same one is open in its
	// session be decided with it. Default true.
	JoinIdentical *bool `json:"join_identical,omitempty"`
	// RememberDenialsSeconds is how long a person's denial answers the same call of
	// the session as well. Default 600; 0 is not at all.
	RememberDenialsSeconds *int `json:"remember_denials_seconds,omitempty"`
	// OpenPrompts is how many questions of a session phones and chats are shown at a
	// time; more wait for their turn. Default 10; 0 is any number.
	OpenPrompts *int `json:"open_prompts,omitempty"`
}

// ToolNeeds says what a tool needs of a session that holds permissions.
type ToolNeeds struct {
	Name  string `json:"name"`
	Needs Need   `json:"needs"`
}

// Need is the access that a tool needs.
type Need string

// The needs.
const (
	NeedsRead    Need = "read"
	NeedsWrite   Need = "write" // and read
	NeedsNetwork Need = "network"
	NeedsNothing Need = "nothing" // permissions are not about this tool
)

// PolicyLayer is a set of rules for the calls that match. Deny in any layer
// wins, then ask, then allow.
type PolicyLayer struct {
	Match       PolicyMatch `json:"match,omitzero"`
	Permissions Rules       `json:"permissions"`
}

// Rules are the rules of a layer.
type Rules struct {
	Allow []string `json:"allow,omitempty"`
	Ask   []string `json:"ask,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// PolicyMatch says whom a layer is for. An empty list matches everyone; agents
// and hosts are names or patterns with *, projects full paths or PATH/**.
type PolicyMatch struct {
	Agents   []string `json:"agents,omitempty"`
	Projects []string `json:"projects,omitempty"`
	Hosts    []string `json:"hosts,omitempty"`
}

// Connectors are the settings of each connector.
type Connectors struct {
	Voice VoiceSettings `json:"voice,omitzero"`
	Web   *WebSettings  `json:"web,omitempty"`
	// Channels are the settings of people connectors as they are written, by name; see
	// ChannelSettings. In JSON they stand beside the other connectors.
	Channels map[string]json.RawMessage `json:"-"`
}

// WebSettings are the web inbox's.
type WebSettings struct {
	// PublicURL is how people reach it, where that is not the address that it
	// listens on: https://, except on this machine.
	PublicURL string `json:"public_url,omitempty"`
}

// VoiceSettings are the voice connector's.
type VoiceSettings struct {
	PermissionTimeoutSeconds int `json:"permission_timeout_seconds,omitempty"` // default 300
}

// The timeouts in force where settings name none, and the longest allowed.
const (
	DefaultConnectedTimeout    = 60 * time.Second
	DefaultDisconnectedTimeout = 7 * 24 * time.Hour
	DefaultVoiceTimeout        = 300 * time.Second
	DefaultNotifyAfter         = 15 * time.Second
	DefaultRememberDenials     = 10 * time.Minute
	DefaultOpenPrompts         = 10
	DefaultPermissionTimeout   = 15 * time.Minute // of request_permission
	MaxTimeout                 = 30 * 24 * time.Hour
)

// How long and how large the log is kept where settings do not say, and what they
// may say.
const (
	DefaultLogDays  = 90
	DefaultLogBytes = 2 << 30
	MaxLogDays      = 3650
	MinLogBytes     = 64 << 20
	MaxLogBytes     = 1 << 40
)

func seconds(n int, otherwise time.Duration) time.Duration {
	if n == 0 {
		return otherwise
	}
	return time.Duration(n) * time.Second
}

// ConnectedTimeout is in force while somebody holds the input lock.
func (s *Settings) ConnectedTimeout() time.Duration {
	return seconds(s.Permissions.ConnectedTimeoutSeconds, DefaultConnectedTimeout)
}

// DisconnectedTimeout is in force while nobody does.
func (s *Settings) DisconnectedTimeout() time.Duration {
	return seconds(s.Permissions.DisconnectedTimeoutSeconds, DefaultDisconnectedTimeout)
}

// NotifyAfter is how long carriers wait while somebody is there.
func (s *Settings) NotifyAfter() time.Duration {
	return seconds(s.Permissions.NotifyAfterSeconds, DefaultNotifyAfter)
}

// JoinsIdentical reports whether identical calls are decided together.
func (s *Settings) JoinsIdentical() bool {
	return s.Permissions.JoinIdentical == nil || *s.Permissions.JoinIdentical
}

// RememberDenials is how long a denial answers the same call as well.
func (s *Settings) RememberDenials() time.Duration {
	if n := s.Permissions.RememberDenialsSeconds; n != nil {
		return time.Duration(*n) * time.Second
	}
	return DefaultRememberDenials
}

// OpenPrompts is how many questions of a session are shown at a time; 0 is any
// number.
func (s *Settings) OpenPrompts() int {
	if n := s.Permissions.OpenPrompts; n != nil {
		return *n
	}
	return DefaultOpenPrompts
}

// LogAge is for how long an entry of the log is kept at most.
func (s *Settings) LogAge() time.Duration {
	return time.Duration(cmp.Or(s.Log.MaxDays, DefaultLogDays)) * 24 * time.Hour
}

// LogBytes is how large the log gets before its oldest entries go.
func (s *Settings) LogBytes() int64 { return int64(cmp.Or(s.Log.MaxBytes, DefaultLogBytes)) }

// VoiceTimeout is in force while a voice client holds the lock.
func (s *Settings) VoiceTimeout() time.Duration {
	return seconds(s.Connectors.Voice.PermissionTimeoutSeconds, DefaultVoiceTimeout)
}

// SettingsChange applies a settings.json.
type SettingsChange struct {
	Type     string          `json:"type"`
	Settings json.RawMessage `json:"settings"`
}

// SettingsState answers a SettingsChange and a settings query.
type SettingsState struct {
	Type     string   `json:"type"`
	Revision uint64   `json:"revision"`
	Settings Settings `json:"settings"`
	// Freezes are the brakes that are on.
	Freezes []Freeze `json:"freezes,omitempty"`
}
