package bus

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/bus/logchain"
	"github.com/nodbus/nod/schemas"
)

// WriteCheckpoints appends checkpoints to the log until they cover all entries that were there
// at the call. If another engine writes a checkpoint at the same time, the entries are covered
// by that one, and WriteCheckpoints returns. A log without new entries gets no checkpoint. The
// checkpoints are signed with the key of the store's connection.
func (s *Store) WriteCheckpoints(ctx context.Context) error {
	sign, err := s.conn.signer()
	if err != nil {
		return fmt.Errorf("write a checkpoint of the log: %w", err)
	}
	defer sign.Wipe()
	for {
		more, err := s.writeCheckpoint(ctx, sign)
		if err != nil {
			return fmt.Errorf("write a checkpoint of the log: %w", err)
		}
		if !more {
			return nil
		}
	}
}

// writeCheckpoint writes one checkpoint. It reports whether there may be entries without one.
func (s *Store) writeCheckpoint(ctx context.Context, sign logchain.Signer) (more bool, err error) {
	var before schemas.Checkpoint
	stored, err := s.Log.last(ctx, schemas.CheckpointSubject)
	if err == nil {
		before, err = loadCheckpoint(stored)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, err
	}
	info, err := s.Log.stream.Info(ctx)
	if err != nil {
		return false, err
	}
	first, last := max(before.Last+1, info.State.FirstSeq), info.State.LastSeq
	if last < first || first == last && last == stored.revision {
		return false, nil
	}
	last = min(last, first+logchain.MaxEntries-1)
	entries, err := s.Log.consecutive(ctx, first, last)
	if err != nil || len(entries) == 0 {
		return false, err
	}
	e, err := sign.Make(first, entries, before.Hash, info.TimeStamp)
	if err != nil {
		return false, err
	}
	data, err := schemas.Encode(&e)
	if err != nil {
		return false, err
	}
	msg := &nats.Msg{Subject: schemas.CheckpointSubject, Data: data}
	_, err = s.Log.publish(ctx, msg, 0, jetstream.WithExpectLastSequencePerSubject(stored.revision))
	if isConflict(err) {
		return false, nil // another engine has written a checkpoint, or an earlier try succeeded
	}
	if err != nil {
		return false, err
	}
	s.Log.observe(&e)
	return last < info.State.LastSeq, nil
}

// signer reads the connection's key file. A connection without one signs nothing.
func (c *Conn) signer() (logchain.Signer, error) {
	if c.creds == "" {
		return logchain.Signer{}, nil
	}
	file, err := os.ReadFile(c.creds)
	if err != nil {
		return logchain.Signer{}, fmt.Errorf("read the key to sign it: %w", err)
	}
	defer clear(file)
	sign, err := logchain.NewSigner(file)
	if err != nil {
		return logchain.Signer{}, fmt.Errorf("the key file %s %w", c.creds, err)
	}
	return sign, nil
}

func loadCheckpoint(stored storedValue) (schemas.Checkpoint, error) {
	var e schemas.LogEntry
	if err := schemas.Load(stored.data, &e); err != nil {
		return schemas.Checkpoint{}, fmt.Errorf("read log entry %d: %w", stored.revision, err)
	}
	if e.Checkpoint == nil {
		return schemas.Checkpoint{}, fmt.Errorf("read log entry %d: it is no checkpoint", stored.revision)
	}
	return *e.Checkpoint, nil
}

// consecutive returns the stored bytes of the entries from first to last. It returns none if
// the log drops one of them meanwhile.
func (l *Log) consecutive(ctx context.Context, first, last uint64) ([][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, hopTimeout)
	defer cancel()
	var entries [][]byte
	gap := false
	config := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: first}
	err := readLog(ctx, l.stream, config, last, func(sequence uint64, entry []byte) error {
		gap = gap || sequence != first+uint64(len(entries))
		entries = append(entries, entry)
		return nil
	})
	if gap || uint64(len(entries)) != last-first+1 {
		return nil, err
	}
	return entries, err
}
