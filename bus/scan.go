package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// barrierSubject is the subject of a scan's barrier, a message that the scan writes before it reads.
	// Every message that the scan must read is stored before the barrier. No record has this subject,
	// because the key of a record has two tokens and the barrier's key has one.
	barrierSubject = recordPrefix + "barrier"

	scanBatch = 512
	// scanWait is how long a scan waits for its consumer, or for a batch, before it tries another
	// replica.
	scanWait = 2 * time.Second
	// scanKept is how long the server keeps the consumer of a killed scan.
	scanKept = 10 * time.Second
	// clockSkew is the greatest difference that a scan allows between a caller's time and the server's
	// clock.
	clockSkew = time.Minute
)

// ScannedRecord is a record that a scan has found, with its key and revision. The field Decided means
// that the record has a retention time, which only decided records have. A record without Decided may
// have been decided since the scan read it.
type ScannedRecord struct {
	Key      string
	Revision uint64
	Decided  bool
}

// Scan calls f for the records of a session, or of all sessions if session is empty, in the order of
// their last writes. It begins with the first record whose revision is greater than the parameter
// after. It ends when f returns false, or after the last record.
//
// Scan finds every record whose last write was acknowledged before the scan began, on any replica. It
// may find a record twice if the record is written during the scan. A caller must read a record again
// before it acts, because the replica may have an older version of the record than the leader. Scan
// reads no payloads and lists no subjects. After every failure it tries again until ctx ends.
func (r *Records) Scan(ctx context.Context, session string, after uint64, f func(ScannedRecord) (more bool)) error {
	return r.scan(ctx, &scan{session: session, last: after, found: f})
}

