package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nodbus/nod/schemas"
)

// Create stores a pending record and its timer. It arms the timer first, because the timer's subject is
// the lock by which identical calls share one question. If another request holds the lock, Create stores
// nothing and returns ErrLockHeld. If the record is not at the entry's revision, the error is ErrMoved.
// The timer may then be armed already, but has no effect, because it does not belong to the stored
// record.
func (r *Records) Create(ctx context.Context, e Entry) (uint64, error) {
	return r.TakeOver(ctx, e, 0)
}

// TakeOver stores a record and its timer as Create does, for a request that takes the lock from
// another request, whose question has ended. The parameter revision is the Revision in the LockHolder
// that Holder returned.
func (r *Records) TakeOver(ctx context.Context, e Entry, revision uint64) (uint64, error) {
	data, err := schemas.Encode(&e.Record)
	if err != nil {
		return 0, fmt.Errorf("encode the record %s: %w", e.Key, err)
	}
	fresh, err := r.lock(ctx, &e, revision)
	if err != nil {
		return 0, err
	}
	seq, err := r.put(ctx, e.Key, data, e.Revision, nil)
	if err == nil && !fresh { // an earlier try may have armed the timer for another event
		err = r.Arm(ctx, &e)
	}
	return seq, err
}

// lock arms the entry's timer if the timer's subject is at the given revision. The result fresh is
// false if this request already holds the lock, from an earlier try or through another engine.
func (r *Records) lock(ctx context.Context, e *Entry, revision uint64) (fresh bool, err error) {
	msg, err := timerMsg(e)
	if err != nil {
		return false, err
	}
	_, id := schemas.SplitKey(e.Key)
	for try := 0; ; try++ {
		_, err := r.send(ctx, msg, revision, jetstream.WithExpectLastSequenceForSubject(revision, lockFilter+timerToken(e))) // the caller waits until the record is on disk; the timer needs no wait of its own, because it precedes the record in the same stream
		if err == nil {
			return true, nil
		}
		if isConflict(err) {
			held, err := r.Holder(ctx, e)
			if err != nil || held.PendingID == id {
				return false, err
			}
			if held.Revision != revision {
				return false, ErrLockHeld
			}
		} else if isPermanent(err) {
			return false, fmt.Errorf("arm the timer of %s: %w", e.Key, err)
		}
		if pause(ctx, try) != nil {
			return false, fmt.Errorf("arm the timer of %s: %w (%v)", e.Key, ErrUnknown, err)
		}
	}
}

// ErrLockHeld means that another request holds the lock of identical calls.
var ErrLockHeld = errors.New("an identical call holds the lock")

// LockHolder is the holder of the lock of identical calls.
type LockHolder struct {
	PendingID string // the id of the request that holds the lock; empty if no request holds it
	Revision  uint64 // the revision to pass to TakeOver
	At        time.Time
}

// Holder returns the request that holds the lock for calls identical to the entry's call. That request
// may be decided already, because the broker keeps a fired timer for a while. Its record may not be
// stored yet.
func (r *Records) Holder(ctx context.Context, e *Entry) (LockHolder, error) {
	val, err := r.last(ctx, lockFilter+timerToken(e))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return LockHolder{}, fmt.Errorf("read the lock of %s: %w", e.Key, err)
	}
	t, _ := timerOf(val.data)
	return LockHolder{t.PendingID, val.revision, val.at}, nil
}

func timerToken(e *Entry) string {
	session, id := schemas.SplitKey(e.Key)
	if e.Record.Question != "" {
		id = e.Record.Question
	}
	return schemas.Key(session, id)
}

// Arm makes the record's timer fire no later than the record's next event. It leaves a timer with an
// earlier time as it is, because the engine that handles that timer calls Arm again. If the timer belongs
// to another request, the error is ErrLockHeld.
func (r *Records) Arm(ctx context.Context, e *Entry) error {
	return r.rearm(ctx, e, func(armed timer) bool { return !armed.At.After(e.Record.NextEvent.At) })
}

// Rearm arms the record's timer for exactly its next event, which may be later than before.
func (r *Records) Rearm(ctx context.Context, e *Entry) error {
	return r.rearm(ctx, e, func(timer) bool { return false })
}

func (r *Records) rearm(ctx context.Context, e *Entry, enough func(timer) bool) error {
	msg, err := timerMsg(e)
	if err != nil {
		return err
	}
	timers := *r.kvStream
	timers.prefix = timerPrefix
	for {
		val, err := r.last(ctx, timerPrefix+timerToken(e))
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("read the timer of %s: %w", e.Key, err)
		}
		if armed, ok := timerOf(val.data); err == nil && ok {
			if !armed.of(e) {
				return ErrLockHeld
			}
			if enough(armed) {
				return nil
			}
		}
		if _, err = timers.put(ctx, timerToken(e), msg.Data, val.revision, msg.Header); !errors.Is(err, ErrMoved) {
			return err
		}
	}
}

