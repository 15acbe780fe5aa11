package bus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nodbus/nod/schemas"
)

// An Asker asks an engine for the state of a waiting request at intervals between reaskMin and reaskMax,
// because a broken subscription may have missed the decision.
const (
	reaskMin = 30 * time.Second
	reaskMax = 10 * time.Minute
	// A pulse asks for the state of at most pulseOf waiting requests, to test whether the server replies.
	// It also finds decisions that were lost while the servers could not reach each other.
	pulseOf     = 100
	reaskSpread = 10 * time.Second // after a reconnect, the Asker asks for the state of every waiting request once within this time
)

// Asker sends the requests of one agent. It is safe for concurrent use.
type Asker struct {
	conn  *Conn
	agent string
	stop  func()

	mu      sync.Mutex
	waiting map[*OpenRequest]struct{} // one entry for each Submit, so a request that was sent twice has two entries
	wake    chan struct{}
	done    chan struct{}
}

// NewAsker returns an Asker for an agent. The connection must use the agent's key.
func NewAsker(c *Conn, agent string) *Asker {
	a := &Asker{conn: c, agent: agent, waiting: map[*OpenRequest]struct{}{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	stops := []func(){c.OnReconnect(a.reaskSoon), c.Pulse(a.pulse)}
	a.stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	go a.reask()
	return a
}

// Close stops the Asker. It withdraws no request.
func (a *Asker) Close() {
	a.stop()
	close(a.done)
}

// OpenRequest is a request that an engine has accepted: the engine replied with a receipt or a decision.
type OpenRequest struct {
	Receipt   schemas.Receipt // the zero Receipt if the engine decided the request at once
	PendingID string          // the request's id, as the agent sent it
	Key       string          // the key of the request's record

	asker *Asker
	unsub func()
	next  time.Time // the time at which to ask for the request's state again; guarded by asker.mu
	wait  time.Duration

	once     sync.Once
	ended    chan struct{}
	decision schemas.Decision // decision and err are valid once ended is closed
	err      error
}

// Ask sends a request and waits for its decision, even if the bus or nod restarts meanwhile. If r has
// no pending_id, Ask makes one. If a request with the same pending_id was sent before, Ask waits for
// that request's decision. If ctx ends first, Ask withdraws the request and returns the error of ctx.
// Errors of nod are *schemas.Error.
func (a *Asker) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	return a.AskAs(ctx, withID(r))
}

// AskAs sends and waits as Ask does, for a request with a pending_id. The pending_id must be new,
// unless r.Rejoin is set.
func (a *Asker) AskAs(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	asked, err := a.submit(ctx, r)
	if err == nil {
		var d schemas.Decision
		if d, err = asked.Await(ctx); err == nil {
			return d, nil
		}
	}
	if ctx.Err() != nil {
		// The engine may have stored the request in spite of the error.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_, _ = a.Withdraw(last, r.SessionID, r.PendingID, "the asker stopped waiting") // if the withdrawal fails, the request stays pending until its deadline
	}
	return schemas.Decision{}, err
}

// Submit sends a request and returns once an engine has stored or decided it. The caller must
// call Await or Drop on the result.
func (a *Asker) Submit(ctx context.Context, r schemas.Request) (*OpenRequest, error) {
	return a.submit(ctx, withID(r))
}

// SubmitAs sends a request as Submit does. The request must have a pending_id, which must be new
// unless r.Rejoin is set.
func (a *Asker) SubmitAs(ctx context.Context, r schemas.Request) (*OpenRequest, error) {
	return a.submit(ctx, r)
}

func badIDs() error {
	return schemas.Errorf(schemas.CodeValidation, "session_id and pending_id must be 1 to 128 letters, digits, _ or -")
}

// listen subscribes to the decision of a request. Its caller then sends the request: the decision may
// arrive immediately, and would be missed without the subscription.
func (a *Asker) listen(sessionID, pendingID string) (q *OpenRequest, err error) {
	q = &OpenRequest{PendingID: pendingID, Key: schemas.Key(sessionID, pendingID), asker: a, ended: make(chan struct{}), wait: reaskMin}
	q.unsub, err = a.conn.Subscribe(schemas.DecisionSubject(a.agent, sessionID, pendingID), q.onDecision)
	return q, err
}

// withID sets r.Rejoin if r has a pending_id. Otherwise it gives r a new pending_id.
func withID(r schemas.Request) schemas.Request {
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
		return &again
	})
	if err == nil {
		err = asked.readReply(reply)
	}
	if err != nil {
		asked.unsub()
		return nil, fmt.Errorf("ask: %w", err)
	}
	a.watch(asked)
	return asked, nil
}

func (q *OpenRequest) readReply(reply Reply) error {
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

// onDecision handles a published decision of the request.
func (q *OpenRequest) onDecision(m Message) {
	select {
	case <-q.ended: // the decision is known already, because an engine may publish it twice
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

// Await waits for the decision. If ctx ends first, Await returns the error of ctx, and the caller may
// call Await again. The error is NOT_FOUND if nod no longer has the request. It is CONFLICT if a person
// allowed the request, but an identical call has used that approval.
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

// Drop ends the wait for the decision, and does not change the request.
func (q *OpenRequest) Drop() {
	q.asker.mu.Lock()
	delete(q.asker.waiting, q)
	q.asker.mu.Unlock()
	q.unsub()
}

// Withdraw withdraws a request and returns its decision: the withdrawal, or an earlier decision.
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

// watch makes the Asker ask for the state of the request q at growing intervals, until q is decided or
// dropped.
func (a *Asker) watch(q *OpenRequest) {
	if q.Receipt.Revision == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting[q] = struct{}{}
	q.next = time.Now().Add(jitter(q.wait))
	a.signal()
}

// reaskSoon makes the Asker ask for the state of every waiting request within the next reaskSpread. The
// times are random, to spread the load.
func (a *Asker) reaskSoon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	// For a few requests the Asker uses less time than reaskSpread: 100 ms for each request.
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

// jitter returns d, made shorter or longer at random by up to a fifth.
func jitter(d time.Duration) time.Duration { return d - d/5 + rand.N(2*d/5) }

// reask runs until the Asker is closed. It asks for the state of the requests that are due, many of them
// in one call.
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

// due returns up to MaxAwaited requests for whose state the Asker must ask now. If there are none, it
// returns the time at which the Asker must ask next.
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

// pulse asks for the state of some waiting requests, to test whether the server still serves
// this connection.
func (a *Asker) pulse(ctx context.Context) error {
	a.mu.Lock()
	var some []*OpenRequest
	for q := range a.waiting { // Go visits a map in random order, so each pulse picks different requests
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

// ask asks an engine for the state of these requests. If no reply comes, the Asker asks for their
// state again within about reaskSpread.
func (a *Asker) ask(due []*OpenRequest) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*hopTimeout)
	defer cancel()
	if err := a.askAbout(ctx, due); err != nil {
		a.conn.log.Info("bus: no reply about the state of waiting requests; trying again later", "requests", len(due), "error", err)
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
		case isOver(r.Error):
			q.end(schemas.Decision{}, r.Error)
		}
	}
	return nil
}

// isOver reports whether an engine's error means that the request will get no decision. This is so if
// nod no longer has the request, or if an identical call has used the request's approval.
func isOver(e *schemas.Error) bool {
	return e != nil && (e.Code == schemas.CodeNotFound || e.Code == schemas.CodeConflict)
}
