package schemas

import (
	"cmp"
	"encoding/json"
	"time"
)

// Settings is the content of settings.json. A file that does not match its JSON Schema is
// refused as a whole, and the settings in force stay.
type Settings struct {
	Schema      string      `json:"$schema,omitempty"` // the JSON Schema for editors; nod does not read this field
	Permissions Permissions `json:"permissions,omitzero"`
	// Policies are further layers of rules for certain agents, projects or hosts.
	Policies []PolicyLayer `json:"policies,omitempty"`
	// Approvers names the people who may answer; if it is nil, every answer is refused.
	Approvers  *Approvers `json:"approvers,omitempty"`
	Connectors Connectors `json:"connectors,omitzero"`
	Log        Log        `json:"log,omitzero"`
}

// Log sets the contents and the size of permission_log.
type Log struct {
	// Payloads adds to the log the payload of each request that people were asked about. The
	// command nod policy suggest reads these payloads.
	Payloads bool `json:"payloads,omitempty"`
	// MaxDays is the age in days at which an entry is removed; 0 means DefaultLogDays.
	MaxDays int `json:"max_days,omitempty"`
	// MaxBytes is the size of the log beyond which the oldest entries are removed; 0 means
	// DefaultLogBytes.
	MaxBytes int `json:"max_bytes,omitempty"`
}

// Permissions contains the rules, the timeouts, and the options by which people are asked less
// often. A deny rule wins over an ask rule, an ask rule over an allow rule, and every rule over
// the built-in table.
type Permissions struct {
	Allow []string `json:"allow,omitempty"`
	Ask   []string `json:"ask,omitempty"`
	Deny  []string `json:"deny,omitempty"`

	// Preset names the calls that are allowed if no rule matches: design, readers or project.
	// Empty means readers.
	Preset string `json:"preset,omitempty"`

	// HardenGit adds options to allowed git commands that only read, so that git runs no
	// programs from its configuration. The host must accept a changed input. Without a value, nod
	// does so if the configuration names such a program and the host is known to accept it.
	HardenGit *bool `json:"harden_git,omitempty"`

	// Confirm lists the conditions for allowing risky requests.
	Confirm []Confirm `json:"confirm,omitempty"`

	// Tools changes nod's built-in list of the access that tools need in a managed session.
	Tools []ToolNeeds `json:"tools,omitempty"`

	ConnectedTimeoutSeconds    int `json:"connected_timeout_seconds,omitempty"`    // the timeout while a client holds the input lock; 0 means 60 s
	DisconnectedTimeoutSeconds int `json:"disconnected_timeout_seconds,omitempty"` // the timeout while no client holds the input lock; 0 means 7 days
	// NotifyAfterSeconds delays prompts to phones and chats while a client of an approver
	// holds the session's input lock.
	NotifyAfterSeconds int `json:"notify_after_seconds,omitempty"` // the delay in seconds; 0 means 15 s

	// JoinIdentical makes identical calls of a session one question while the first call is
	// pending. Nil means true.
	JoinIdentical *bool `json:"join_identical,omitempty"`
	// RememberDenialsSeconds is how long a person's denial also denies the same call of the
	// session. Nil means 600; 0 means not at all.
	RememberDenialsSeconds *int `json:"remember_denials_seconds,omitempty"`
	// OpenPrompts is the number of a session's questions that phones and chats show at a time.
	// Nil means 10; 0 means no limit.
	OpenPrompts *int `json:"open_prompts,omitempty"`
}

// ToolNeeds names the access that a tool needs in a managed session.
type ToolNeeds struct {
	Name  string `json:"name"`
	Needs Need   `json:"needs"`
}

// Need is the access that a tool needs.
type Need string

// The kinds of access that a tool may need.
const (
	NeedsRead    Need = "read"
	NeedsWrite   Need = "write" // access to read and to write
	NeedsNetwork Need = "network"
	NeedsNothing Need = "nothing" // the tool needs no permissions
)

// PolicyLayer is a set of rules for the calls that Match selects. A deny rule in any layer wins
// over all ask rules, and an ask rule in any layer over all allow rules.
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

// PolicyMatch selects requests by agent, project and host. An empty list matches all. Agents
// and hosts are names or patterns with *; projects are full paths, or PATH/** for a path with
// everything below it.
type PolicyMatch struct {
	Agents   []string `json:"agents,omitempty"`
	Projects []string `json:"projects,omitempty"`
	Hosts    []string `json:"hosts,omitempty"`
}

