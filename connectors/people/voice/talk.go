package voice

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// pollEvery is the interval at which a talk reads the pending requests. A request that another
	// worker of the connector was given is asked about then, and one that has ended is noticed.
	pollEvery = time.Second
	// presentEvery is the interval at which a talk renews its client's lease and checks that the person
	// is still an approver.
	presentEvery = 10 * time.Second
	// callWithin bounds a call of nod. answerWithin bounds the recording of an answer; then the person
	// is told that it is not confirmed, and is asked again.
	callWithin   = 5 * time.Second
	answerWithin = 15 * time.Second
	// recordingAfter is the time after which the person is told that the answer is being recorded.
	recordingAfter = time.Second
)

// approvers is a Desk that knows who may answer.
type approvers interface {
	// Approver returns the approver with this user id. The error is FORBIDDEN if there is none.
	Approver(ctx context.Context, userID string) (schemas.Approver, error)
}

// talk is the conversation with one person through one client. Its goroutine, run, owns the dialogue.
type talk struct {
	desk     people.Desk
	log      *slog.Logger
	client   string   // the id of the client's lease
	sessions []string // the sessions whose input lock the client wants

	ctx    context.Context            // ends with the talk; its cause is the reason
	in     chan func(context.Context) // work for the goroutine
	ended  chan struct{}              // closed when the goroutine has ended
	cancel context.CancelCauseFunc

	dialogue
	pending []schemas.Prompt  // the requests that wait for this person and are not asked about yet, oldest first
	ends    map[string]uint64 // the requests whose end the person knows, with the revision that was asked about
	joined  map[string]bool   // the sessions with a lease of this client
	checked time.Time         // the time of the last renewal of the leases
	polls   bool              // the client polls, and is gone if it stops
	polled  atomic.Int64      // the time of its last poll, in nanoseconds
}

// maxLines is the number of lines that a slow client may leave unread. After it the talk ends.
const maxLines = 64

// errSlow ends a talk whose client fetches no lines.
var errSlow = errors.New("the client does not fetch what it should speak: connect again")

// reason says why the talk has ended.
func (t *talk) reason() string {
	if err := context.Cause(t.ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err.Error()
	}
	return errStopped.Error()
}

// run asks about requests and takes answers until ctx ends.
func (t *talk) run() {
	ctx := t.ctx
	defer close(t.ended)
	defer t.leave(ctx)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	t.poll(ctx)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case work := <-t.in:
			work(ctx)
		case <-tick.C:
			t.poll(ctx)
		}
		if t.backlog() > maxLines {
			t.cancel(errSlow)
		}
	}
}

// do runs work on the talk's goroutine and waits for it. It returns false if the talk or ctx has ended.
func (t *talk) do(ctx context.Context, work func(context.Context)) bool {
	done := make(chan struct{})
	select {
	case t.in <- func(ctx context.Context) { defer close(done); work(ctx) }:
	case <-t.ended:
		return false
	case <-ctx.Done():
		return false
	}
	select {
	case <-done:
		return true
	case <-t.ended:
		return false
	}
}

// poll reads the pending requests, and notices the end of the request that is asked about.
func (t *talk) poll(ctx context.Context) {
	if t.polls && time.Since(time.Unix(0, t.polled.Load())) > idleAfter {
		t.cancel(errGone)
		return
	}
	call, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	if time.Since(t.checked) >= presentEvery {
		t.checked = time.Now()
		t.present(call)
	}
	waiting, _, err := people.Oldest(call, t.desk, schemas.Query{Recipient: t.from.UserID}, maxQueued, func(p *schemas.Prompt) bool {
		return t.isOpen(p) || p.Revision > t.ends[p.Key()]
	})
	if err != nil {
		t.log.Debug("voice: the pending requests were not read", "error", err)
		return
	}
	t.reconcile(call, waiting)
}

// maxQueued is the largest number of requests that a talk reads at once to ask about them.
const maxQueued = 50

// isOpen reports whether the talk asks about p.
func (t *talk) isOpen(p *schemas.Prompt) bool {
	return t.open != nil && p.Key() == t.open.Key() && p.Digest == t.open.Digest
}

// reconcile compares the dialogue with the requests that wait for the person, without those that the
// talk has ended.
func (t *talk) reconcile(ctx context.Context, waiting []schemas.Prompt) {
	t.pending = nil
	stillOpen := false
	for _, p := range waiting {
		if t.isOpen(&p) {
			stillOpen = true
		} else {
			t.pending = append(t.pending, p)
		}
	}
	if t.open != nil && !stillOpen {
		p, page, err := t.desk.Show(ctx, t.open.SessionID, t.open.PendingID)
		switch {
		case err == nil && p.Decision == nil && p.Digest == t.open.Digest:
			return // it was decided or listed on another page meanwhile, or many requests wait
		case err == nil && p.Decision != nil:
			t.close(ending(p.Decision, page.Now))
		default:
			t.close("That request no longer waits for you.")
		}
	}
	t.askNext()
}

