package schemas

import (
	"encoding/json"
	"strings"
	"time"
)

// Kind is the kind of a Request.
type Kind string

// The kinds of request.
const (
	KindToolCall   Kind = "tool_call"  // asks whether a tool may run once
	KindPermission Kind = "permission" // asks whether the session may have more permissions
	KindQuestion   Kind = "question"   // asks for a choice, a text, or the approval of a plan; its answer makes no tool run
)

// ActionType is the kind of effect that a tool call has.
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

// OptionKind is what an Option means to nod. Agents choose an option's id and name freely.
type OptionKind string

// The kinds of option.
const (
	AllowOnce    OptionKind = "allow_once"
	AllowAlways  OptionKind = "allow_always"
	RejectOnce   OptionKind = "reject_once"
	RejectAlways OptionKind = "reject_always"
)

// Allows reports whether an option of this kind lets the agent act. For an unknown kind it returns
// false.
func (k OptionKind) Allows() bool { return k == AllowOnce || k == AllowAlways }

// Remembered reports whether the agent itself applies an answer of this kind to later calls. nod does
// not hear of those calls, and cannot revoke such an answer.
func (k OptionKind) Remembered() bool { return k == AllowAlways || k == RejectAlways }

// Option is one of the answers among which a person may choose.
type Option struct {
	OptionID string     `json:"option_id"`
	Name     string     `json:"name"`
	Kind     OptionKind `json:"kind"`
	// Text means that the person must also write a message. The message is then the answer.
	Text bool `json:"text,omitempty"`
}

// DefaultOptions returns the options of a request that lists no options.
func DefaultOptions() []Option {
	return []Option{
		{OptionID: "allow_once", Name: "Allow once", Kind: AllowOnce},
		{OptionID: "reject_once", Name: "Reject", Kind: RejectOnce},
	}
}

