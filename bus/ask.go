package bus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nodbus/nod/schemas"
)

// When a waiting request asks again whether it is decided: a decision that was
// published while nobody listened is found that way.
const (
	reaskMin = 30 * time.Second
	reaskMax = 10 * time.Minute
	// pulseOf is about how many requests a pulse asks: of servers that cannot reach
	// one another for a while a decision gets lost, and no connection breaks.
	pulseOf     = 100
	reaskSpread = 10 * time.Second // after a reconnect
)

// Asker asks on behalf of one agent. It is safe for concurrent use.
type Asker struct {
	conn  *Conn
	agent string
	stop  func()

	mu      sync.Mutex
	waiting map[*OpenRequest]struct{} // several may wait for one request
	wake    chan struct{}
	done    chan struct{}
}

// NewAsker asks as agent, which the connection's key must be for.
func NewAsker(c *Conn, agent string) *Asker {
	a := &Asker{conn: c, agent: agent, waiting: map[*OpenRequest]struct{}{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	stops := []func(){c.OnReconnect(a.spread), c.Pulse(a.pulse)}
	a.stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	go a.reask()
	return a
}

// Close stops asking again. It withdraws nothing.
func (a *Asker) Close() {
	a.stop()
	close(a.done)
}

// OpenRequest is a request that was handed in.
type OpenRequest struct {
	Receipt   schemas.Receipt // zero where the decision came at once
	PendingID string          // the one it was asked under
	Key       string

	asker *Asker
	unsub func()
	next  time.Time // when to ask again; guarded by asker.mu
	wait  time.Duration

	once     sync.Once
	ended    chan struct{}
	decision schemas.Decision // before ended closes, with err
	err      error
}

// Ask hands a request in and waits for its one decision. Without a pending_id
// it makes one; with one it rejoins what was asked under it, or returns its
// decision. It goes on through restarts of the bus and of nod. When ctx ends
// the request is withdrawn, and ctx's error returned. Errors of nod are
// *schemas.Error.
func (a *Asker) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	return a.AskAs(ctx, named(r))
}

// AskAs is Ask under the id in r, which is fresh unless r says that it rejoins.
func (a *Asker) AskAs(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	asked, err := a.submit(ctx, r)
	if err == nil {
		var d schemas.Decision
		if d, err = asked.Await(ctx); err == nil {
			return d, nil
		}
	}
	if ctx.Err() != nil {
		// What was sent may be there all the same: take it back.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_, _ = a.Withdraw(last, r.SessionID, r.PendingID, "the asker stopped waiting") // the deadline ends it otherwise
	}
	return schemas.Decision{}, err
}

// Submit hands a request in and returns once it is stored or decided. The
// caller must Await or Drop what it returns.
func (a *Asker) Submit(ctx context.Context, r schemas.Request) (*OpenRequest, error) {
	return a.submit(ctx, named(r))
}

// SubmitAs is Submit under the id in r, which is fresh unless r says that it
// rejoins.
func (a *Asker) SubmitAs(ctx context.Context, r schemas.Request) (*OpenRequest, error) {
	return a.submit(ctx, r)
}

func badIDs() error {
	return schemas.Errorf(schemas.CodeValidation, "session_id and pending_id must be 1 to 128 letters, digits, _ or -")
}

// listen hears the decision of a request from here on: a fast one must find its
// listener.
func (a *Asker) listen(sessionID, pendingID string) (q *OpenRequest, err error) {
	q = &OpenRequest{PendingID: pendingID, Key: schemas.Key(sessionID, pendingID), asker: a, ended: make(chan struct{}), wait: reaskMin}
	q.unsub, err = a.conn.Subscribe(schemas.DecisionSubject(a.agent, sessionID, pendingID), q.hear)
	return q, err
}

// named gives r an id where it has none. Only such an id is fresh.
func named(r schemas.Request) schemas.Request {
	r.Rejoin = r.PendingID != ""
	if r.PendingID == "" {
		r.PendingID = NewID()
	}
	return r
}

func (a *Asker) submit(ctx context.Context, r schemas.Request) (*OpenRequest, error) {
	r.Type = schemas.TypeRequest
	if !schemas.ValidID(r.SessionID) || !schemas.ValidID(r.PendingID) {
		return nil, badIDs()
	}
	if r.CreatedAt.IsZero() {
		r.CreatedAt = time.Now().UTC()
	}
	asked, err := a.listen(r.SessionID, r.PendingID)
	if err != nil {
		return nil, err
	}
	reply, err := a.conn.call(ctx, schemas.RequestSubject(a.agent, r.SessionID, r.PendingID), func(try int) any {
		again := r
		again.Rejoin = r.Rejoin || try > 0
		return again
	})
	if err == nil {
		err = asked.take(reply)
	}
	if err != nil {
		asked.unsub()
		return nil, fmt.Errorf("ask: %w", err)
	}
	a.keep(asked)
	return asked, nil
}

// take reads the reply to an ask: a decision or a receipt, and nothing else.
func (q *OpenRequest) take(reply Reply) error {
	if reply.Type == schemas.TypeDecision {
		var d schemas.Decision
		if err := reply.Into(&d); err != nil {
			return err
		}
		q.decide(d)
		return nil
	}
	return reply.Into(&q.Receipt)
}

// hear takes a published decision.
func (q *OpenRequest) hear(m Message) {
	select {
	case <-q.ended: // the outbox tells it again
		return
	default:
	}
	var d schemas.Decision
	if err := schemas.Load(m.Data, &d); err != nil {
		q.asker.conn.log.Warn("bus: a malformed decision was ignored; it will be asked for again", "key", q.Key, "error", err)
		return
	}
	q.decide(d)
}

// decide keeps the first decision that is of this request.
func (q *OpenRequest) decide(d schemas.Decision) {
	if schemas.Key(d.SessionID, d.PendingID) == q.Key {
		q.end(d, nil)
	}
}

func (q *OpenRequest) end(d schemas.Decision, err error) {
	q.once.Do(func() {
		q.decision, q.err = d, err
		close(q.ended)
	})
}

// Await blocks until the decision is there or ctx ends, and can be called
// again after the latter. NOT_FOUND means that nod no longer knows the request,
// CONFLICT that what was allowed of it was used by the same asked again.
func (q *OpenRequest) Await(ctx context.Context) (schemas.Decision, error) {
	select {
	case <-q.ended:
	default:
		select {
		case <-q.ended:
		case <-ctx.Done():
			return schemas.Decision{}, ctx.Err()
		}
	}
	q.Drop()
	return q.decision, q.err
}

// Drop stops listening. The request stays as it is.
func (q *OpenRequest) Drop() {
	q.asker.mu.Lock()
	delete(q.asker.waiting, q)
	q.asker.mu.Unlock()
	q.unsub()
}

// Withdraw takes a request back, and returns the decision it then has: the
// withdrawal, or what was decided before.
func (a *Asker) Withdraw(ctx context.Context, sessionID, pendingID, reason string) (schemas.Decision, error) {
	var d schemas.Decision
	err := a.conn.CallInto(ctx, schemas.WithdrawSubject(a.agent, sessionID, pendingID), schemas.Withdraw{
		Type: schemas.TypeWithdraw, SessionID: sessionID, PendingID: pendingID, Reason: reason,
	}, &d)
	if err != nil {
		return d, fmt.Errorf("withdraw: %w", err)
	}
	return d, nil
}

// keep has a request asked about again for as long as it waits.
func (a *Asker) keep(q *OpenRequest) {
	if q.Receipt.Revision == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting[q] = struct{}{}
	q.next = time.Now().Add(jitter(q.wait))
	a.signal()
}

// spread asks about everything that waits, within reaskSpread.
func (a *Asker) spread() {
	a.mu.Lock()
	defer a.mu.Unlock()
	// A few have no need to keep out of each other's way.
	spread := min(reaskSpread, time.Duration(len(a.waiting)+1)*100*time.Millisecond)
	for q := range a.waiting {
		q.wait = reaskMin
		q.next = time.Now().Add(rand.N(spread))
	}
	a.signal()
}

func (a *Asker) signal() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// jitter is d, give or take a fifth.
func jitter(d time.Duration) time.Duration { return d - d/5 + rand.N(2*d/5) }

// reask asks, in one call for all that are due, how waiting requests stand.
func (a *Asker) reask() {
	timer := time.NewTimer(reaskMax)
	defer timer.Stop()
	for {
		due, next := a.due()
		if len(due) > 0 {
			a.ask(due)
			continue
		}
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
		case <-a.wake:
		case <-a.done:
			return
		}
	}
}

