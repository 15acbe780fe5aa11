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
	"github.com/nodbus/nod/schemas"
)

// envelope is every message of the gateway. A reply echoes id and action.
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

// The notifications.
const (
	noteRequested = "session.permission.requested"
	noteResolved  = "session.permission.resolved"
	noteDecided   = "session.permission.decided" // and nobody was asked; for who looks at the session
	noteTime      = "server.time"
)

// received is an envelope as a client sends it.
type received struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Action  string          `json:"action"`
	Payload json.RawMessage `json:"payload"`
}

// requested is a request that waits. The texts of the agent's are as it sent
// them; summary, parts and labels are fit to be shown.
type requested struct {
	PendingID     string             `json:"pending_id"`
	SessionID     string             `json:"session_id"`
	TaskID        string             `json:"task_id,omitempty"`
	ToolCallID    string             `json:"tool_call_id,omitempty"`
	Title         string             `json:"title"`
	Options       []option           `json:"options"`
	ActionType    schemas.ActionType `json:"action_type"`
	ActionDetails json.RawMessage    `json:"action_details"`
	CreatedAt     time.Time          `json:"created_at"`

	Kind       schemas.Kind `json:"kind"`
	ToolName   string       `json:"tool_name,omitempty"`
	Agent      string       `json:"agent"`
	Risk       schemas.Risk `json:"risk"`
	Digest     string       `json:"digest"`
	Deadline   time.Time    `json:"deadline"`
	ServerTime time.Time    `json:"server_time"` // when this was sent, on the clock of the deadline
	Summary    string       `json:"summary"`
	Parts      []part       `json:"parts"`
	// Remember are the rules that an answer in a wider scope may leave behind,
	// by their reach, in words.
	Remember []string `json:"remember"`
	// Takes says what it takes to allow this, besides an approver's word.
	Takes []string `json:"takes"`
	// Waiters is how many identical calls have asked this: an answer names it. Waiting
	// is how many of them still wait, and times says so where they are several: "×3".
	Waiters int    `json:"waiters"`
	Waiting int    `json:"waiting"`
	Times   string `json:"times,omitempty"`
	// Same is equal where two requests read the same but for ids and deadlines.
	Same string `json:"same"`

	place   string // sorts as the request does among all
	version string // equal for as long as a person reads the same
}

// option is an answer on offer; label says in nod's words what it does. One that is
// remembered the agent keeps for later calls by itself; called is how it calls it.
type option struct {
	schemas.Option
	Label      string `json:"label"`
	Remembered bool   `json:"remembered"`
	Called     string `json:"called"`
}

// part is people.Part.
type part struct {
	Label string   `json:"label"`
	Field bool     `json:"field,omitempty"`
	Quote bool     `json:"quote,omitempty"`
	Lines []string `json:"lines"`
}

// summaryWidth is how many columns of a request a list shows.
const summaryWidth = 120

func newRequested(p *schemas.Prompt, now time.Time) *requested {
	r := &p.Request
	q := &requested{
		PendingID: p.PendingID, SessionID: p.SessionID, TaskID: r.TaskID, ToolCallID: r.ToolCallID, Title: r.Title,
		Options: optionsOf(r), ActionType: r.ActionType, ActionDetails: r.ActionDetails, CreatedAt: r.CreatedAt,
		Kind: r.Kind, ToolName: r.ToolName, Agent: p.Agent, Risk: p.Risk, Digest: p.Digest, Deadline: p.Deadline,
		Summary: people.Summary(p, summaryWidth), Parts: []part{}, Remember: []string{}, Takes: []string{},
		Waiters: p.Waiters, Waiting: p.Waiting, Times: people.Times(p),
		place: fmt.Sprintf("%020d.%s", r.CreatedAt.UnixNano(), p.Key()),
	}
	for _, pt := range people.Parts(p, now) {
		q.Parts = append(q.Parts, part{pt.Label, pt.Field, pt.Quote, append([]string{}, pt.Lines...)})
	}
	for i := range p.Remember {
		q.Remember = append(q.Remember, people.Line(p.Remember[i].String()))
	}
	for _, t := range p.Takes {
		q.Takes = append(q.Takes, people.Line(t))
	}
	q.Same = q.same()
	q.version = fmt.Sprint(q.Same, q.Waiters, q.Waiting, q.Deadline.UnixNano(), p.Detached)
	return q
}

// ownParts are those in which requests that ask the same differ.
var ownParts = []string{"Request", "Session", "Calls", "Expires"}

