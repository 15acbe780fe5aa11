package schemas

import (
	"encoding/json"
	"time"
)

// Kind is what a Request asks about.
type Kind string

// The kinds of request.
const (
	KindToolCall   Kind = "tool_call"  // run this tool once
	KindPermission Kind = "permission" // hold these permission tags
	KindQuestion   Kind = "question"   // answer a question that grants nothing
)

// ActionType is the sort of effect a tool call has.
type ActionType string

// The action types.
const (
	ActionCommand   ActionType = "command"
	ActionFileWrite ActionType = "file_write"
	ActionFileRead  ActionType = "file_read"
	ActionNetwork   ActionType = "network"
	ActionMCPTool   ActionType = "mcp_tool"
	ActionOther     ActionType = "other"
)

// OptionKind is what choosing an Option means. An option's id is opaque; its
// meaning comes from its kind alone.
type OptionKind string

// The kinds of option.
const (
	AllowOnce    OptionKind = "allow_once"
	AllowAlways  OptionKind = "allow_always"
	RejectOnce   OptionKind = "reject_once"
	RejectAlways OptionKind = "reject_always"
)

// Allows reports whether choosing an option of this kind lets the agent go on.
// An unknown kind does not.
func (k OptionKind) Allows() bool { return k == AllowOnce || k == AllowAlways }

// Remembered reports whether the agent keeps such an answer for later calls by
// itself. nod does not know which calls those are, and cannot take it back.
func (k OptionKind) Remembered() bool { return k == AllowAlways || k == RejectAlways }

// Option is one answer that a person may choose.
type Option struct {
	OptionID string     `json:"option_id"`
	Name     string     `json:"name"`
	Kind     OptionKind `json:"kind"`
	// Text: choosing it takes a message, which is the answer.
	Text bool `json:"text,omitempty"`
}

// DefaultOptions are offered when a request names none.
func DefaultOptions() []Option {
	return []Option{
		{OptionID: "allow_once", Name: "Allow once", Kind: AllowOnce},
		{OptionID: "reject_once", Name: "Reject", Kind: RejectOnce},
	}
}

// Request is what an agent asks: an action, a permission or a question, in a
// session, with options and a deadline.
type Request struct {
	Type       string `json:"type"`
	PendingID  string `json:"pending_id"`
	SessionID  string `json:"session_id"`
	TaskID     string `json:"task_id,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
	Kind       Kind   `json:"kind"`
	Title      string `json:"title"`
	ToolName   string `json:"tool_name,omitempty"`

	ActionType ActionType `json:"action_type"`
	// ActionDetails is the tool's input as the agent gave it, an object, with
	// "cwd" added where the host says it beside the input.
	ActionDetails json.RawMessage `json:"action_details"`
	// Permissions are tags: @read:<path>, @write:<path>, @network.
	Permissions []string `json:"permissions,omitempty"`
	// Reason is in the agent's own words and proves nothing.
	Reason string `json:"reason,omitempty"`

	// Display only; who asks is told by the subject.
	AgentName    string `json:"agent_name,omitempty"`
	Host         string `json:"host,omitempty"`
	User         string `json:"user,omitempty"`
	Project      string `json:"project,omitempty"`
	SessionLabel string `json:"session_label,omitempty"`

	// HostAsks says that the host asks its own user the same, so that it may have
	// been answered there.
	HostAsks bool `json:"host_asks,omitempty"`

	Options []Option `json:"options,omitempty"`
	// TimeoutSeconds is honoured for kind permission only; 0 leaves it to the
	// timeout policy.
	TimeoutSeconds int       `json:"timeout_seconds,omitempty"`
	CreatedAt      time.Time `json:"created_at"`

	// Rejoin is set on every send but the first of a fresh id. Revision, from
	// the receipt, makes a re-ask that never creates. Neither is part of the
	// digest or of what is stored.
	Rejoin   bool   `json:"rejoin,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
}

// Key is the request's record key.
func (r *Request) Key() string { return Key(r.SessionID, r.PendingID) }