// askNext asks about the oldest request that waits, unless one is asked about.
func (t *talk) askNext() {
	if t.open == nil && len(t.pending) > 0 {
		p := t.pending[0]
		t.pending = t.pending[1:]
		t.ask(p)
		t.unclear = 0
	}
}

// close ends the question about the open request.
func (t *talk) close(text string) {
	t.ends[t.open.Key()] = t.open.Revision
	t.end(text)
}

// offer takes a prompt from the worker: a question, or the outcome of one.
func (t *talk) offer(p schemas.Prompt) {
	same := func(q schemas.Prompt) bool { return q.Key() == p.Key() && q.Digest == p.Digest }
	isOpen := t.open != nil && same(*t.open)
	isQueued := slices.ContainsFunc(t.pending, same)
	switch {
	case p.Decision != nil && isOpen:
		t.close(ending(p.Decision, time.Now()))
	case p.Decision != nil:
		t.pending = slices.DeleteFunc(t.pending, same)
	case !isOpen && !isQueued && p.Revision > t.ends[p.Key()]:
		t.pending = append(t.pending, p)
	}
	t.askNext()
}

// listen takes an utterance, and submits the answer that it is.
func (t *talk) listen(ctx context.Context, u Utterance) {
	a := t.hear(u, time.Now())
	if a == nil {
		return
	}
	call, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	d, err := t.submit(call, a)
	now := time.Now()
	var e *schemas.Error
	switch {
	case err == nil:
		t.close(recorded(&d))
	case errors.As(err, &e) && e.Decision() != nil:
		t.close(people.Refusal(e, now))
	case errors.As(err, &e) && e.Code == schemas.CodeNotFound:
		t.close(people.Refusal(e, now))
	case errors.As(err, &e) && e.Code != schemas.CodeUnavailable:
		t.refused(a, e, now)
	case ctx.Err() != nil:
		return
	default:
		t.say(KindNote, people.NotConfirmed)
		t.readBack = false
		t.log.Warn("voice: an answer is not confirmed", "key", a.Key(), "error", err)
	}
	t.poll(ctx)
}

// recorded is the sentence about an answer that nod has stored.
func recorded(d *schemas.Decision) string {
	switch d.Outcome {
	case schemas.Allowed:
		return "It is allowed, once."
	case schemas.Denied:
		return "It is denied."
	}
	return "It is dismissed."
}

// submit sends an answer to nod. If nod takes longer than recordingAfter, the person is told that the
// answer is being recorded.
func (t *talk) submit(ctx context.Context, a *schemas.Answer) (d schemas.Decision, err error) {
	done := make(chan struct{})
	go func() { defer close(done); d, err = t.desk.Answer(ctx, *a) }()
	late := time.NewTimer(recordingAfter)
	defer late.Stop()
	select {
	case <-done:
		return d, err
	case <-late.C:
		t.say(KindNote, people.Recording)
	}
	<-done
	return d, err
}

// present renews the client's lease for the session of the open request, and the input locks that the
// client wants. It ends the talk if the person is no longer an approver.
func (t *talk) present(ctx context.Context) {
	if desk, ok := t.desk.(approvers); ok {
		if _, err := desk.Approver(ctx, t.from.UserID); errors.Is(err, &schemas.Error{Code: schemas.CodeForbidden}) {
			t.cancel(errForbidden)
			return
		}
	}
	for _, session := range t.sessions {
		t.hold(ctx, schemas.PresenceLock, session)
	}
	if t.open != nil && !slices.Contains(t.sessions, t.open.SessionID) {
		t.hold(ctx, schemas.PresenceJoin, t.open.SessionID)
	}
}

func (t *talk) hold(ctx context.Context, op schemas.PresenceOp, session string) {
	_, err := t.desk.Hold(ctx, schemas.Presence{
		Type: schemas.TypePresence, Op: op, SessionID: session, ClientID: t.client, Kind: Name, From: t.from,
	})
	if err != nil {
		t.log.Info("voice: the client's presence was not stored", "op", op, "session", session, "error", err)
		return
	}
	if t.joined[session] = true; op == schemas.PresenceLeave {
		delete(t.joined, session)
	}
}

// leave gives the leases back. If nod does not reply, they end by themselves.
func (t *talk) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callWithin)
	defer cancel()
	for session := range t.joined {
		t.hold(ctx, schemas.PresenceLeave, session)
	}
}
