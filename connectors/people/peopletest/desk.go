package peopletest

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// desk stands in for nod, in memory. Ann and Bob may answer the requests that are routed to them.
// The first answer decides. The method leave makes the desk unreachable.
type desk struct {
	mu        sync.Mutex
	entries   map[string]*entry
	count     int
	back      chan struct{} // nil while nod is reachable; otherwise a channel that the method come closes
	conflicts int
	handled   map[string]bool // the messages that were marked as handled
	reports   []schemas.Delivery
}

var (
	_ people.Desk     = (*desk)(nil)
	_ people.Deduper  = (*desk)(nil)
	_ people.Reporter = (*desk)(nil)
)

type entry struct {
	schemas.Prompt
	recipients []string
	answer     schemas.Answer // the answer that decided the request
}

func newDesk() *desk { return &desk{entries: map[string]*entry{}, handled: map[string]bool{}} }

// ask stores a request that is routed to these recipients. It returns the prompt for the first of them.
func (d *desk) ask(r schemas.Request, recipients ...string) schemas.Prompt {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	r.SessionID, r.PendingID = "session-"+strconv.Itoa(d.count), "request-"+strconv.Itoa(d.count)
	r.Type, r.CreatedAt = schemas.TypeRequest, time.Now().UTC()
	if r.Options == nil {
		r.Options = schemas.DefaultOptions()
	}
	digest, err := schemas.Digest(&r)
	if err != nil {
		panic(err) // an error means that the test itself is broken
	}
	e := &entry{Prompt: schemas.Prompt{
		Type: schemas.TypePrompt, SessionID: r.SessionID, PendingID: r.PendingID, Revision: uint64(d.count), Agent: "local",
		Request: r, Digest: digest, Risk: schemas.RiskHigh, Tier: schemas.TierDisconnected, Deadline: r.CreatedAt.Add(time.Hour),
		Waiters: 1, Waiting: 1,
	}, recipients: recipients}
	d.entries[e.Key()] = e
	p := e.Prompt
	p.Connector, p.Recipient = "channel", recipients[0]
	return p
}

// end decides a request without an answer from the channel. It returns the request's prompt with the
// decision.
func (d *desk) end(p schemas.Prompt, outcome schemas.Outcome, by schemas.By) schemas.Prompt {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entries[p.Key()]
	e.decide(outcome, schemas.Option{}, by, "")
	p.Decision, p.Revision = e.Decision, p.Revision+1000
	return p
}

func (e *entry) decide(outcome schemas.Outcome, o schemas.Option, by schemas.By, message string) {
	e.Decision = &schemas.Decision{
		Type: schemas.TypeDecision, SessionID: e.SessionID, PendingID: e.PendingID, Outcome: outcome, Digest: e.Digest,
		OptionID: o.OptionID, OptionKind: o.Kind, By: by, Message: message, DecidedAt: time.Now().UTC(),
	}
}

// now returns p with the decision of its request, if the request is decided.
func (d *desk) now(p schemas.Prompt) schemas.Prompt {
	d.mu.Lock()
	defer d.mu.Unlock()
	p.Decision = d.entries[p.Key()].Decision
	return p
}

func (d *desk) counts(p schemas.Prompt, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entries[p.Key()]
	e.Waiters, e.Waiting = n, n
}

// remembers sets and returns the rules that a lasting answer to a request can store.
func (d *desk) remembers(p schemas.Prompt, rules []schemas.Reach) []schemas.Reach {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries[p.Key()].Remember = rules
	return rules
}

func (d *desk) answered(p schemas.Prompt) schemas.Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries[p.Key()].answer
}

// leave makes nod unreachable until the test calls the method come.
func (d *desk) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.back = make(chan struct{})
}

func (d *desk) come() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.back)
	d.back = nil
}

// there waits until nod is reachable, as a call over the bus does. If ctx ends first, it returns
// UNAVAILABLE.
func (d *desk) there(ctx context.Context) error {
	d.mu.Lock()
	back := d.back
	d.mu.Unlock()
	if back == nil {
		return nil
	}
	select {
	case <-back:
		return nil
	case <-ctx.Done():
		return schemas.Errorf(schemas.CodeUnavailable, "nod could not be reached")
	}
}

