package schemas

import (
	"cmp"
	"encoding/json"
	"time"
)

// Settings is the content of settings.json. If a file does not match its JSON Schema, nod refuses the
// whole file and keeps the settings in force.
type Settings struct {
	Schema      string      `json:"$schema,omitempty"` // the JSON Schema for editors; nod does not read this field
	Permissions Permissions `json:"permissions,omitzero"`
	// Policies are further layers of rules, each for certain agents, projects or hosts.
	Policies []PolicyLayer `json:"policies,omitempty"`
	// Approvers names the people who may answer. If it is nil, every answer is refused.
	Approvers  *Approvers `json:"approvers,omitempty"`
	Connectors Connectors `json:"connectors,omitzero"`
	Log        Log        `json:"log,omitzero"`
}

// Log sets what permission_log contains and how large it may become.
type Log struct {
	// Payloads makes the log contain the payload of each request that people were asked about. The
	// command nod policy suggest reads these payloads.
	Payloads bool `json:"payloads,omitempty"`
	// MaxDays is the age in days at which an entry is removed. 0 means DefaultLogDays.
	MaxDays int `json:"max_days,omitempty"`
	// MaxBytes is the greatest size of the log. Beyond it, the oldest entries are removed. 0 means
	// DefaultLogBytes.
	MaxBytes int `json:"max_bytes,omitempty"`
}

// Permissions has the rules, the timeouts, and the options for fewer questions. A deny rule wins over an
// ask rule, an ask rule wins over an allow rule, and every rule wins over the built-in table.
type Permissions struct {
	Allow []string `json:"allow,omitempty"`
	Ask   []string `json:"ask,omitempty"`
	Deny  []string `json:"deny,omitempty"`

	// Preset names the calls that are allowed if no rule matches: design, readers, project or contained.
	// Empty means readers.
	Preset string `json:"preset,omitempty"`

	// HardenGit makes nod add options to allowed git commands that only read, so that git runs no
	// programs from its configuration. The host must accept a changed input. If HardenGit is nil, nod
	// adds the options if the configuration names such a program and the host is known to accept a
	// changed input.
	HardenGit *bool `json:"harden_git,omitempty"`

	// Confirm lists the conditions that an allow of a risky request must meet.
	Confirm []Confirm `json:"confirm,omitempty"`

	// Tools changes nod's built-in list of the access that tools need in a managed session.
	Tools []ToolNeeds `json:"tools,omitempty"`

	ConnectedTimeoutSeconds    int `json:"connected_timeout_seconds,omitempty"`    // the timeout while a client holds the input lock; 0 means 60 s
	DisconnectedTimeoutSeconds int `json:"disconnected_timeout_seconds,omitempty"` // the timeout while no client holds the input lock; 0 means 7 days
	// NotifyAfterSeconds delays prompts to phones and chats while an approver's client holds the
	// session's input lock.
	NotifyAfterSeconds int `json:"notify_after_seconds,omitempty"` // the delay in seconds; 0 means 15 s

	// JoinIdentical makes nod ask only one question for identical calls of a session that are pending at
	// the same time. Nil means true.
	JoinIdentical *bool `json:"join_identical,omitempty"`
	// RememberDenialsSeconds is how long after a person's denial nod denies the same call of the session
	// without a question. Nil means 600. 0 means that a denial denies no later call.
	RememberDenialsSeconds *int `json:"remember_denials_seconds,omitempty"`
	// OpenPrompts is the greatest number of a session's questions that phones and chats show at a time.
	// Nil means
	// 10. 0 means no limit.
	OpenPrompts *int `json:"open_prompts,omitempty"`
}

// ToolNeeds says which access a tool needs in a managed session.
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
	NeedsNothing Need = "nothing" // no access, so the tool needs no permission
)

// PolicyLayer is a set of rules for the calls that Match selects. A deny rule in any layer wins over the
// ask rules of all layers. An ask rule in any layer wins over the allow rules of all layers.
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

