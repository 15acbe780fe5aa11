package web

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

// envelope is the format of every message from the gateway. A reply repeats the id and the action of
// the request.
type envelope struct {
	ID        string    `json:"id,omitempty"`
	Type      string    `json:"type"`
	Action    string    `json:"action"`
	Payload   any       `json:"payload,omitempty"`
	Timestamp time.Time `json:"timestamp"`
}

// The types of envelope.
const (
	typeRequest      = "request"
	typeResponse     = "response"
	typeNotification = "notification"
	typeError        = "error"
)

// The actions of the gateway's notifications.
const (
	notifyRequested = "session.permission.requested"
	notifyResolved  = "session.permission.resolved"
	notifyDecided   = "session.permission.decided" // a rule decided a request; only subscribers of its session get this
	notifyTime      = "server.time"
	notifyCount     = "inbox.count" // only clients that subscribe to the inbox with a limit get this
)

// clientMessage is an envelope from a client.
type clientMessage struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Action  string          `json:"action"`
	Payload json.RawMessage `json:"payload"`
}

// requestView is a pending request. Title, action details and other texts of the agent are unchanged.
// The summary, the parts and the labels are sanitised for display.
type requestView struct {
	PendingID     string             `json:"pending_id"`
	SessionID     string             `json:"session_id"`
	TaskID        string             `json:"task_id,omitempty"`
	ToolCallID    string             `json:"tool_call_id,omitempty"`
	Title         string             `json:"title"`
	Options       []option           `json:"options"`
	ActionType    schemas.ActionType `json:"action_type"`
	ActionDetails json.RawMessage    `json:"action_details"`
	CreatedAt     time.Time          `json:"created_at"`

	Kind     schemas.Kind `json:"kind"`
	ToolName string       `json:"tool_name,omitempty"`
	Agent    string       `json:"agent"`
	// These fields contain the agent's own names for itself and for the session, and the name of the
	// project's directory. They are sanitised for display.
	AgentName    string       `json:"agent_name,omitempty"`
	SessionLabel string       `json:"session_label,omitempty"`
	Project      string       `json:"project,omitempty"`
	Risk         schemas.Risk `json:"risk"`
	Digest       string       `json:"digest"`
	Deadline     time.Time    `json:"deadline"`
	ServerTime   time.Time    `json:"server_time"` // when this view was sent, in broker time like Deadline
	Summary      string       `json:"summary"`
	Parts        []part       `json:"parts"`
	Exact        []part       `json:"exact"` // the input as the agent sent it
	// Remember describes the rules that a lasting answer can store. The field reach of an answer is the
	// index of a rule in this list.
	Remember []string `json:"remember"`
	// SessionOnly has the indexes of those rules that an answer can store for one session only, and for at
	// most schemas.MaxSessionOnly.
	SessionOnly []int `json:"session_only,omitempty"`
	// Takes lists the conditions of an allow, such as the code word. CodeWord is true if the code word is
	// one of them.
	Takes    []string `json:"takes"`
	CodeWord bool     `json:"code_word"`
	// Waiters is the number of identical calls so far; an answer must repeat this number. Waiting is the
	// number of those calls that still wait. Times is "×3" if Waiting is 3, and empty if Waiting is less
	// than 2.
	Waiters int    `json:"waiters"`
	Waiting int    `json:"waiting"`
	Times   string `json:"times,omitempty"`
	// Same is a hash of the request as people see it. Two requests have the same hash if they
	// differ only in their ids, sessions, deadlines and numbers of calls.
	Same string `json:"same"`

	// New is true if the request arrived after the client's subscription.
	New bool `json:"new,omitempty"`

	version string // a text that changes whenever the page must show something else
}

// option is one possible answer. Label describes its effect, in nod's words. Called is the
// agent's name for the option. Remembered means that the agent itself applies the choice to later
// calls.
type option struct {
	schemas.Option
	Label      string `json:"label"`
	Remembered bool   `json:"remembered"`
	Called     string `json:"called"`
}

// part is a people.Part in JSON. Spans contains the spans of each line, or of a caption's label. A
// span is one piece of a line; a line without styles is one span.
type part struct {
	Label   string   `json:"label"`
	Field   bool     `json:"field,omitempty"`
	Quote   bool     `json:"quote,omitempty"`
	Caption bool     `json:"caption,omitempty"`
	Look    bool     `json:"look,omitempty"`
	Group   string   `json:"group"` // "essential", "about" or "rest"
	Lines   []string `json:"lines"`
	Spans   [][]span `json:"spans,omitempty"`
}

// span is a piece of a line with one style: see payload.Style.
type span struct {
	Text  string        `json:"text"`
	Style payload.Style `json:"style,omitempty"`
}

var groupNames = map[people.Group]string{people.Essential: "essential", people.About: "about", people.Rest: "rest"}