// Answer implements people.Desk.
func (d *desk) Answer(ctx context.Context, a schemas.Answer) (schemas.Decision, error) {
	if err := d.there(ctx); err != nil {
		return schemas.Decision{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	name, known := map[string]string{Ann: "Ann", Bob: "Bob"}[a.From.UserID]
	e := d.entries[schemas.Key(a.SessionID, a.PendingID)]
	switch {
	case !known:
		return schemas.Decision{}, schemas.Errorf(schemas.CodeForbidden, "not an approver")
	case e == nil || !slices.Contains(e.recipients, a.From.UserID):
		return schemas.Decision{}, schemas.Errorf(schemas.CodeNotFound, "unknown")
	case a.Digest != e.Digest:
		return schemas.Decision{}, schemas.Errorf(schemas.CodeStale, "another request")
	}
	said := *e
	option, offered := e.Request.Option(a.OptionID)
	switch {
	case a.Cancelled:
		said.decide(schemas.Cancelled, option, schemas.By{Kind: schemas.ByHuman, Name: name, Connector: "channel"}, a.Message)
	case !offered:
		return schemas.Decision{}, schemas.Errorf(schemas.CodeValidation, "option_id: not offered")
	case option.Kind.Allows():
		said.decide(schemas.Allowed, option, schemas.By{Kind: schemas.ByHuman, Name: name, Connector: "channel"}, a.Message)
	default:
		said.decide(schemas.Denied, option, schemas.By{Kind: schemas.ByHuman, Name: name, Connector: "channel"}, a.Message)
	}
	if e.Decision == nil {
		e.Decision, e.answer = said.Decision, a
	}
	if e.Decision.SameEffect(said.Decision) {
		return *e.Decision, nil
	}
	d.conflicts++
	return schemas.Decision{}, schemas.Errorf(schemas.CodeConflict, "already decided").WithDecision(e.Decision)
}

// contradicted returns how many answers contradicted a stored decision.
func (d *desk) contradicted() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conflicts
}

// Approver returns Ann or Bob.
func (d *desk) Approver(ctx context.Context, userID string) (schemas.Approver, error) {
	if err := d.there(ctx); err != nil {
		return schemas.Approver{}, err
	}
	name, known := map[string]string{Ann: "Ann", Bob: "Bob"}[userID]
	if !known {
		return schemas.Approver{}, schemas.Errorf(schemas.CodeForbidden, "not an approver")
	}
	return schemas.Approver{Name: name}, nil
}

// EachPending implements people.Desk. Each page contains one request.
func (d *desk) EachPending(ctx context.Context, q schemas.Query, f func(page []schemas.Prompt) error) error {
	if err := d.there(ctx); err != nil {
		return err
	}
	for p := range slices.Chunk(d.pending(q), 1) {
		if err := f(p); err != nil {
			return err
		}
	}
	return nil
}

func (d *desk) pending(q schemas.Query) []schemas.Prompt {
	d.mu.Lock()
	defer d.mu.Unlock()
	var open []schemas.Prompt
	for _, e := range d.entries {
		mine := q.Recipient == "" || slices.Contains(e.recipients, q.Recipient)
		if e.Decision == nil && mine && (q.SessionID == "" || q.SessionID == e.SessionID) {
			open = append(open, e.Prompt)
		}
	}
	slices.SortFunc(open, func(a, b schemas.Prompt) int { return a.Request.CreatedAt.Compare(b.Request.CreatedAt) })
	return open
}

// Show implements people.Desk.
func (d *desk) Show(ctx context.Context, session, id string) (schemas.Prompt, schemas.Page, error) {
	page := schemas.Page{Type: schemas.TypePage, Now: time.Now().UTC()}
	if err := d.there(ctx); err != nil {
		return schemas.Prompt{}, page, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entries[schemas.Key(session, id)]
	if e == nil {
		return schemas.Prompt{}, page, schemas.Errorf(schemas.CodeNotFound, "unknown")
	}
	page.Prompts = []schemas.Prompt{e.Prompt}
	return e.Prompt, page, nil
}

// Hold implements people.Desk.
func (d *desk) Hold(context.Context, schemas.Presence) (schemas.Lock, error) {
	return schemas.Lock{Type: schemas.TypeLock}, nil
}

// Handled implements people.Deduper.
func (d *desk) Handled(ctx context.Context, message string) (bool, error) {
	if err := d.there(ctx); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.handled[message], nil
}

// MarkHandled implements people.Deduper.
func (d *desk) MarkHandled(ctx context.Context, message string, _ time.Time) (first bool, err error) {
	if err := d.there(ctx); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	first = !d.handled[message]
	d.handled[message] = true
	return first, nil
}

// Report implements people.Reporter.
func (d *desk) Report(ctx context.Context, r schemas.Delivery) error {
	if err := d.there(ctx); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reports = append(d.reports, r)
	return nil
}
