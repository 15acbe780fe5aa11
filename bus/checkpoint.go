package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/bus/logchain"
	"github.com/nodbus/nod/schemas"
)

// WriteCheckpoints appends checkpoints to the log until they cover all entries that the log had at the
// call. If another engine writes a checkpoint at the same time, WriteCheckpoints returns, because that
// checkpoint covers the entries. A log without new entries gets no checkpoint. The key of the store's
// connection signs the checkpoints.
func (s *Store) WriteCheckpoints(ctx context.Context) error {
	sign, err := s.conn.signer()
	if err == nil {
		defer sign.Wipe()
		err = s.writeCheckpoints(ctx, sign)
	}
	if errors.Is(err, errCovered) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write a checkpoint of the log: %w", err)
	}
	return nil
}

// errCovered means that another engine's checkpoint covers the entries already, or that the log has
// dropped them.
var errCovered = errors.New("covered or dropped meanwhile")

func (s *Store) writeCheckpoints(ctx context.Context, sign logchain.Signer) error {
	w := checkpointWriter{log: s.Log, sign: sign}
	stored, err := s.Log.last(ctx, schemas.CheckpointSubject)
	if err == nil {
		w.before, err = loadCheckpoint(stored)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if w.revision = stored.revision; w.revision > 0 && w.before.Last >= w.revision {
		return fmt.Errorf("the newest one, entry %d, was changed: run nod log verify", w.revision)
	}
	info, err := s.Log.stream.Info(ctx)
	if err != nil {
		return err
	}
	first, last := max(w.before.Last+1, info.State.FirstSeq), info.State.LastSeq
	if last < first || first == last && last == w.revision { // the newest entry is a checkpoint, so there are no new entries to cover
		return nil
	}
	w.first, w.now = first, info.TimeStamp
	config := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: first}
	return readLog(ctx, s.Log.stream, config, last, func(sequence uint64, entry []byte) error {
		return w.add(ctx, sequence, entry, sequence == last)
	})
}

// checkpointWriter collects consecutive entries and writes checkpoints, each of which covers one group of
// entries.
type checkpointWriter struct {
	log      *Log
	sign     logchain.Signer
	now      time.Time          // the broker's time
	before   schemas.Checkpoint // the newest checkpoint; the field revision is its sequence in the log
	revision uint64
	first    uint64 // the sequence of the first collected entry
	entries  logchain.Digests
}

func (w *checkpointWriter) add(ctx context.Context, sequence uint64, entry []byte, last bool) error {
	if sequence != w.first+uint64(w.entries.Len()) {
		return errCovered
	}
	if w.entries.Add(sequence, entry); !last && w.entries.Len() < logchain.MaxEntries {
		return nil
	}
	return w.write(ctx)
}

func (w *checkpointWriter) write(ctx context.Context) error {
	e, err := w.sign.Make(w.first, w.entries, w.before.Hash, w.now)
	if err != nil {
		return err
	}
	data, err := schemas.Encode(&e)
	if err != nil {
		return err
	}
	msg := &nats.Msg{Subject: schemas.CheckpointSubject, Data: data}
	ack, err := w.log.publish(ctx, msg, 0, jetstream.WithExpectLastSequencePerSubject(w.revision))
	if isConflict(err) {
		return errCovered // another engine, or an earlier try whose reply was lost, has written a checkpoint
	}
	if err != nil {
		return err
	}
	w.log.observe(&e)
	w.before, w.revision = *e.Checkpoint, ack.Sequence
	w.first, w.entries = e.Checkpoint.Last+1, nil
	return nil
}

// signer reads the connection's key file. For a connection without a key file it returns a Signer that
// signs nothing.
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
	e, err := LoadEntry(stored.revision, stored.data)
	if err != nil {
		return schemas.Checkpoint{}, err
	}
	if e.Checkpoint == nil {
		return schemas.Checkpoint{}, fmt.Errorf("read log entry %d: it is no checkpoint", stored.revision)
	}
	return *e.Checkpoint, nil
}