func partsIn(all []people.Part) []part {
	out := make([]part, len(all))
	for i, p := range all {
		out[i] = part{p.Label, p.Field, p.Quote, p.Caption, p.Look, groupNames[p.Group], append([]string{}, p.Lines...), nil}
		lines := p.Lines
		if p.Caption {
			lines = []string{p.Label}
		}
		for n := range p.Spans {
			out[i].Spans = append(out[i].Spans, spansOf(lines[n], p.Spans[n]))
		}
	}
	return out
}

func spansOf(line string, styles []payload.Span) []span {
	all, at := []span{}, 0
	for _, s := range append(styles[:len(styles):len(styles)], payload.Span{From: len(line), To: len(line)}) {
		if at < s.From {
			all = append(all, span{Text: line[at:s.From]})
		}
		if s.From < s.To {
			all = append(all, span{line[s.From:s.To], s.Style})
		}
		at = s.To
	}
	return all
}

const summaryWidth = 120

func newRequestView(p *schemas.Prompt, now time.Time) *requestView {
	r := &p.Request
	q := &requestView{
		PendingID: p.PendingID, SessionID: p.SessionID, TaskID: r.TaskID, ToolCallID: r.ToolCallID, Title: r.Title,
		Options: optionsOf(r), ActionType: r.ActionType, ActionDetails: r.ActionDetails, CreatedAt: r.CreatedAt,
		AgentName: people.Line(r.AgentName), SessionLabel: people.Line(r.SessionLabel), Project: people.ProjectName(r.Project),
		Kind: r.Kind, ToolName: r.ToolName, Agent: p.Agent, Risk: p.Risk, Digest: p.Digest, Deadline: p.Deadline,
		Summary: people.Summary(p, summaryWidth), Remember: []string{}, Takes: []string{}, CodeWord: p.HasCondition(schemas.ConditionCodeWord),
		Waiters: p.Waiters, Waiting: p.Waiting, Times: people.Times(p),
	}
	parts := people.Parts(p, now)
	q.Parts, q.Exact = partsIn(parts), partsIn(people.Exact(p))
	for i := range p.Remember {
		q.Remember = append(q.Remember, people.Line(p.Remember[i].String()))
		if p.Remember[i].SessionOnly() {
			q.SessionOnly = append(q.SessionOnly, i)
		}
	}
	for _, t := range p.Conditions {
		q.Takes = append(q.Takes, people.Line(t))
	}
	q.Same = q.same(parts)
	q.version = fmt.Sprint(q.Same, q.Waiters, q.Waiting, q.Deadline.UnixNano(), p.Detached)
	return q
}

// ownParts are labels of parts that nod writes. These parts may differ between
// identical requests.
var ownParts = []string{"Request", "Session", "Calls", "Expires"}

