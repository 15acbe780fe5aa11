package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
	// maxWaiters bounds the waiters of a question, because its record, with any answer, must
	// fit into one message. The next identical call opens another question.
	maxWaiters = 64
	// holderPause is the pause before an engine looks again for a question's record if another
	// engine has the question's lock and has not stored the record yet.
	holderPause = 10 * time.Millisecond
	// firesSoon bounds the time between setting a new question's timer and storing the question's
	// record. A timer that fires earlier may find no record.
	firesSoon = 500 * time.Millisecond
)

// askedAgain is the message of a call that a later, identical call has replaced in its question.
const askedAgain = "the same call was made again later, and the later call gets the answer"

var errFull = errors.New("the question has too many waiters")

// questionToken returns the token that identical calls of a session share. Calls are identical if they
// have the same CallDigest, options, risk, routes, foreground session, container and type of record.
// Requests other than tool calls have no token and join no question.
func (s *askState) questionToken(rec *schemas.Record) (string, error) {
	if s.request.Kind != schemas.KindToolCall {
		return "", nil
	}
	same, err := s.sameness()
	if err != nil {
		return "", err
	}
	var program *policy.Program
	if rec.Run != nil {
		by := programOf(&s.request)
		program = &by
	}
	routes := slices.Clone(rec.Routes)
	for i := range routes {
		routes[i].AfterSeconds = 0 // the routes of identical calls in quiet hours differ only in the time until the end of the quiet hours
	}
	data, err := schemas.Encode(struct {
		Same       string
		Options    []schemas.Option
		Risk       schemas.Risk
		Routes     []schemas.Route
		Foreground string
		Run        *schemas.ContainedRun `json:",omitempty"`
		Program    *policy.Program       `json:",omitempty"`
		Team       bool                  `json:",omitempty"`
	}{same, s.request.Options, rec.Risk, routes, rec.Foreground, rec.Run, program, rec.Type == schemas.TeamRecord})
	if err != nil {
		return "", fmt.Errorf("name the question of %s: %w", s.key(), err)
	}
	sum := sha256.Sum256(data)
	return bus.QuestionToken(hex.EncodeToString(sum[:20])), nil
}

func waiterOf(entry *bus.Entry) schemas.Waiter {
	rec := &entry.Record
	return schemas.Waiter{PendingID: ownID(entry), Digest: rec.Digest, Deadline: rec.Deadline, TimeoutSeconds: rec.TimeoutSeconds}
}

// place stores a pending request as a question, or as a waiter of an identical call's question. The
// question's timer is the lock. If identical calls arrive at the same time, on any engines, one call
// gets the lock, and the others join its question. The error is ErrMoved if the record is not at the
// entry's revision.
func (e *recordLife) place(ctx context.Context, entry bus.Entry) (bus.Entry, error) {
	for {
		own := e.asQuestion(entry)
		revision, err := e.store.Records.Create(ctx, own)
		if !errors.Is(err, bus.ErrLockHeld) {
			own.Revision = revision
			if err == nil {
				err = e.keepArmed(ctx, own)
			}
			return own, err
		}
		held, err := e.store.Records.Holder(ctx, &own)
		if err != nil {
			return entry, err
		}
		placed, done, err := e.placeWithHolder(ctx, own, held)
		if done || err != nil {
			return placed, err
		}
		entry = placed
	}
}

// asQuestion returns an entry as a question, with the entry's own request as the only waiter.
func (e *recordLife) asQuestion(entry bus.Entry) bus.Entry {
	rec := &entry.Record
	rec.Joined, rec.Waiters = "", []schemas.Waiter{waiterOf(&entry)}
	if rec.NextEvent == nil {
		next := nextEvent(rec, e.clock.now())
		rec.NextEvent = &next
	}
	return entry
}

// placeWithHolder stores a request if another request holds the lock of its question. If done is false,
// the caller must place the returned entry again: the holder of the lock is gone or not stored yet, or
// the entry becomes a question without the lock.
func (e *recordLife) placeWithHolder(ctx context.Context, own bus.Entry, held bus.LockHolder) (_ bus.Entry, done bool, err error) {
	session, _ := schemas.SplitKey(own.Key)
	if held.PendingID == "" {
		return own, false, nil
	}
	question, err := e.store.Records.Get(ctx, schemas.Key(session, held.PendingID))
	switch {
	case errors.Is(err, bus.ErrNotFound) && e.clock.now().Sub(held.At) < callTimeout: // the holder of the lock has not stored its record yet
		if sleep(ctx, holderPause) != nil {
			return own, false, schemas.Errorf(schemas.CodeUnavailable, "an identical call is about to be stored; ask again")
		}
		return own, false, nil
	case err != nil && !noRecord(err):
		return own, false, err
	case err != nil || !asksFor(&question.Record, own.Record.Question):
		return e.takeLock(ctx, own, held)
	case !e.settings.now().settings.JoinsIdentical() && !slices.ContainsFunc(question.Record.Waiters, isDetached):
		own.Record.Question = "" // a request without a question token becomes a question without a lock
		return own, false, nil
	case !takesWaiters(&question.Record):
		_, err := e.retire(ctx, question)
		return own, false, err
	}
	return e.join(ctx, own, question)
}