// PolicyMatch selects requests by agent, project and host. An empty list matches every request. Agents
// and hosts are names, or patterns with *. Projects are full paths, or PATH/** for a path with everything
// below it.
type PolicyMatch struct {
	Agents   []string `json:"agents,omitempty"`
	Projects []string `json:"projects,omitempty"`
	Hosts    []string `json:"hosts,omitempty"`
}

// Connectors has the settings of each connector.
type Connectors struct {
	Web *WebSettings `json:"web,omitempty"`
	// Channels has the undecoded settings of people connectors, by connector name. In JSON they are
	// members of connectors, beside the other fields.
	Channels map[string]json.RawMessage `json:"-"`
}

// WebSettings configures the web inbox.
type WebSettings struct {
	// PublicURL is the address of the inbox in links that people get. If it is empty, these links have
	// the address on which the inbox listens. It must begin with https:// unless it names this machine.
	PublicURL string `json:"public_url,omitempty"`
	// OIDC lets people log in at an issuer of OpenID Connect. It is nil without such logins.
	OIDC *OIDC `json:"oidc,omitempty"`
}

// The default timeouts, other defaults, and the longest timeout that the settings may contain.
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

// ConnectedTimeout returns the timeout of requests while a client holds the session's input lock.
func (s *Settings) ConnectedTimeout() time.Duration {
	return seconds(s.Permissions.ConnectedTimeoutSeconds, DefaultConnectedTimeout)
}

// DisconnectedTimeout returns the timeout of requests while no client holds the session's input lock.
func (s *Settings) DisconnectedTimeout() time.Duration {
	return seconds(s.Permissions.DisconnectedTimeoutSeconds, DefaultDisconnectedTimeout)
}

// NotifyAfter returns the delay of prompts to carriers while an approver's client holds the session's
// input lock.
func (s *Settings) NotifyAfter() time.Duration {
	return seconds(s.Permissions.NotifyAfterSeconds, DefaultNotifyAfter)
}

// JoinsIdentical reports whether one question decides all identical calls.
func (s *Settings) JoinsIdentical() bool {
	return s.Permissions.JoinIdentical == nil || *s.Permissions.JoinIdentical
}

// RememberDenials returns how long after a person's denial nod denies the same call without a
// question. 0 means that a denial applies to no later call.
func (s *Settings) RememberDenials() time.Duration {
	if n := s.Permissions.RememberDenialsSeconds; n != nil {
		return time.Duration(*n) * time.Second
	}
	return DefaultRememberDenials
}

// OpenPrompts returns the greatest number of a session's questions that carriers show at a time. 0
// means no limit.
func (s *Settings) OpenPrompts() int {
	if n := s.Permissions.OpenPrompts; n != nil {
		return *n
	}
	return DefaultOpenPrompts
}

// LogAge returns the age at which an entry is removed from the log.
func (s *Settings) LogAge() time.Duration {
	return time.Duration(cmp.Or(s.Log.MaxDays, DefaultLogDays)) * 24 * time.Hour
}

// LogBytes returns the size of the log beyond which its oldest entries are removed.
func (s *Settings) LogBytes() int64 { return int64(cmp.Or(s.Log.MaxBytes, DefaultLogBytes)) }

// VoiceTimeout returns the timeout of a request that is asked by voice, which means that a voice
// client holds the input lock, or that only voice reaches an approver who may decide. The timeout
// comes from the settings of the channel voice, or is DefaultVoiceTimeout.
func (s *Settings) VoiceTimeout() time.Duration {
	var voice struct {
		Seconds int `json:"permission_timeout_seconds"`
	}
	_ = json.Unmarshal(s.Connectors.Channels[ClientVoice], &voice) // the channel's schema has checked these settings, so an error here can only mean that they are missing
	return seconds(voice.Seconds, DefaultVoiceTimeout)
}

// SettingsChange puts a settings.json into force.
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
