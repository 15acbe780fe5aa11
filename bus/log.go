package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/schemas/redact"
)

// Log is the append-only stream permission_log.
type Log struct {
	*kvStream
	// Observe, if not nil, is called once for each entry that this process has added to the log. Observe
	// must not block.
	Observe func(*schemas.LogEntry)
	// Redact replaces the secrets of each entry before Append stores the entry.
	Redact redact.Redactor
}

func logConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:       "permission_log",
		Subjects:   []string{"nod.v1.log.*"},
		Storage:    jetstream.FileStorage,
		Duplicates: time.Hour,
		DenyDelete: true,
		DenyPurge:  true,
	}
}

// Retain sets the limits of the log. The log removes entries that are older than maxAge, and its
// oldest entries while it is larger than maxBytes. No credentials give the right to remove entries in
// any other way. If the servers have no room for maxBytes, Retain sets only maxAge and returns
// ErrNoRoom.
func (l *Log) Retain(ctx context.Context, maxAge time.Duration, maxBytes int64) error {
	info, err := l.stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("read the limits of the log: %w", err)
	}
	config := info.Config
	if config.MaxAge == maxAge && config.MaxBytes == maxBytes {
		return nil
	}
	config.MaxAge, config.MaxBytes = maxAge, maxBytes
	_, err = l.conn.js.UpdateStream(ctx, config)
	if code := apiCode(err); code == codeNoStorage || code == codeNoResources || code == codeNoPlacement {
		config.MaxBytes = info.Config.MaxBytes
		if _, err = l.conn.js.UpdateStream(ctx, config); err == nil {
			err = ErrNoRoom
		}
	}
	if err != nil {
		return fmt.Errorf("set the limits of the log: %w", err)
	}
	return nil
}

// ErrNoRoom means that no server has enough room for the size limit of the log.
var ErrNoRoom = errors.New("no server has enough room")

// The errors of servers without enough room for a stream's MaxBytes. nats.go has no names for these
// codes.
const (
	codeNoPlacement jetstream.ErrorCode = 10005
	codeNoResources jetstream.ErrorCode = 10023
	codeNoStorage   jetstream.ErrorCode = 10047
)

// Append adds an entry, without its secrets, under a message id. It returns the entry's sequence
// number, and first = true. If an entry with the same id was stored within the last hour, Append
// stores nothing, and returns the sequence number of that entry and first = false. While the outcome
// is unknown, Append tries again until ctx ends.
func (l *Log) Append(ctx context.Context, id string, e schemas.LogEntry) (sequence uint64, first bool, err error) {
	e, err = l.redacted(e)
	if err != nil {
		return 0, false, fmt.Errorf("append to the log: %w", err)
	}
	data, err := schemas.Encode(&e)
	if err != nil {
		return 0, false, fmt.Errorf("encode a log entry: %w", err)
	}
	session := e.SessionID
	if session == "" {
		session = "nod"
	}
	err = retryOperation(ctx, "append to the log", func(ctx context.Context) error {
		ack, err := l.publish(ctx, &nats.Msg{Subject: schemas.LogSubject(session), Data: data}, 0, jetstream.WithMsgID(id))
		if err == nil {
			sequence, first = ack.Sequence, !ack.Duplicate
		}
		return err
	})
	if err == nil && first {
		l.observe(&e)
	}
	return sequence, first, err
}

func (l *Log) observe(e *schemas.LogEntry) {
	if l.Observe != nil {
		l.Observe(e)
	}
}

// LogStart says with which entry EachLine begins. The zero LogStart begins with the oldest entry.
type LogStart struct {
	Since  time.Time // begin with the first entry stored at this time or later
	Newest int       // read only the newest entries, as many as this number says
	Follow bool      // after the newest entry, wait for new entries until ctx ends
}

// EachLogged calls f for every entry of the log, in order, up to the newest entry at the time of the
// call. If f returns an error, EachLogged stops and returns that error. The connection needs the right to
// read the stores.
func (c *Conn) EachLogged(ctx context.Context, f func(schemas.LogEntry) error) error {
	return c.EachLine(ctx, LogStart{}, func(sequence uint64, entry []byte) error {
		e, err := LoadEntry(sequence, entry)
		if err != nil {
			return err
		}
		return f(e)
	})
}

// LoadEntry decodes the stored bytes of a log entry. If the decoding fails, the error names the entry
// by its sequence number.
func LoadEntry(sequence uint64, entry []byte) (schemas.LogEntry, error) {
	var e schemas.LogEntry
	if err := schemas.Load(entry, &e); err != nil {
		return e, fmt.Errorf("read log entry %d: %w", sequence, err)
	}
	return e, nil
}

// EachLine does the same as EachLogged, but calls f with the stored bytes of each entry and with the
// entry's sequence number.
func (c *Conn) EachLine(ctx context.Context, from LogStart, f func(sequence uint64, entry []byte) error) error {
	stream, err := c.js.Stream(ctx, "permission_log")
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	config, state := jetstream.OrderedConsumerConfig{}, stream.CachedInfo().State
	if !from.Since.IsZero() {
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &from.Since
		if !from.Follow && from.Since.After(state.LastTime) {
			return nil
		}
	}
	if n := uint64(from.Newest); from.Newest > 0 && state.LastSeq >= state.FirstSeq+n {
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, state.LastSeq-n+1
	}
	last := state.LastSeq
	switch {
	case from.Follow:
		last = math.MaxUint64
	case state.Msgs == 0:
		return nil
	}
	return readLog(ctx, stream, config, last, f)
}

// readLog calls f for the entries of the log, in order, up to the sequence number in the parameter
// last.
func readLog(ctx context.Context, stream jetstream.Stream, config jetstream.OrderedConsumerConfig, last uint64, f func(sequence uint64, entry []byte) error) error {
	consumer, err := stream.OrderedConsumer(ctx, config)
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		sequence := meta.Sequence.Stream
		if sequence > last { // the entry with this sequence number was removed, and the entry that was read is newer
			return nil
		}
		if err := f(sequence, msg.Data()); err != nil || sequence == last {
			return err
		}
	}
}

// Read returns the entry with this sequence number. The error is ErrNotFound if the log has no such
// entry.
func (l *Log) Read(ctx context.Context, sequence uint64) (schemas.LogEntry, error) {
	var e schemas.LogEntry
	var msg *jetstream.RawStreamMsg
	err := retryOperation(ctx, fmt.Sprintf("read log entry %d", sequence), func(ctx context.Context) (err error) {
		msg, err = l.stream.GetMsg(ctx, sequence)
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return e, ErrNotFound
	case err != nil:
		return e, err
	}
	if err := l.disk.wait(ctx, sequence); err != nil {
		return e, fmt.Errorf("read log entry %d: %w", sequence, err)
	}
	return LoadEntry(sequence, msg.Data)
}
