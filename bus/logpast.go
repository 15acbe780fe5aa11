package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/schemas"
)

const (
	// logBatch is the greatest number of entries that the server sends at once, because an entry may be
	// as large as a message.
	logBatch = 128
	// logBytes is the greatest size of the entries that one read of the log keeps in memory.
	logBytes = 8 << 20
	// A read of one session's entries looks at sparse times as many entries as a read of all sessions'
	// entries.
	sparse = 10
)

// PastEntry is an entry of the log with its sequence and the time at which the entry was stored.
type PastEntry struct {
	schemas.LogEntry
	Sequence uint64
	Stored   time.Time
}

// PastEntries is a piece of the log. Its oldest entry is first.
type PastEntries struct {
	Entries []PastEntry
	First   uint64    // the sequence at which the piece begins; the first of Entries may have a later sequence
	Stored  time.Time // when the entry with the sequence number First was stored; zero if the log has no such entry
	Oldest  uint64    // the sequence of the log's oldest entry; 0 if the log is empty
	Begins  time.Time // when the log's oldest entry was stored
}

// Before reads entries of one session or, if the parameter session is empty, of all sessions. Their
// sequence numbers are less than the parameter before. For all sessions it looks at as many entries
// as the parameter most says, and for one session at ten times as many. Of these it returns the
// newest, at most as many as the parameter most says. It leaves out entries that this version of nod
// cannot read.
func (l *Log) Before(ctx context.Context, before uint64, session string, most int) (p PastEntries, err error) {
	err = retryOperation(ctx, "read the log", func(ctx context.Context) error {
		p, err = l.readBefore(ctx, before, session, uint64(most))
		return err
	})
	return p, err
}

func (l *Log) readBefore(ctx context.Context, before uint64, session string, most uint64) (PastEntries, error) {
	info, err := l.stream.Info(ctx)
	if err != nil {
		return PastEntries{}, err
	}
	if info.State.Msgs == 0 {
		return PastEntries{}, nil
	}
	p := PastEntries{Oldest: info.State.FirstSeq, Begins: info.State.FirstTime}
	before = min(before, info.State.LastSeq+1)
	span := most
	if session != "" {
		span *= sparse
	}
	p.First = p.Oldest
	if before <= p.Oldest {
		return p, nil
	}
	if before-p.Oldest > span {
		p.First = before - span
	}
	size, sizes := 0, []int(nil)
	config := jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: p.First}
	err = l.scanPast(ctx, config, sessionsOf(session), func(e PastEntry, bytes int) bool {
		if e.Sequence >= before {
			return false
		}
		p.Entries, sizes = append(p.Entries, e), append(sizes, bytes)
		for size += bytes; len(p.Entries) > 1 && (size > logBytes || len(p.Entries) > int(most)); size, sizes = size-sizes[0], sizes[1:] {
			p.Entries = p.Entries[1:]
			p.First = p.Entries[0].Sequence
		}
		return e.Sequence+1 < before
	})
	if err != nil {
		return PastEntries{}, err
	}
	if len(p.Entries) > 0 && p.Entries[0].Sequence == p.First {
		p.Stored = p.Entries[0].Stored
		return p, nil
	}
	first, err := l.stream.GetMsg(ctx, p.First)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return p, nil // the server has removed the entry in the meantime
	}
	if err == nil {
		p.Stored = first.Time
	}
	return p, err
}

func sessionsOf(session string) []string {
	if session == "" {
		return nil
	}
	return []string{session}
}

// FirstSince returns the sequence number of the first entry that was stored at or after a time. If
// there is none, it returns the sequence number that the next new entry will have.
func (l *Log) FirstSince(ctx context.Context, since time.Time) (sequence uint64, err error) {
	err = retryOperation(ctx, "read the log", func(ctx context.Context) error {
		info, err := l.stream.Info(ctx)
		if err != nil {
			return err
		}
		if sequence = info.State.LastSeq + 1; since.After(info.State.LastTime) {
			return nil
		}
		return l.scanPast(ctx, sinceTime(since), nil, func(e PastEntry, _ int) bool { sequence = e.Sequence; return false })
	})
	return sequence, err
}

func sinceTime(t time.Time) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &t}
}

// From reads the entries of some sessions from a sequence number on, at most as many as the parameter
// most says. The result whole means that there are no further entries.
func (l *Log) From(ctx context.Context, sequence uint64, sessions []string, most int) (entries []PastEntry, whole bool, err error) {
	config := jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: sequence}
	return l.upTo(ctx, config, sessions, most)
}

// Since reads entries as From does, but of one session, and those that were stored at the given time
// or later.
func (l *Log) Since(ctx context.Context, t time.Time, session string, most int) (entries []PastEntry, err error) {
	entries, _, err = l.upTo(ctx, sinceTime(t), []string{session}, most)
	return entries, err
}

func (l *Log) upTo(ctx context.Context, config jetstream.ConsumerConfig, sessions []string, most int) (entries []PastEntry, whole bool, err error) {
	err = retryOperation(ctx, "read the log", func(ctx context.Context) error {
		entries, whole = nil, true
		size := 0
		return l.scanPast(ctx, config, sessions, func(e PastEntry, bytes int) bool {
			if size += bytes; len(entries) >= most || size > logBytes {
				whole = false
				return false
			}
			entries = append(entries, e)
			return true
		})
	})
	return entries, whole, err
}

// scanPast calls f with each entry of the given sessions, and with the entry's size in bytes. An empty
// list means all sessions. scanPast ends when f returns false or no entry is left.
func (l *Log) scanPast(ctx context.Context, config jetstream.ConsumerConfig, sessions []string, f func(e PastEntry, bytes int) (more bool)) error {
	config.AckPolicy, config.MemoryStorage, config.Replicas, config.InactiveThreshold = jetstream.AckNonePolicy, true, 1, scanKept
	for _, s := range sessions {
		config.FilterSubjects = append(config.FilterSubjects, schemas.LogSubject(s))
	}
	consumer, err := l.stream.CreateConsumer(ctx, config)
	if err != nil {
		return err
	}
	defer func() { go l.removeConsumer(ctx, consumer.CachedInfo().Name) }()
	for pending := consumer.CachedInfo().NumPending; pending > 0; {
		batch, err := consumer.Fetch(int(min(pending, logBatch)), jetstream.FetchMaxWait(scanWait))
		if err != nil {
			return err
		}
		got := false
		for msg := range batch.Messages() {
			meta, err := msg.Metadata()
			if err != nil {
				return err
			}
			got, pending = true, meta.NumPending
			if err := l.disk.wait(ctx, meta.Sequence.Stream); err != nil {
				return err
			}
			entry, err := LoadEntry(meta.Sequence.Stream, msg.Data())
			if err != nil {
				continue // a later version of nod wrote the entry
			}
			if !f(PastEntry{entry, meta.Sequence.Stream, meta.Timestamp}, len(msg.Data())) {
				return nil
			}
		}
		if err := batch.Error(); err != nil {
			return err
		}
		if !got {
			return fmt.Errorf("%w of the log", errScanGap)
		}
	}
	return nil
}

// removeConsumer deletes a consumer. It ignores errors, because after scanKept the server deletes the
// consumer by itself.
func (l *Log) removeConsumer(ctx context.Context, name string) {
	hop, cancel := context.WithTimeout(context.WithoutCancel(ctx), scanWait)
	defer cancel()
	_ = l.stream.DeleteConsumer(hop, name)
}