// same is a hash of all that a person reads, and of the payload as it was sent.
func (q *requested) same() string {
	var rest []part
	for _, p := range q.Parts {
		if p.Field || p.Quote || !slices.Contains(ownParts, p.Label) {
			rest = append(rest, p)
		}
	}
	data, _ := schemas.Encode([]any{q.Agent, q.Options, rest, q.ActionDetails}) // what was decoded encodes
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// optionsOf labels what is on offer. What the agent remembers, and two that do the
// same, are told apart by how the agent calls them.
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
			all[i].Label = people.Choice(o)
		} else if kinds[o.Kind] > 1 || o.Kind.Remembered() {
			all[i].Label += ": " + people.Line(o.Name)
		}
	}
	return all
}

// resolved is how a request ended; text is the one line for people.
type resolved struct {
	SessionID  string            `json:"session_id"`
	PendingID  string            `json:"pending_id"`
	Decision   *schemas.Decision `json:"decision"`
	Text       string            `json:"text"`
	ServerTime time.Time         `json:"server_time"`
}

// listed answers permissions.list.
type listed struct {
	Permissions []requested `json:"permissions"`
	Next        string      `json:"next,omitempty"` // after of the next page
	ServerTime  time.Time   `json:"server_time"`
}

// subscribed answers a subscription; as many requests follow as Pending says.
type subscribed struct {
	Success   bool   `json:"success"`
	SessionID string `json:"session_id,omitempty"`
	Pending   int    `json:"pending"`
}

// responded answers permission.respond.
type responded struct {
	Success  bool             `json:"success"`
	Decision schemas.Decision `json:"decision"`
	Text     string           `json:"text"`
}

// ticked says what time it is, and whether nod can be reached from here.
type ticked struct {
	ServerTime time.Time `json:"server_time"`
	Reachable  bool      `json:"reachable"`
	Frozen     []brake   `json:"frozen"` // the brakes that are on
}

// braked answers what freezes, thaws, or looks.
type braked struct {
	Frozen []brake `json:"frozen"`
	Denied int     `json:"denied"`         // how many open requests a freeze has ended
	Text   string  `json:"text,omitempty"` // what is to be said besides
}

// pushing answers what a page asks about pushes to its device.
type pushing struct {
	PublicKey string `json:"public_key"` // that it subscribes with
}

// brake is one that is on, in words, and what it is about: an agent, a session or,
// without either, everything.
type brake struct {
	Text      string `json:"text"`
	Agent     string `json:"agent,omitempty"`
	SessionID string `json:"session_id,omitempty"`
}

func brakes(all []schemas.Freeze) []brake {
	told := make([]brake, len(all))
	for i := range all {
		told[i] = brake{people.DescribeFreeze(&all[i]), all[i].Agent, all[i].SessionID}
	}
	return told
}

// decided is a request of the history, with its one decision.
type decided struct {
	*requested
	Decision *schemas.Decision `json:"decision"`
	Text     string            `json:"text"`
}

func newDecided(p *schemas.Prompt, now time.Time) decided {
	q := newRequested(p, now)
	q.ServerTime = now
	return decided{q, p.Decision, people.Outcome(p.Decision, p)}
}

// history answers permissions.history: the newest decision first.
type history struct {
	Permissions []decided `json:"permissions"`
	More        bool      `json:"more"` // there are older ones
	ServerTime  time.Time `json:"server_time"`
}

// granted is a standing answer; its texts are fit to be shown.
type granted struct {
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

	// The same in words: see people.Standing.
	Effect   string `json:"effect"`
	Where    string `json:"where"`
	Uses     string `json:"uses,omitempty"`
	Until    string `json:"until"`
	Question string `json:"question,omitempty"`
	Message  string `json:"message,omitempty"`
	Undo     string `json:"undo,omitempty"` // what ending it is called
}

// grants answers grants.list.
type grants struct {
	Grants     []granted `json:"grants"`
	ServerTime time.Time `json:"server_time"`
}

// failure is the payload of an error; text is for people, where they answered.
type failure struct {
	Code    schemas.Code    `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
	Text    string          `json:"text,omitempty"`
}

// failed is err as a client is told it.
func failed(err error) failure {
	var e *schemas.Error
	if !errors.As(err, &e) {
		e = schemas.Errorf(schemas.CodeUnavailable, "nod did not answer in time; try again")
	}
	return failure{Code: e.Code, Message: e.Message, Details: e.Details}
}

// refused is failed for somebody who answered.
func refused(err error, now time.Time) failure {
	f := failed(err)
	if f.Code == schemas.CodeForbidden { // it says what it would take
		f.Text = "Nothing changed: " + people.Line(f.Message)
		return f
	}
	f.Text = people.Refusal(&schemas.Error{Code: f.Code, Message: f.Message, Details: f.Details}, now)
	return f
}