// due takes up to MaxAwaited requests whose time has come, and otherwise says
// when the next one's will.
func (a *Asker) due() (due []*OpenRequest, next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	next = now.Add(reaskMax)
	for q := range a.waiting {
		if q.next.After(now) {
			if q.next.Before(next) {
				next = q.next
			}
			continue
		}
		if len(due) == schemas.MaxAwaited {
			break
		}
		q.wait = min(2*q.wait, reaskMax)
		q.next = now.Add(jitter(q.wait))
		due = append(due, q)
	}
	return due, next
}

// pulse asks about one of the requests that wait, to try whether anybody answers.
func (a *Asker) pulse(ctx context.Context) error {
	a.mu.Lock()
	var some []*OpenRequest
	for q := range a.waiting { // any: the order of a map is random
		if some = append(some, q); len(some) == pulseOf {
			break
		}
	}
	a.mu.Unlock()
	if len(some) == 0 {
		return nil
	}
	return a.askAbout(ctx, some)
}

// ask asks how requests stand; if nobody answers, they are asked about again soon.
func (a *Asker) ask(due []*OpenRequest) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*hopTimeout)
	defer cancel()
	if err := a.askAbout(ctx, due); err != nil {
		a.conn.log.Info("bus: asking again was not answered; it is tried later", "requests", len(due), "error", err)
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, q := range due {
			q.wait, q.next = reaskMin, time.Now().Add(jitter(reaskSpread))
		}
	}
}

func (a *Asker) askAbout(ctx context.Context, due []*OpenRequest) error {
	question := schemas.Await{Type: schemas.TypeAwait}
	for _, q := range due {
		question.Requests = append(question.Requests, schemas.Awaited{SessionID: q.Receipt.SessionID, PendingID: q.Receipt.PendingID, Revision: q.Receipt.Revision})
	}
	var reply schemas.AwaitReply
	if err := a.conn.CallInto(ctx, schemas.AwaitSubject(a.agent), question, &reply); err != nil {
		return err
	}
	byKey := map[string]schemas.Awaited{}
	for _, r := range reply.Results {
		byKey[schemas.Key(r.SessionID, r.PendingID)] = r
	}
	for _, q := range due {
		switch r := byKey[q.Key]; {
		case r.Decision != nil:
			q.decide(*r.Decision)
		case over(r.Error):
			q.end(schemas.Decision{}, r.Error)
		}
	}
	return nil
}

// over reports that waiting brings no decision: nod knows the request no more, or
// what was allowed of it was for another that asked the same.
func over(e *schemas.Error) bool {
	return e != nil && (e.Code == schemas.CodeNotFound || e.Code == schemas.CodeConflict)
}