// Armed returns the event for which the record's timer is armed. The error is ErrNotFound if no timer of
// the record is armed.
func (r *Records) Armed(ctx context.Context, e *Entry) (schemas.Event, error) {
	val, err := r.last(ctx, timerPrefix+timerToken(e))
	if err != nil {
		return schemas.Event{}, err
	}
	t, _ := timerOf(val.data) // if the data is no timer, t is the zero timer
	if !t.of(e) {
		return schemas.Event{}, ErrNotFound
	}
	return t.Event, nil
}

type timer struct {
	schemas.Event
	PendingID string `json:"pending_id,omitempty"`
}

// The method of reports whether the timer belongs to the entry. The timers of older versions of nod
// have the id of their request only in the subject.
func (t timer) of(e *Entry) bool {
	_, id := schemas.SplitKey(e.Key)
	return t.PendingID == id || t.PendingID == "" && e.Record.Question == ""
}

// timerMsg returns a message that the broker publishes at the time of the record's next event. It sets
// the header without jetstream.WithScheduleAt, which truncates the time to seconds.
func timerMsg(e *Entry) (*nats.Msg, error) {
	_, id := schemas.SplitKey(e.Key)
	data, err := schemas.Encode(&timer{*e.Record.NextEvent, id})
	if err != nil {
		return nil, fmt.Errorf("encode the timer of %s: %w", e.Key, err)
	}
	token := timerToken(e)
	msg := nats.NewMsg(timerPrefix + token)
	msg.Data = data
	msg.Header.Set("Nats-Schedule", "@at "+e.Record.NextEvent.At.UTC().Format(time.RFC3339Nano))
	msg.Header.Set("Nats-Schedule-Target", duePrefix+token)
	msg.Header.Set("Nats-Schedule-TTL", firedFor)
	return msg, nil
}

func timerOf(data []byte) (timer, bool) {
	var t timer
	err := json.Unmarshal(data, &t)
	return t, err == nil && !t.At.IsZero()
}

// Pending lists the keys of questions with an armed timer: those of one session or, if session is
// empty, of all sessions. The list lacks a question whose timer has fired or is lost, so no decision
// may depend on the list.
func (r *Records) Pending(ctx context.Context, session string) ([]string, error) {
	return r.timed(ctx, timerPrefix, session)
}

// FiredOf lists the keys of those questions of a session whose timers fired less than firedFor ago. Most
// of these questions are decided.
func (r *Records) FiredOf(ctx context.Context, session string) ([]string, error) {
	return r.timed(ctx, duePrefix, session)
}

// timed returns the keys of the questions whose timers' subjects begin with this prefix.
func (r *Records) timed(ctx context.Context, prefix, session string) ([]string, error) {
	tokens, err := r.timers(ctx, prefix, session)
	if err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(tokens))
	for _, token := range tokens {
		session, id := schemas.SplitKey(token)
		if strings.HasPrefix(id, questionMark) {
			val, err := r.last(ctx, prefix+token)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			t, _ := timerOf(val.data)
			id = t.PendingID
		}
		keys = append(keys, schemas.Key(session, id))
	}
	return keys, nil
}

// CountPending returns the number of questions that Pending would list.
func (r *Records) CountPending(ctx context.Context, session string) (int, error) {
	tokens, err := r.timers(ctx, timerPrefix, session)
	return len(tokens), err
}

// timers returns the tokens of the timers of a session's questions, or of all sessions if session is
// empty. The parameter prefix selects armed timers or fired timers.
func (r *Records) timers(ctx context.Context, prefix, session string) ([]string, error) {
	if session != "" { // most sessions have no timers
		if none, err := r.isEmpty(ctx, prefix+sessionFilter(session)); err != nil || none {
			return nil, err
		}
	}
	return r.keys(ctx, prefix, sessionFilter(session))
}

// questionMark begins every QuestionToken. No pending_id contains it.
const questionMark = "="

// QuestionToken returns the timer token that identical calls with this digest share. No request can have
// the token as its id, because the token is no valid pending_id.
func QuestionToken(digest string) string { return questionMark + digest }

// Due returns the queue of fired timers. One engine gets each timer. If that engine does not
// acknowledge the timer within ackWait, another engine gets it.
func (r *Records) Due(ctx context.Context, ackWait time.Duration) (*Queue, error) {
	return r.conn.queue(ctx, r.stream, r.disk, clockConfig(ackWait))
}

func clockConfig(ackWait time.Duration) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       "nod-clock",
		FilterSubject: duePrefix + ">",
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxAckPending: 512,
	}
}

// Fired decodes a fired timer. The result ok is false if the delivery is no timer.
func (r *Records) Fired(d *Delivery) (f FiredTimer, ok bool) {
	t, ok := timerOf(d.Data)
	f.token = strings.TrimPrefix(d.Subject, duePrefix)
	session, id := schemas.SplitKey(f.token)
	if t.PendingID != "" {
		id = t.PendingID
	}
	f.Key, f.Event = schemas.Key(session, id), t.Event
	return f, ok
}

// FiredTimer is a timer that has fired.
type FiredTimer struct {
	Key   string
	Event schemas.Event
	token string
}

// Of reports whether the timer belongs to the entry. It returns false for an entry that has joined
// another question.
func (f FiredTimer) Of(e *Entry) bool { return f.token == timerToken(e) && e.Record.Joined == "" }