// Request is an agent's question in a session: a tool call, a permission, a choice or a text.
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
	// ActionDetails is the tool's input as the agent wrote it, a JSON object. If the host sends the
	// working directory beside the input, the object also has the directory as "cwd".
	ActionDetails json.RawMessage `json:"action_details"`
	// Permissions are tags of the forms @read:<path>, @write:<path>, @network and @network:<host>:<port>.
	Permissions []string `json:"permissions,omitempty"`
	// Reason is the agent's own explanation. It may be false.
	Reason string `json:"reason,omitempty"`

	// AgentName is the name of the agent's program, for people and for HostResolved. Only the request's
	// subject identifies the agent.
	AgentName    string `json:"agent_name,omitempty"`
	Host         string `json:"host,omitempty"`
	User         string `json:"user,omitempty"`
	Project      string `json:"project,omitempty"`
	SessionLabel string `json:"session_label,omitempty"`

	// HostAsks means that the host also asks its own user. This user may answer first.
	HostAsks bool `json:"host_asks,omitempty"`

	// Contain is ContainPossible if the call may run contained: the host accepts changed inputs, the
	// system can contain commands, and the call has a project. Otherwise Contain is empty, or says why
	// not. It is not part of the digest.
	Contain string `json:"contain,omitempty"`
	// NodPath is the absolute path of the nod program that starts contained calls on the request's host.
	// If NodPath is empty, no call of the request's host runs contained. It is not part of the digest.
	NodPath string `json:"nod_path,omitempty"`
	// NodData is the absolute path of the data directory of the nod that a contained call asks. Empty
	// means the default directory. It is not part of the digest.
	NodData string `json:"nod_data,omitempty"`
	// NodURL has the addresses of the NATS servers that a contained call uses. NodCreds is the absolute
	// path of the call's key file. Both are empty if the request's host does not name them. Neither is
	// part of the digest.
	NodURL   string `json:"nod_url,omitempty"`
	NodCreds string `json:"nod_creds,omitempty"`

	Options []Option `json:"options,omitempty"`
	// TimeoutSeconds is the time limit of a request of kind permission. 0 means DefaultPermissionTimeout.
	// Other kinds of request ignore it.
	TimeoutSeconds int       `json:"timeout_seconds,omitempty"`
	CreatedAt      time.Time `json:"created_at"`

	// An agent may send a request several times. Rejoin is set each time, except for the first time with
	// a new id. Revision is the revision in the request's receipt, or 0 if the agent has no receipt. If
	// Revision is set, the engine makes no new record for the request. Rejoin and Revision are neither
	// stored nor part of the digest.
	Rejoin   bool   `json:"rejoin,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
}

// NodProgram says how the shell of a request's host starts nod for a contained call: the path of the
// program, and the data directory, servers and key file that the hook uses. If a field other than Path is
// empty, nod uses the default.
type NodProgram struct{ Path, Data, URL, Creds string }

// Nod returns how the request's host starts nod. Path is empty if the host has not said so.
func (r *Request) Nod() NodProgram { return NodProgram{r.NodPath, r.NodData, r.NodURL, r.NodCreds} }

// SetNod sets how the request's host starts nod.
func (r *Request) SetNod(p NodProgram) {
	r.NodPath, r.NodData, r.NodURL, r.NodCreds = p.Path, p.Data, p.URL, p.Creds
}

// Key returns the key of the request's record.
func (r *Request) Key() string { return Key(r.SessionID, r.PendingID) }

// Offered returns the options from which a person may choose: the request's own options, or
// DefaultOptions if it lists none.
func (r *Request) Offered() []Option {
	if len(r.Options) == 0 {
		return DefaultOptions()
	}
	return r.Options
}

// Option returns the option with this id. The second result is false if the request does not offer it.
func (r *Request) Option(id string) (Option, bool) {
	for _, o := range r.Offered() {
		if o.OptionID == id {
			return o, true
		}
	}
	return Option{}, false
}

// OptionOfKind returns the first option of this kind. The second result is false if the request
// offers no such option.
func (r *Request) OptionOfKind(kind OptionKind) (Option, bool) {
	for _, o := range r.Offered() {
		if o.Kind == kind {
			return o, true
		}
	}
	return Option{}, false
}

// Plan returns the plan that a question asks a person to approve, which is the field "plan" of the
// question's input. The result ok is false if the request asks for something else. If a person
// approves the plan, the agent may act by the plan.
func (r *Request) Plan() (plan string, ok bool) {
	var details map[string]json.RawMessage // a struct would also accept the field "Plan"
	if r.Kind != KindQuestion || json.Unmarshal(r.ActionDetails, &details) != nil {
		return "", false
	}
	if json.Unmarshal(details["plan"], &plan) != nil || strings.TrimSpace(plan) == "" {
		return "", false
	}
	return plan, true
}

// Tier names the rule by which a request got its timeout, and thereby its deadline.
type Tier string

// The tiers, in order. Of the tiers that apply to a request, the first one counts.
const (
	TierRequest      Tier = "request"      // the timeout that the request itself has, for kind permission only
	TierSession      Tier = "session"      // the timeout that nod's owner has set for the session
	TierVoice        Tier = "voice"        // the timeout of voice: an approver's voice client holds the input lock, or only voice reaches an approver who may decide
	TierConnected    Tier = "connected"    // the timeout while another client of an approver holds the input lock
	TierDisconnected Tier = "disconnected" // the timeout while no approver who may decide holds the input lock
)

// Receipt is the engine's reply to a request that is stored and pending.
type Receipt struct {
	Type      string    `json:"type"`
	SessionID string    `json:"session_id"`
	PendingID string    `json:"pending_id"`
	Deadline  time.Time `json:"deadline"` // the deadline, in broker time
	Tier      Tier      `json:"tier"`
	Digest    string    `json:"digest"`
	Revision  uint64    `json:"revision"`
}

// Withdraw withdraws a request, because its agent no longer waits.
type Withdraw struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	PendingID string `json:"pending_id"`
	Reason    string `json:"reason,omitempty"`
	// Detach keeps a tool call pending although its agent no longer waits. If a person allows the call,
	// the agent's next identical call before the deadline is allowed, once.
	Detach bool `json:"detach,omitempty"`
}

// Key returns the key of the request's record.
func (w *Withdraw) Key() string { return Key(w.SessionID, w.PendingID) }

// HostResolved reports that a host has gone on without some of the decisions that it waited for. The
// engine withdraws the requests that wait for these decisions.
type HostResolved struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	// TaskID limits the report to the requests of one task. Empty means the session's main task.
	// WholeSession means all tasks, because the session has ended. The engine then also ends the session's
	// grants that were offered for one session only.
	TaskID       string `json:"task_id,omitempty"`
	WholeSession bool   `json:"whole_session,omitempty"`
	// ToolName limits the report to requests for one tool. With ActionDetails, the report is only about
	// the oldest request for this call. That request may have a different working directory than the
	// call.
	ToolName      string          `json:"tool_name,omitempty"`
	ActionDetails json.RawMessage `json:"action_details,omitempty"`
	// RanMillis is how long the call of ActionDetails ran, in milliseconds. It is nil if the host does
	// not report that. From RanMillis the engine computes when the call started. If the call started
	// while its request was pending, and the request was denied later, the record gets an aftermath.
	RanMillis *int `json:"ran_ms,omitempty"`
	// AgentName extends the report to requests that have this AgentName and not HostAsks, because the
	// agent's program no longer waits for them.
	AgentName string `json:"agent_name,omitempty"`
	// PendingID limits the report to one request. The process that sent the request has ended, so the
	// host will never receive the decision. The engine then ignores the fields above PendingID.
	PendingID string `json:"pending_id,omitempty"`
	Reason    string `json:"reason"`
}

// HostResolvedReply is the reply to a HostResolved. It has the ids of the requests that the engine has
// withdrawn, or that were decided and got an aftermath.
type HostResolvedReply struct {
	Type       string   `json:"type"`
	PendingIDs []string `json:"pending_ids"`
}

// Await asks for the state of up to MaxAwaited requests of one agent.
type Await struct {
	Type     string    `json:"type"`
	Requests []Awaited `json:"requests"`
}

// Awaited is one request in an Await or in its reply. In an Await, Revision is the revision in the
// receipt. In a reply, it is the revision of the record. A reply has Decision or Error if the request is
// no longer pending.
type Awaited struct {
	SessionID string    `json:"session_id"`
	PendingID string    `json:"pending_id"`
	Revision  uint64    `json:"revision,omitempty"`
	Decision  *Decision `json:"decision,omitempty"`
	Error     *Error    `json:"error,omitempty"`
}

// AwaitReply is the reply to an Await. It has the requests in the same order.
type AwaitReply struct {
	Type    string    `json:"type"`
	Results []Awaited `json:"results"`
}