// Offered are the options to choose from: the default ones where the request names
// none.
func (r *Request) Offered() []Option {
	if len(r.Options) == 0 {
		return DefaultOptions()
	}
	return r.Options
}

// Option returns the offered option with this id.
func (r *Request) Option(id string) (Option, bool) {
	for _, o := range r.Offered() {
		if o.OptionID == id {
			return o, true
		}
	}
	return Option{}, false
}

// OptionOfKind returns the first offered option of a kind.
func (r *Request) OptionOfKind(kind OptionKind) (Option, bool) {
	for _, o := range r.Offered() {
		if o.Kind == kind {
			return o, true
		}
	}
	return Option{}, false
}

// Tier names the row of the timeout policy that set a deadline.
type Tier string

// The tiers, in the order in which they are tried.
const (
	TierRequest      Tier = "request"      // the request's own, kind permission
	TierSession      Tier = "session"      // the session's override
	TierVoice        Tier = "voice"        // the lock's holder is a voice client
	TierConnected    Tier = "connected"    // somebody holds the input lock
	TierDisconnected Tier = "disconnected" // nobody does
)

// Receipt says that a request is stored and waits for a person.
type Receipt struct {
	Type      string    `json:"type"`
	SessionID string    `json:"session_id"`
	PendingID string    `json:"pending_id"`
	Deadline  time.Time `json:"deadline"` // broker time
	Tier      Tier      `json:"tier"`
	Digest    string    `json:"digest"`
	Revision  uint64    `json:"revision"`
}

// Withdraw takes a request back: its asker no longer waits.
type Withdraw struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	PendingID string `json:"pending_id"`
	Reason    string `json:"reason,omitempty"`
	// Detach leaves a tool call open that its asker cannot wait for any longer:
	// allowed, it may be asked once more and run until the deadline.
	Detach bool `json:"detach,omitempty"`
}

// HostResolved says that a host has gone on without some of the answers that it was
// waiting for: what they were about is withdrawn.
type HostResolved struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	// TaskID is the task that went on, empty for the session's own; WholeSession is
	// all of them.
	TaskID       string `json:"task_id,omitempty"`
	WholeSession bool   `json:"whole_session,omitempty"`
	// ToolName narrows it to the requests of one tool, and with its ActionDetails to
	// the one oldest request about that call, in whichever directory.
	ToolName      string          `json:"tool_name,omitempty"`
	ActionDetails json.RawMessage `json:"action_details,omitempty"`
	// RanMillis, with ActionDetails, is how long that call ran, in milliseconds; nil
	// if the host does not say. It tells when the call began: a call that began while
	// its request was open, and was denied only then, ran all the same.
	RanMillis *int `json:"ran_ms,omitempty"`
	// AgentName widens it to the requests of this agent program that its host does
	// not ask its own user about: the program waits for none of them any more.
	AgentName string `json:"agent_name,omitempty"`
	// PendingID is the one request that it is about, and nothing else narrows it:
	// its asker is gone, and the host will never hear the answer.
	PendingID string `json:"pending_id,omitempty"`
	Reason    string `json:"reason"`
}

// HostResolvedReply answers a HostResolved: the requests that it ended, or that it told
// something of that had ended before.
type HostResolvedReply struct {
	Type       string   `json:"type"`
	PendingIDs []string `json:"pending_ids"`
}

// Await asks how up to MaxAwaited requests of one agent stand.
type Await struct {
	Type     string    `json:"type"`
	Requests []Awaited `json:"requests"`
}

// Awaited is one request in an Await and in its reply. Revision is the
// receipt's in the question and the record's in the reply; Decision and Error
// are set in the reply alone, and neither while the request is pending.
type Awaited struct {
	SessionID string    `json:"session_id"`
	PendingID string    `json:"pending_id"`
	Revision  uint64    `json:"revision,omitempty"`
	Decision  *Decision `json:"decision,omitempty"`
	Error     *Error    `json:"error,omitempty"`
}

// AwaitReply answers an Await, in its order.
type AwaitReply struct {
	Type    string    `json:"type"`
	Results []Awaited `json:"results"`
}
