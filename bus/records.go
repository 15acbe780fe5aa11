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

const (
	recordPrefix = "$KV.pending_permissions."
	timerPrefix  = "nod.v1.timer."
	duePrefix    = "nod.v1.due."

	// firedFor is how long a fired timer waits for an engine; the sweep finds
	// what went by while all were away for longer.
	firedFor = "1h"
	// Retention is how long a terminal record is kept.
	Retention = 24 * time.Hour
)

// Records is the bucket pending_permissions: the record of each request, and
// in the same stream its timer. There is no TTL on a record that can still be
// updated: the marker of an expiry wipes acknowledged updates made near it.
type Records struct{ *keyed }

// Entry is a record and the revision it was read at.
type Entry struct {
	Key      string
	Record   schemas.Record
	Revision uint64
}

func recordsConfig(replicas int) jetstream.StreamConfig {
	config := bucketConfig("pending_permissions", false, replicas)
	config.Subjects = append(config.Subjects, timerPrefix+">", duePrefix+">")
	config.AllowMsgSchedules = true
	return config
}

// Get reads a record. ErrNotFound comes with the revision that Create and
// CreateDecided must name.
func (r *Records) Get(ctx context.Context, key string) (Entry, error) {
	val, err := r.get(ctx, key)
	if err != nil {
		return Entry{Key: key, Revision: val.revision}, err
	}
	return decodeEntry(key, val)
}

func decodeEntry(key string, val value) (Entry, error) {
	e := Entry{Key: key, Revision: val.revision}
	if err := schemas.Load(val.data, &e.Record); err != nil {
		return e, fmt.Errorf("read the record %s: %w: %w", key, ErrUnreadable, err)
	}
	return e, nil
}

// Create stores a pending record and its timer, both or, where the record is
// ErrMoved (there is one already), at most a timer that does no harm.
func (r *Records) Create(ctx context.Context, key string, rec schemas.Record, revision uint64) (uint64, error) {
	data, err := schemas.Encode(rec)
	if err != nil {
		return 0, fmt.Errorf("encode the record %s: %w", key, err)
	}
	timer, err := timerMsg(key, *rec.NextEvent)
	if err != nil {
		return 0, err
	}
	// Sequence 0 for the timer as well: a second ask must not move the timer
	// of the first.
	armed, err := r.conn.js.PublishMsgAsync(timer, jetstream.WithExpectLastSequencePerSubject(0))
	if err != nil {
		return 0, fmt.Errorf("arm the timer of %s: %w (%v)", key, ErrUnknown, err)
	}
	msg := &nats.Msg{Subject: r.prefix + key, Data: data}
	stored, err := r.conn.js.PublishMsgAsync(msg, jetstream.WithExpectLastSequencePerSubject(revision))
	if err != nil {
		return 0, fmt.Errorf("store the record %s: %w (%v)", key, ErrUnknown, err)
	}
	seq, err := acked(ctx, stored)
	if err != nil {
		if seq, err = r.put(ctx, key, data, revision, nil); err != nil {
			return 0, err
		}
	}
	if _, err := acked(ctx, armed); err != nil {
		if err := r.Arm(ctx, key, *rec.NextEvent); err != nil {
			return 0, err
		}
	}
	return seq, nil
}