// Connectors has the settings of each connector.
type Connectors struct {
	Web *WebSettings `json:"web,omitempty"`
	// Channels are the undecoded settings of people connectors, by connector name. In JSON they
	// are members of connectors, beside the other fields.
	Channels map[string]json.RawMessage `json:"-"`
}

// WebSettings configures the web inbox.
type WebSettings struct {
	// PublicURL is the address in links for people, if it differs from the address on which the
	// inbox listens. It must begin with https:// unless it names this machine.
	PublicURL string `json:"public_url,omitempty"`
	// OIDC, if not nil, lets people log in at an issuer of OpenID Connect.
	OIDC *OIDC `json:"oidc,omitempty"`
}

// The default timeouts, and the longest timeout in settings.
const (
	DefaultConnectedTimeout    = 60 * time.Second
	DefaultDisconnectedTimeout = 7 * 24 * time.Hour
	DefaultVoiceTimeout        = 300 * time.Second
	DefaultNotifyAfter         = 15 * time.Second
	DefaultRememberDenials     = 10 * time.Minute
	DefaultOpenPrompts         = 10
	DefaultPermissionTimeout   = 15 * time.Minute
	MaxTimeout                 = 30 * 24 * time.Hour
)

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

// ConnectedTimeout returns the timeout while a client holds the input lock.
func (s *Settings) ConnectedTimeout() time.Duration {
	return seconds(s.Permissions.ConnectedTimeoutSeconds, DefaultConnectedTimeout)
}

// DisconnectedTimeout returns the timeout while no client holds the input lock.
func (s *Settings) DisconnectedTimeout() time.Duration {
	return seconds(s.Permissions.DisconnectedTimeoutSeconds, DefaultDisconnectedTimeout)
}

// NotifyAfter returns the delay of prompts to carriers while a client of an approver holds the
// input lock.
func (s *Settings) NotifyAfter() time.Duration {
	return seconds(s.Permissions.NotifyAfterSeconds, DefaultNotifyAfter)
}

// JoinsIdentical reports whether identical calls are decided together.
func (s *Settings) JoinsIdentical() bool {
	return s.Permissions.JoinIdentical == nil || *s.Permissions.JoinIdentical
}

// RememberDenials returns how long a person's denial also denies the same call; 0 means not at
// all.
func (s *Settings) RememberDenials() time.Duration {
	if n := s.Permissions.RememberDenialsSeconds; n != nil {
		return time.Duration(*n) * time.Second
	}
	return DefaultRememberDenials
}

// OpenPrompts returns the number of a session's questions that carriers show at a time; 0 means
// no limit.
func (s *Settings) OpenPrompts() int {
	if n := s.Permissions.OpenPrompts; n != nil {
		return *n
	}
	return DefaultOpenPrompts
}

// LogAge returns the age at which a log entry is removed.
func (s *Settings) LogAge() time.Duration {
	return time.Duration(cmp.Or(s.Log.MaxDays, DefaultLogDays)) * 24 * time.Hour
}

// LogBytes returns the size of the log beyond which the oldest entries are removed.
func (s *Settings) LogBytes() int64 { return int64(cmp.Or(s.Log.MaxBytes, DefaultLogBytes)) }

// VoiceTimeout returns the timeout of a request that is asked by voice: while a voice client holds the
// input lock, or if only voice reaches an approver who may decide. The channel's settings set it, and
// DefaultVoiceTimeout counts if they do not.
func (s *Settings) VoiceTimeout() time.Duration {
	var voice struct {
		Seconds int `json:"permission_timeout_seconds"`
	}
	_ = json.Unmarshal(s.Connectors.Channels[ClientVoice], &voice) // the channel's schema has checked the settings; without them the default counts
	return seconds(voice.Seconds, DefaultVoiceTimeout)
}

// SettingsChange applies a settings.json.
type SettingsChange struct {
	Type     string          `json:"type"`
	Settings json.RawMessage `json:"settings"`
}

// SettingsState is the reply to a SettingsChange and to a query for the settings.
type SettingsState struct {
	Type     string   `json:"type"`
	Revision uint64   `json:"revision"`
	Settings Settings `json:"settings"`
	// Freezes are the freezes in force.
	Freezes []Freeze `json:"freezes,omitempty"`
}