func asksFor(rec *schemas.Record, token string) bool {
	return !rec.Terminal() && rec.Joined == "" && rec.Question == token
}

// takesWaiters reports whether a further call may join a question. In a question with votes the call
// must replace a detached call, because the votes are only for the question's earlier calls.
func takesWaiters(rec *schemas.Record) bool {
	return len(rec.Waiters) < maxWaiters && (len(rec.Votes) == 0 || slices.ContainsFunc(rec.Waiters, isDetached))
}

func isDetached(w schemas.Waiter) bool { return w.Open() && w.Detached }

// takeLock stores a request as a question, and takes the lock from an earlier question that has
// ended.
func (e *recordLife) takeLock(ctx context.Context, own bus.Entry, held bus.LockHolder) (bus.Entry, bool, error) {
	revision, err := e.store.Records.TakeOver(ctx, own, held.Revision)
	own.Revision = revision
	if errors.Is(err, bus.ErrLockHeld) {
		return own, false, nil
	}
	if err == nil {
		err = e.keepArmed(ctx, own)
	}
	return own, true, err
}

// keepArmed sets a new question's timer again if the timer may have fired before the question was
// stored, because engines ignore a fired timer without a record.
func (e *recordLife) keepArmed(ctx context.Context, question bus.Entry) error {
	if withEarliestEvent(question).Record.NextEvent.At.Sub(e.clock.now()) > firesSoon {
		return nil
	}
	first := withEarliestEvent(question)
	err := e.store.Records.Arm(ctx, &first)
	if errors.Is(err, bus.ErrLockHeld) {
		_, err = e.retire(ctx, question)
	}
	return err
}

// retire takes the lock from a pending question, so that the next identical call opens another
// question. The question stays pending.
func (e *recordLife) retire(ctx context.Context, question bus.Entry) (bus.Entry, error) {
	next := question
	next.Record.Question = ""
	first := withEarliestEvent(next)
	if err := e.store.Records.Rearm(ctx, &first); err != nil {
		return question, err
	}
	return e.update(ctx, question, func(rec *schemas.Record) bool {
		changed := rec.Question != ""
		rec.Question = ""
		return changed
	})
}

// join stores in the request's own record that the request has joined the question, and only then adds
// the request to the question's waiters. In the other order, the question could be decided for an id
// that another request can still take.
func (e *recordLife) join(ctx context.Context, own, question bus.Entry) (_ bus.Entry, done bool, err error) {
	w := waiterOf(&own)
	_, own.Record.Joined = schemas.SplitKey(question.Key)
	own.Record.Waiters, own.Record.NextEvent = nil, nil
	own.Record.Trace = joinTrace(own.Record.Trace, question.Record.Trace)
	if own.Revision, err = e.store.Records.Update(ctx, own); err != nil {
		return own, true, err
	}
	err = e.addWaiter(ctx, question, w)
	if errors.Is(err, bus.ErrMoved) || errors.Is(err, errFull) {
		return own, false, nil
	}
	return own, true, err
}

// addWaiter adds a call to a pending question. If the agent of an earlier waiter has stopped waiting,
// the new call replaces that waiter. The error is ErrMoved if the question has ended or lost its lock,
// and errFull if the question has maxWaiters waiters.
func (e *recordLife) addWaiter(ctx context.Context, question bus.Entry, w schemas.Waiter) error {
	token := question.Record.Question
	_, _, err := e.change(ctx, question, func(next *bus.Entry) (write, error) {
		was, rec := *next, &next.Record
		switch {
		case !asksFor(rec, token):
			return nil, bus.ErrMoved
		case rec.Waiter(w.PendingID) != nil:
			return nil, nil
		case !takesWaiters(rec):
			return nil, errFull
		}
		rec.Waiters = slices.Clone(rec.Waiters)
		w.Place = rec.Places()
		if i := slices.IndexFunc(rec.Waiters, isDetached); i >= 0 {
			w.Place = rec.Waiters[i].Place
			rec.Waiters[i].Decision = e.replacedDecision(next, rec.Waiters[i])
		}
		rec.Waiters = append(rec.Waiters, w)
		err := e.keepTimer(ctx, next)
		if errors.Is(err, bus.ErrLockHeld) {
			if _, err = e.retire(ctx, was); err == nil {
				err = bus.ErrMoved
			}
		}
		return e.store.Records.Update, err
	})
	return err
}

// replacedDecision returns the decision that withdraws a detached waiter, because its agent has sent
// the same call again. The agent may still read the message of this decision.
func (e *recordLife) replacedDecision(entry *bus.Entry, w schemas.Waiter) *schemas.Decision {
	session, _ := schemas.SplitKey(entry.Key)
	return e.withdrawal(entry.Record.Agent, &schemas.Withdraw{SessionID: session, PendingID: w.PendingID, Reason: askedAgain}, w.Digest)
}