// ChangedSince returns those records of a session that were written at or after a time of the
// broker's clock, in the order of their writes. It returns their current state. It misses no record
// that Scan would find.
func (r *Records) ChangedSince(ctx context.Context, session string, since time.Time) ([]Entry, error) {
	if none, err := r.isEmpty(ctx, r.prefix+sessionFilter(session)); err != nil || none { // most sessions have no records
		return nil, err
	}
	var keys []string
	err := r.scan(ctx, &scan{session: session, since: since, found: func(f ScannedRecord) bool {
		if !slices.Contains(keys, f.Key) { // a scan may find a record twice
			keys = append(keys, f.Key)
		}
		return true
	}})
	if err != nil {
		return nil, err
	}
	var changed []Entry
	for _, key := range keys {
		entry, err := r.Get(ctx, key)
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

func (r *Records) scan(ctx context.Context, s *scan) error {
	s.records = r
	if err := s.setBarrier(ctx); err != nil {
		return err
	}
	for try := 0; ; try++ {
		before := s.last
		err := s.run(ctx)
		if err == nil {
			return nil
		}
		if isPermanent(err) {
			return fmt.Errorf("scan the records: %w", err)
		}
		if s.last > before {
			try = 0
		}
		if pause(ctx, try) != nil {
			return fmt.Errorf("scan the records: %w (%v)", ErrUnknown, err)
		}
	}
}

// scan is one pass over the stream of the records. After a failure it goes on with a new consumer.
type scan struct {
	records *Records
	session string // the session to read; empty means all sessions
	found   func(ScannedRecord) bool
	since   time.Time // the scan leaves out messages that were stored before this time
	barrier uint64    // the barrier's sequence, up to which the scan must read; 0 without a barrier
	last    uint64    // the sequence of the last message that was read
}

// setBarrier writes the barrier if the stream has several replicas. Before a replica delivers the
// barrier, it delivers every message that was acknowledged before the barrier was written.
func (s *scan) setBarrier(ctx context.Context) error {
	if s.records.stream.CachedInfo().Config.Replicas <= 1 {
		return nil
	}
	return retryOperation(ctx, "begin to scan the records", func(ctx context.Context) error {
		ack, err := s.records.conn.js.Publish(ctx, barrierSubject, nil, jetstream.WithRetryAttempts(0))
		if err == nil {
			s.barrier = ack.Sequence
		}
		return err
	})
}

// run reads from one replica. It begins after the last message that this scan has read.
func (s *scan) run(ctx context.Context) error {
	hop, cancel := context.WithTimeout(ctx, scanWait)
	config := jetstream.ConsumerConfig{
		FilterSubjects: s.filters(),
		DeliverPolicy:  jetstream.DeliverByStartSequencePolicy, OptStartSeq: s.last + 1,
		AckPolicy: jetstream.AckNonePolicy, HeadersOnly: true, MemoryStorage: true, Replicas: 1,
		InactiveThreshold: scanKept,
	}
	if s.last == 0 && !s.since.IsZero() {
		start := s.since.Add(-clockSkew) // the caller's time may be ahead of the server's clock, and if the scan started after the barrier, it would miss the barrier
		config.DeliverPolicy, config.OptStartSeq, config.OptStartTime = jetstream.DeliverByStartTimePolicy, 0, &start
	}
	consumer, err := s.records.stream.CreateConsumer(hop, config)
	cancel()
	if err != nil {
		return err
	}
	defer func() { go s.remove(ctx, consumer) }()
	if consumer.CachedInfo().NumPending == 0 && s.last >= s.barrier {
		return nil
	}
	for delivered := uint64(0); ; {
		done, err := s.batch(ctx, consumer, &delivered)
		if done || err != nil {
			return err
		}
	}
}

// filters returns the subjects to read. A scan of all sessions has no filter: it reads the whole stream
// and skips the timers. A filter that matches most of a stream's subjects would cost more, because the
// server compares all these subjects anew for each message (filestore.go, firstMatching).
func (s *scan) filters() []string {
	switch {
	case s.session == "":
		return nil
	case s.barrier == 0:
		return []string{s.records.prefix + sessionFilter(s.session)}
	}
	return []string{s.records.prefix + sessionFilter(s.session), barrierSubject}
}

// remove deletes the scan's consumer. It ignores errors, because after scanKept the server deletes
// the consumer by itself.
func (s *scan) remove(ctx context.Context, consumer jetstream.Consumer) {
	hop, cancel := context.WithTimeout(context.WithoutCancel(ctx), scanWait)
	defer cancel()
	_ = s.records.stream.DeleteConsumer(hop, consumer.CachedInfo().Name)
}

var (
	errScanGap    = errors.New("the server left out a message of the stream")
	errScanBehind = errors.New("the replica is behind")
)

// batch reads the next messages. The result done means that no message is left, or that the scan's
// caller wants no more records.
func (s *scan) batch(ctx context.Context, consumer jetstream.Consumer, delivered *uint64) (done bool, err error) {
	batch, err := consumer.Fetch(scanBatch, jetstream.FetchMaxWait(scanWait))
	if err != nil {
		return false, err
	}
	for {
		var msg jetstream.Msg
		select {
		case msg = <-batch.Messages():
		case <-ctx.Done():
			return false, ctx.Err()
		}
		if msg == nil {
			return false, errors.Join(batch.Error(), s.behind())
		}
		meta, err := msg.Metadata()
		if err != nil {
			return false, err
		}
		if *delivered++; meta.Sequence.Consumer != *delivered {
			return false, errScanGap
		}
		if err := s.records.disk.wait(ctx, meta.Sequence.Stream); err != nil {
			return false, err
		}
		if !s.take(msg, meta) {
			return true, nil
		}
		if meta.NumPending == 0 && s.last >= s.barrier {
			return true, nil
		}
		if *delivered%scanBatch == 0 {
			return false, nil
		}
	}
}

// The method behind returns the error for a replica that has sent fewer messages than the scan must
// read.
func (s *scan) behind() error {
	if s.last < s.barrier {
		return errScanBehind
	}
	return errScanGap // the replica has sent fewer messages than it announced
}

// take passes the record of a message to the scan's caller. It reports whether the scan goes on.
func (s *scan) take(msg jetstream.Msg, meta *jetstream.MsgMetadata) (more bool) {
	s.last = meta.Sequence.Stream
	key, found := strings.CutPrefix(msg.Subject(), s.records.prefix)
	if !found || !strings.Contains(key, ".") || msg.Headers().Get(operationHeader) != "" || meta.Timestamp.Before(s.since) {
		return true
	}
	return s.found(ScannedRecord{
		Key: key, Revision: s.last,
		Decided: msg.Headers().Get(jetstream.MsgTTLHeader) != "",
	})
}
