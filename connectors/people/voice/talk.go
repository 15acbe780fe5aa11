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
	// pollEvery is the interval at which a talk reads the pending requests. It thereby finds
	// requests that nod has given to another worker of the connector, and requests that have
	// ended.
	pollEvery = time.Second
	// presentEvery is the interval at which a talk renews its client's lease and checks that the person
	// is still an approver.
	presentEvery = 10 * time.Second
	// callWithin is the time limit of one call to nod. answerWithin is the time limit for storing an
	// answer. If nod takes longer, the person is told that the answer is not confirmed, and is asked
	// again.
	callWithin   = 5 * time.Second
	answerWithin = 15 * time.Second
	// recordingAfter is the time after which the person is told that the answer is being recorded.
	recordingAfter = time.Second
)

// approvers is a Desk that can tell whether a user is an approver.
type approvers interface {
	// Approver returns the approver with this user id. If there is none, the error is FORBIDDEN.
	Approver(ctx context.Context, userID string) (schemas.Approver, error)
}

// talk is the conversation with one person through one client. Only its goroutine run uses the
// dialogue.
type talk struct {
	desk     people.Desk
	log      *slog.Logger
	client   string   // the id of the client's lease
	sessions []string // the sessions whose input lock the client wants

	ctx    context.Context            // ends with the talk; its cause is the reason for the end
	in     chan func(context.Context) // functions that the method run must execute
	ended  chan struct{}              // closed after run has returned
	cancel context.CancelCauseFunc

	dialogue
	pending []schemas.Prompt  // the requests about which the person must still be asked, oldest first
	ends    map[string]uint64 // the requests whose end the person knows, each with the revision of the prompt that was spoken
	joined  map[string]bool   // the sessions in which the client is registered as present
	checked time.Time         // the time of the last renewal of the leases
	polls   bool              // the client polls over HTTP; a client that stops polling counts as gone
	polled  atomic.Int64      // the time of the client's last poll, in nanoseconds
}

// maxLines is the number of lines that a slow client may leave unfetched. If there are more, the
// talk ends.
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

// do makes the goroutine run call the function work, and waits until the function has returned. It
// returns false if the talk or ctx has ended.
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

// poll reads the pending requests, and notices if the open request, about which the person is
// being asked, has ended.
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

// maxQueued is the largest number of requests that a talk reads at once.
const maxQueued = 50

// isOpen reports whether p is the request about which the person is being asked.
func (t *talk) isOpen(p *schemas.Prompt) bool {
	return t.open != nil && p.Key() == t.open.Key() && p.Digest == t.open.Digest
}

// reconcile compares the talk with the requests that still wait for the person. If the open request is no
// longer among them, reconcile says how it ended. The slice waiting must not contain requests whose end
// the person already knows.
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
			return // the request is still pending: the list is limited to maxQueued requests
		case err == nil && p.Decision != nil:
			t.close(ending(p.Decision, page.Now))
		default:
			t.close("That request no longer waits for you.")
		}
	}
	t.askNext()
}

// askNext asks about the oldest request that waits, unless the person is already being asked about a
// request.
func (t *talk) askNext() {
	if t.open == nil && len(t.pending) > 0 {
		p := t.pending[0]
		t.pending = t.pending[1:]
		t.ask(p)
		t.unclear = 0
	}
}

// close stops asking about the open request, speaks text, which is one sentence, and records that the person
// knows that the request has ended.
func (t *talk) close(text string) {
	t.ends[t.open.Key()] = t.open.Revision
	t.end(text)
}

// offer takes a prompt from the worker. The prompt shows a pending request or an outcome.
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

// listen handles an utterance. If the utterance answers the open request, listen submits the
// answer to nod.
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

// recorded returns the sentence about an answer that nod has stored.
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

// present renews the client's presence in the session of the open request, and the input locks
// that the client wants. It ends the talk if the person is no longer an approver.
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

// leave ends the client's presence and its input locks. If nod does not reply, the leases expire.
func (t *talk) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callWithin)
	defer cancel()
	for session := range t.joined {
		t.hold(ctx, schemas.PresenceLeave, session)
	}
}