// same returns a hash of the agent, the options, the parts except ownParts, and the action details
// exactly as the agent sent them.
func (q *requestView) same(parts []people.Part) string {
	var rest []people.Part
	for _, p := range parts {
		if p.Field || p.Quote || !slices.Contains(ownParts, p.Label) {
			rest = append(rest, p)
		}
	}
	data, _ := schemas.Encode([]any{q.Agent, q.Options, rest, q.ActionDetails}) // Encode never fails, because ActionDetails is valid JSON
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// optionsOf returns the options with their labels. A label contains the agent's name for the option if
// several options have the same kind, or if the agent remembers the choice.
func optionsOf(r *schemas.Request) []option {
	offered := r.Offered()
	kinds := map[schemas.OptionKind]int{}
	for _, o := range offered {
		kinds[o.Kind]++
	}
	all := make([]option, len(offered))
	for i, o := range offered {
		all[i] = option{o, people.OptionWords(r, o), o.Kind.Remembered(), people.Line(o.Name)}
		if r.Kind == schemas.KindQuestion {
			all[i].Label = people.Choice(r, o)
		} else if kinds[o.Kind] > 1 || o.Kind.Remembered() {
			all[i].Label += ": " + people.Line(o.Name)
		}
	}
	return all
}

// resolvedNotice reports the end of a request. Text describes the outcome in one line.
type resolvedNotice struct {
	SessionID  string            `json:"session_id"`
	PendingID  string            `json:"pending_id"`
	Decision   *schemas.Decision `json:"decision"`
	Text       string            `json:"text"`
	ServerTime time.Time         `json:"server_time"`
}

// listReply is the reply to permissions.list.
type listReply struct {
	Permissions []requestView `json:"permissions"`
	Next        string        `json:"next,omitempty"` // for the next page, a client sends this as "after"
	ServerTime  time.Time     `json:"server_time"`
}

// subscribeReply is the reply to a subscription. Pending is the number of pending requests that the
// gateway sends next. It sends each of these requests first as pending, even if the request has ended by
// then. Unlisted is the number of pending requests beyond the limit of the subscription to the inbox.
type subscribeReply struct {
	Success   bool   `json:"success"`
	SessionID string `json:"session_id,omitempty"`
	Pending   int    `json:"pending"`
	Unlisted  int    `json:"unlisted"`
}

// countNotice is the number of pending requests beyond the limit of a client's subscription.
type countNotice struct {
	Unlisted   int       `json:"unlisted"`
	ServerTime time.Time `json:"server_time"`
}

// respondReply is the reply to permission.respond.
type respondReply struct {
	Success  bool             `json:"success"`
	Decision schemas.Decision `json:"decision"`
	Text     string           `json:"text"`
}

// timeNotice reports the time, the freezes, and whether this gateway can reach nod.
type timeNotice struct {
	ServerTime time.Time    `json:"server_time"`
	Reachable  bool         `json:"reachable"`
	Frozen     []freezeView `json:"frozen"`
}

// freezeReply is the reply to brake.show, brake.freeze and brake.thaw.
type freezeReply struct {
	Frozen []freezeView `json:"frozen"`
	Denied int          `json:"denied"`         // number of pending requests that a freeze has denied
	Text   string       `json:"text,omitempty"` // a warning to show, if any
}

// pushReply is the reply to the actions about pushes.
type pushReply struct {
	PublicKey string `json:"public_key"` // the page uses this key to subscribe to its push service
}

// freezeView is a freeze in force, with a text about it. A freeze without an agent and a session
// covers all agents.
type freezeView struct {
	Text      string `json:"text"`
	Agent     string `json:"agent,omitempty"`
	SessionID string `json:"session_id,omitempty"`
}

func freezeViews(all []schemas.Freeze) []freezeView {
	told := make([]freezeView, len(all))
	for i := range all {
		told[i] = freezeView{people.DescribeFreeze(&all[i]), all[i].Agent, all[i].SessionID}
	}
	return told
}

// grantView is a standing answer. Its texts are sanitised for display.
type grantView struct {
	GrantID   string        `json:"grant_id"`
	Scope     schemas.Scope `json:"scope"`
	SessionID string        `json:"session_id,omitempty"`
	Agent     string        `json:"agent"`
	Text      string        `json:"text"`
	Lasts     string        `json:"lasts"`
	By        string        `json:"by"`
	CreatedAt time.Time     `json:"created_at"`
	ExpiresAt time.Time     `json:"expires_at,omitzero"`
	RevokedAt time.Time     `json:"revoked_at,omitzero"`
	RevokedBy string        `json:"revoked_by,omitempty"`
	Live      bool          `json:"live"`

	// The texts of a people.StandingText.
	Effect   string `json:"effect"`
	Where    string `json:"where"`
	Uses     string `json:"uses,omitempty"`
	Until    string `json:"until"`
	Question string `json:"question,omitempty"`
	Message  string `json:"message,omitempty"`
	Undo     string `json:"undo,omitempty"` // the verb for ending the standing answer: "revoke" or "forget"
}

// grantsReply is the reply to grants.list.
type grantsReply struct {
	Grants     []grantView `json:"grants"`
	ServerTime time.Time   `json:"server_time"`
}

// compareReply answers permission.compare.
type compareReply struct {
	Parts []part `json:"parts"`
}

// sessionView is an agent's session; its texts are sanitised for display. Holds is the number
// of its standing answers in force.
type sessionView struct {
	people.Session
	Holds int `json:"holds"`
}

// sessionsReply answers sessions.list.
type sessionsReply struct {
	Sessions []sessionView `json:"sessions"`
	// Next is the cursor of the next part of the log, which a client sends as "before". It is empty at the
	// beginning of the log.
	Next       string    `json:"next,omitempty"`
	Reach      *reach    `json:"reach,omitempty"`
	ServerTime time.Time `json:"server_time"`
}

// failure is the payload of an error. If an answer or a revocation failed, Text explains the failure to
// the user.
type failure struct {
	Code    schemas.Code    `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
	Text    string          `json:"text,omitempty"`
}

// failureOf returns the payload for an error. An error of another type than *schemas.Error becomes
// UNAVAILABLE.
func failureOf(err error) failure {
	var e *schemas.Error
	if !errors.As(err, &e) {
		e = schemas.Errorf(schemas.CodeUnavailable, "nod did not answer in time; try again")
	}
	return failure{Code: e.Code, Message: e.Message, Details: e.Details}
}

// answerFailureOf returns the payload for a failed answer or revocation, including Text.
func answerFailureOf(err error, now time.Time) failure {
	f := failureOf(err)
	if f.Code == schemas.CodeForbidden { // do not replace f.Message, which says who may answer or what the answer lacks
		f.Text = "Nothing changed: " + people.Line(f.Message)
		return f
	}
	f.Text = people.Refusal(&schemas.Error{Code: f.Code, Message: f.Message, Details: f.Details}, now)
	return f
}