// keepTimer adapts a question's deadline and next event to its waiters, and sets the timer for the
// earliest event. The caller must write the record afterwards.
func (e *recordLife) keepTimer(ctx context.Context, entry *bus.Entry) error {
	rec := &entry.Record
	extendDeadline(rec)
	if rec.NextEvent == nil {
		return nil
	}
	first := withEarliestEvent(*entry)
	if sameEvent(*first.Record.NextEvent, *rec.NextEvent) {
		return nil
	}
	if rec.NextEvent.Kind == schemas.EventDeadline {
		rec.NextEvent = first.Record.NextEvent
	}
	return e.store.Records.Arm(ctx, &first)
}

// withEarliestEvent returns an entry with its earliest event in NextEvent: its next event or, if that
// is earlier, the first deadline of a waiter. The entry's timer is set for this event.
func withEarliestEvent(entry bus.Entry) bus.Entry {
	if first := deadlineOf(&entry.Record); first.At.Before(entry.Record.NextEvent.At) {
		entry.Record.NextEvent = &first
	}
	return entry
}

// extendDeadline sets a question's deadline to the latest deadline of its open waiters.
func extendDeadline(rec *schemas.Record) {
	var last time.Time
	for i := range rec.Waiters {
		if w := &rec.Waiters[i]; w.Open() && w.Deadline.After(last) {
			last = w.Deadline
		}
	}
	if !last.IsZero() {
		rec.Deadline = last
	}
}

// deadlineOf returns the earliest deadline of a question's open waiters as an event.
func deadlineOf(rec *schemas.Record) schemas.Event {
	at := rec.Deadline
	for i := range rec.Waiters {
		if w := &rec.Waiters[i]; w.Open() && w.Deadline.Before(at) {
			at = w.Deadline
		}
	}
	return schemas.Event{At: at, Kind: schemas.EventDeadline}
}

// lookUp returns the record that decides a request, and the decision, which is nil while the request is
// pending. If the request has joined a question that ended without deciding it, lookUp makes the
// request a question of its own.
func (e *recordLife) lookUp(ctx context.Context, entry bus.Entry) (question bus.Entry, d *schemas.Decision, err error) {
	session, id := schemas.SplitKey(entry.Key)
	for {
		if entry.Record.Joined == "" {
			d, err = verdictOn(&entry, id)
			return entry, d, err
		}
		if entry.Record.Terminal() {
			return entry, entry.Record.Decision, nil
		}
		question, err = e.store.Records.Get(ctx, schemas.Key(session, entry.Record.Joined))
		if err != nil && !noRecord(err) {
			return entry, nil, err
		}
		if err == nil {
			w, d := question.Record.Waiter(id), question.Record.Verdict(id)
			if d != nil || w != nil && w.Open() {
				d, err = verdictOn(&question, id)
				return question, d, err
			}
			if !question.Record.Terminal() {
				// A server that slept and lost its leadership may return an old version, in which the
				// request has not joined yet. Writing the record unchanged detects this, because this
				// server cannot store anything.
				_, err = e.store.Records.Update(ctx, question)
				if errors.Is(err, bus.ErrMoved) {
					continue
				}
				if err != nil {
					return entry, nil, err
				}
			}
		}
		placed, err := e.place(ctx, entry)
		if errors.Is(err, bus.ErrMoved) {
			placed, err = e.store.Records.Get(ctx, entry.Key)
		}
		if err != nil {
			return entry, nil, err
		}
		entry = placed
	}
}

// followWaiters writes a question's decisions into the records of the requests that have joined it,
// because lists and retention use these records. A request that the question left undecided becomes a
// question of its own.
func (e *recordLife) followWaiters(ctx context.Context, question bus.Entry) error {
	session, own := schemas.SplitKey(question.Key)
	for i := range question.Record.Waiters {
		w := &question.Record.Waiters[i]
		if w.PendingID == own || w.Open() && !question.Record.Terminal() {
			continue
		}
		d, err := verdictOn(&question, w.PendingID)
		if err != nil {
			return err
		}
		if err := e.followWaiter(ctx, schemas.Key(session, w.PendingID), own, d); err != nil {
			return err
		}
	}
	return nil
}

func (e *recordLife) followWaiter(ctx context.Context, key, question string, d *schemas.Decision) error {
	for {
		entry, err := e.store.Records.Get(ctx, key)
		if noRecord(err) {
			return nil
		}
		if err != nil || entry.Record.Terminal() || entry.Record.Joined != question {
			return err
		}
		if d == nil {
			_, err = e.place(ctx, entry)
		} else {
			entry.Record.Decision, entry.Record.NextEvent = d, nil
			keepRun(&entry)
			_, err = e.store.Records.Decide(ctx, entry)
		}
		if !errors.Is(err, bus.ErrMoved) {
			return err
		}
	}
}
