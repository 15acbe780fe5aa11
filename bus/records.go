package bus

import (
	"context"
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

	// lockFilter and a timer's token together form a subject filter. The filter matches the timer both
	// before the timer fires (timerPrefix) and afterwards (duePrefix).
	lockFilter = "nod.v1.*."

	// firedFor is how long a fired timer waits for an engine. If no engine runs during this time, the
	// engines' sweep later finds the timer's record.
	firedFor = "1h"
	// Retention is how long a decided record is kept.
	Retention = 24 * time.Hour
)

// Records is the bucket pending_permissions, which has the record of each request. The bucket's stream
// also has the records' timers. A pending record has no TTL, because the marker that follows an expired
// TTL could remove an update that the server has just acknowledged.
type Records struct{ *kvStream }

// Entry is a record with the revision at which it was read.
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

// Get reads a record. If the error is ErrNotFound, the returned Entry has only the revision that
// Create and CreateDecided need.
func (r *Records) Get(ctx context.Context, key string) (Entry, error) {
	val, err := r.get(ctx, key)
	if err != nil {
		return Entry{Key: key, Revision: val.revision}, err
	}
	return decodeEntry(key, val)
}

func decodeEntry(key string, val storedValue) (Entry, error) {
	e := Entry{Key: key, Revision: val.revision}
	if err := schemas.Load(val.data, &e.Record); err != nil {
		return e, fmt.Errorf("read the record %s: %w: %w", key, ErrUnreadable, err)
	}
	if rec := &e.Record; len(rec.Waiters) == 0 && rec.Joined == "" { // a question with a single waiter is stored without its list of waiters
		_, id := schemas.SplitKey(key)
		rec.Waiters = []schemas.Waiter{{PendingID: id, Digest: rec.Digest, Deadline: rec.Deadline, TimeoutSeconds: rec.TimeoutSeconds}}
	}
	return e, nil
}

// Update writes a change of a record whose request stays pending. The error is ErrMoved if another write
// came first.
func (r *Records) Update(ctx context.Context, e Entry) (uint64, error) {
	data, err := schemas.Encode(&e.Record)
	if err != nil {
		return 0, fmt.Errorf("encode the record %s: %w", e.Key, err)
	}
	return r.put(ctx, e.Key, data, e.Revision, nil)
}

// Decide writes a record with its decision, if the stored record still has the revision e.Revision. One
// of several concurrent writers succeeds; the others get ErrMoved. The same message also starts the
// record's retention and cancels its timer. After ErrUnknown the caller can repeat Decide, because the id
// of the stored decision shows whether this decision was stored.
func (r *Records) Decide(ctx context.Context, e Entry) (uint64, error) {
	e.Record.Type = schemas.TypeRecord // even an engine too old to read a TeamRecord can read the decided record
	data, err := schemas.Encode(&e.Record)
	if err != nil {
		return 0, fmt.Errorf("encode the record %s: %w", e.Key, err)
	}
	header := nats.Header{}
	ttl(header, Retention)
	if e.Record.Joined == "" { // records of joined requests have no timer
		header.Set("Nats-Schedule-Next", "purge")
		header.Set("Nats-Scheduler", timerPrefix+timerToken(&e))
	}
	return r.put(ctx, e.Key, data, e.Revision, header)
}

// Amend writes an addition to a decided record. The parameter kept is how long the broker keeps the
// record from then on. Amend does not change the record's timer, because the timer may by now belong
// to an identical call.
func (r *Records) Amend(ctx context.Context, e Entry, kept time.Duration) (uint64, error) {
	data, err := schemas.Encode(&e.Record)
	if err != nil {
		return 0, fmt.Errorf("encode the record %s: %w", e.Key, err)
	}
	header := nats.Header{}
	ttl(header, kept)
	return r.put(ctx, e.Key, data, e.Revision, header)
}

// CreateDecided stores a new record with its decision.
func (r *Records) CreateDecided(ctx context.Context, e Entry) (uint64, error) {
	return r.Amend(ctx, e, Retention)
}

// Named lists the keys of the stored records with this pending_id, in all sessions.
func (r *Records) Named(ctx context.Context, pendingID string) ([]string, error) {
	return r.keys(ctx, r.prefix, "*."+pendingID)
}

func sessionFilter(session string) string {
	if session == "" {
		return "*.*"
	}
	return session + ".*"
}

// Outbox returns the queue that delivers every record's newest version, at least once. One engine
// gets each version. If that engine does not acknowledge the version within ackWait, another engine
// gets it. A version that was replaced before its delivery is not delivered.
func (r *Records) Outbox(ctx context.Context, ackWait time.Duration) (*Queue, error) {
	return r.conn.queue(ctx, r.stream, r.disk, outboxConfig(ackWait))
}

func outboxConfig(ackWait time.Duration) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       "nod-outbox",
		FilterSubject: recordPrefix + "*.*", // leaves out the barriers of scans, whose keys have one token
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxAckPending: 512,
	}
}

// Entry decodes a delivery of the outbox. The error is ErrNotFound if the delivery is about a deleted
// key.
func (r *Records) Entry(d *Delivery) (Entry, error) {
	key := strings.TrimPrefix(d.Subject, recordPrefix)
	if d.msg.Headers().Get(operationHeader) != "" {
		return Entry{Key: key}, ErrNotFound
	}
	return decodeEntry(key, storedValue{data: d.Data, revision: d.Sequence})
}