// acked waits for the acknowledgement of an asynchronous publish.
func acked(ctx context.Context, f jetstream.PubAckFuture) (uint64, error) {
	select {
	case ack := <-f.Ok():
		return ack.Sequence, nil
	case err := <-f.Err():
		return 0, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Update writes a change that does not end the request.
func (r *Records) Update(ctx context.Context, e Entry) (uint64, error) {
	data, err := schemas.Encode(e.Record)
	if err != nil {
		return 0, fmt.Errorf("encode the record %s: %w", e.Key, err)
	}
	return r.put(ctx, e.Key, data, e.Revision, nil)
}

// Decide writes a record that has its decision, at the revision that was read:
// of all that try, one wins and the others get ErrMoved. The same publish
// starts the record's retention and cancels its timer. A decision whose
// outcome stays unknown is ErrUnknown; repeating it is safe, because the
// decision's id tells whose write is stored.
func (r *Records) Decide(ctx context.Context, e Entry) (uint64, error) {
	data, err := schemas.Encode(e.Record)
	if err != nil {
		return 0, fmt.Errorf("encode the record %s: %w", e.Key, err)
	}
	header := nats.Header{}
	ttl(header, Retention)
	header.Set("Nats-Schedule-Next", "purge")
	header.Set("Nats-Scheduler", timerPrefix+e.Key)
	return r.put(ctx, e.Key, data, e.Revision, header)
}

// CreateDecided stores a record that has its decision from the start.
func (r *Records) CreateDecided(ctx context.Context, e Entry) (uint64, error) {
	data, err := schemas.Encode(e.Record)
	if err != nil {
		return 0, fmt.Errorf("encode the record %s: %w", e.Key, err)
	}
	header := nats.Header{}
	ttl(header, Retention)
	return r.put(ctx, e.Key, data, e.Revision, header)
}

// Arm sees to it that the record's timer fires no later than at its next
// event. A timer that is armed for that or earlier is left alone: one that
// fires early is armed again by whoever handles it.
func (r *Records) Arm(ctx context.Context, key string, next schemas.Event) error {
	for {
		val, err := r.last(ctx, timerPrefix+key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("read the timer of %s: %w", key, err)
		}
		if armed, ok := armedFor(val.data); err == nil && ok && !armed.At.After(next.At) {
			return nil
		}
		err = r.arm(ctx, key, next, val.revision)
		if !errors.Is(err, ErrMoved) {
			return err
		}
	}
}

// Rearm replaces the timer by one for the next event, whatever it was armed for.
func (r *Records) Rearm(ctx context.Context, key string, next schemas.Event) error {
	for {
		val, err := r.last(ctx, timerPrefix+key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("read the timer of %s: %w", key, err)
		}
		if err = r.arm(ctx, key, next, val.revision); !errors.Is(err, ErrMoved) {
			return err
		}
	}
}

// Armed is what the record's timer is armed for; ErrNotFound where it has none.
func (r *Records) Armed(ctx context.Context, key string) (schemas.Event, error) {
	val, err := r.last(ctx, timerPrefix+key)
	if err != nil {
		return schemas.Event{}, err
	}
	e, _ := armedFor(val.data) // none is the zero event
	return e, nil
}

func (r *Records) arm(ctx context.Context, key string, next schemas.Event, revision uint64) error {
	msg, err := timerMsg(key, next)
	if err != nil {
		return err
	}
	timers := *r.keyed
	timers.prefix = timerPrefix
	_, err = timers.put(ctx, key, msg.Data, revision, msg.Header)
	return err
}

// timerMsg is a scheduled message that carries the instant it is armed for.
// jetstream.WithScheduleAt truncates to seconds, so the header is set here.
func timerMsg(key string, next schemas.Event) (*nats.Msg, error) {
	data, err := schemas.Encode(next)
	if err != nil {
		return nil, fmt.Errorf("encode the timer of %s: %w", key, err)
	}
	msg := nats.NewMsg(timerPrefix + key)
	msg.Data = data
	msg.Header.Set("Nats-Schedule", "@at "+next.At.UTC().Format(time.RFC3339Nano))
	msg.Header.Set("Nats-Schedule-Target", duePrefix+key)
	msg.Header.Set("Nats-Schedule-TTL", firedFor)
	return msg, nil
}

func armedFor(data []byte) (schemas.Event, bool) {
	var e schemas.Event
	err := json.Unmarshal(data, &e)
	return e, err == nil && !e.At.IsZero()
}

// Pending lists the keys of the undecided records of a session, or of all
// sessions where that is empty: those that have a timer. A pending record that
// lost its timer is missing until the sweep has armed it again.
func (r *Records) Pending(ctx context.Context, session string) ([]string, error) {
	if session != "" { // most have none
		if none, err := r.none(ctx, timerPrefix+sessionFilter(session)); err != nil || none {
			return nil, err
		}
	}
	return r.keys(ctx, timerPrefix, sessionFilter(session))
}

// Keys lists the keys of all kept records of a session, decided ones too.
func (r *Records) Keys(ctx context.Context, session string) ([]string, error) {
	return r.keys(ctx, r.prefix, sessionFilter(session))
}

// ChangedSince are the records of a session that were written at an instant of the
// broker's clock or later, as they are now.
func (r *Records) ChangedSince(ctx context.Context, session string, since time.Time) ([]Entry, error) {
	filter := r.prefix + sessionFilter(session)
	if none, err := r.none(ctx, filter); err != nil || none { // most sessions have none
		return nil, err
	}
	consumer, err := r.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{filter}, DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &since, HeadersOnly: true,
		InactiveThreshold: 10 * time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("list what changed in %s: %w", r.name, err)
	}
	var changed []Entry
	for left := consumer.CachedInfo().NumPending; left > 0; left-- {
		msg, err := consumer.Next(jetstream.FetchMaxWait(hopTimeout))
		if errors.Is(err, nats.ErrTimeout) {
			break // one has gone meanwhile, at the end of its retention
		}
		if err != nil {
			return nil, fmt.Errorf("list what changed in %s: %w", r.name, err)
		}
		entry, err := r.Get(ctx, strings.TrimPrefix(msg.Subject(), r.prefix))
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnreadable) {
			continue
		}
		if err != nil {
			return nil, err
		}
		changed = append(changed, entry)
	}
	return changed, nil
}

// Named lists the keys of all kept records with this id, in any session.
func (r *Records) Named(ctx context.Context, pendingID string) ([]string, error) {
	return r.keys(ctx, r.prefix, "*."+pendingID)
}

func sessionFilter(session string) string {
	if session == "" {
		return "*.*"
	}
	return session + ".*"
}

// Outbox delivers every record's newest version, at least once, to one of the
// engines, and to another when it is not done within ackWait. Versions that
// were overtaken before delivery are skipped.
func (r *Records) Outbox(ctx context.Context, ackWait time.Duration) (*Queue, error) {
	return r.conn.queue(ctx, r.stream, jetstream.ConsumerConfig{
		Durable:       "nod-outbox",
		FilterSubject: recordPrefix + ">",
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxAckPending: 512,
	})
}

// Due delivers every fired timer like Outbox.
func (r *Records) Due(ctx context.Context, ackWait time.Duration) (*Queue, error) {
	return r.conn.queue(ctx, r.stream, jetstream.ConsumerConfig{
		Durable:       "nod-clock",
		FilterSubject: duePrefix + ">",
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxAckPending: 512,
	})
}

// Entry decodes what the outbox delivered. A deleted key is ErrNotFound.
func (r *Records) Entry(d *Delivery) (Entry, error) {
	key := strings.TrimPrefix(d.Subject, recordPrefix)
	if d.msg.Headers().Get(operationHeader) != "" {
		return Entry{Key: key}, ErrNotFound
	}
	return decodeEntry(key, value{d.Data, d.Sequence})
}

// ArmedFor returns the key of a fired timer and what it was armed for.
func (r *Records) ArmedFor(d *Delivery) (key string, e schemas.Event, ok bool) {
	e, ok = armedFor(d.Data)
	return strings.TrimPrefix(d.Subject, duePrefix), e, ok
}
