package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/schemas"
)

// SavedStreams returns the streams that a backup contains, in the order in which they are
// copied. Each stream is copied before those whose content refers to it: an entry of the log
// may lack, and never contradicts, a record of the same backup. Leases and queued prompts are
// left out; engines make them anew.
func SavedStreams() []string {
	return []string{"permission_log", "KV_shown_prompts", recordsStream, "KV_permission_sessions", settingsStream}
}

const (
	recordsStream  = "KV_pending_permissions"
	settingsStream = "KV_permission_settings"
)

// restoreMark is the metadata of the stream of the records while a restore is not finished.
// Engines do not open a store with it.
const restoreMark = "nod-restore"

// RestoreOrder returns the streams of a backup in the order in which they are restored. The
// records are first, with a mark that keeps engines away. The settings, which contain the
// freeze, are last: without settings and freezes no engine allows anything.
func RestoreOrder() []string {
	rest := slices.DeleteFunc(SavedStreams(), func(s string) bool { return s == recordsStream || s == settingsStream })
	return slices.Concat([]string{recordsStream}, rest, []string{settingsStream})
}

// Placed returns the copy with another number of replicas. With mark, a copy of the records
// keeps engines away until FinishRestore.
func (s Snapshot) Placed(replicas int, mark string) (Snapshot, error) {
	var config map[string]any
	if err := json.Unmarshal(s.Config, &config); err != nil {
		return s, fmt.Errorf("read the configuration of a stream: %w", err)
	}
	config["num_replicas"] = replicas
	if config["name"] == recordsStream && mark != "" {
		config["metadata"] = map[string]string{restoreMark: mark}
	}
	var err error
	s.Config, err = json.Marshal(config)
	return s, err
}

// PrepareRestore checks that no store of nod is there. It removes the stores that an unfinished
// restore has left. If the records of an unfinished restore have the same mark, they stay, and
// recordsKept is true: without them, an engine that waits for the restore would make new ones.
func (c *Conn) PrepareRestore(ctx context.Context, mark string) (recordsKept bool, err error) {
	stores := append(RestoreOrder(), "permission_prompts", "KV_client_presence")
	records, err := c.js.Stream(ctx, recordsStream)
	if err == nil {
		if left := records.CachedInfo().Config.Metadata[restoreMark]; left != "" {
			return left == mark, c.removeLeft(ctx, stores, left == mark)
		}
	}
	for _, name := range stores {
		_, err := c.js.Stream(ctx, name)
		switch {
		case err == nil:
			return false, fmt.Errorf("the store %s exists: restore to NATS servers without a nod; stop all engines first, because an engine makes the stores that are missing", name)
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return false, fmt.Errorf("look for the store %s: %w", name, err)
		}
	}
	return false, nil
}

// removeLeft removes the stores that an unfinished restore has left. It does not ask for their
// state first, because some servers do not describe a store while they wait for the rest of it.
func (c *Conn) removeLeft(ctx context.Context, stores []string, recordsKept bool) error {
	for _, name := range slices.Backward(stores) {
		if name == recordsStream && recordsKept {
			continue
		}
		if err := c.deleteStream(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// RemoveUnfinished removes a store, other than the records, that a restore has left. After it,
// Restore may still fail with ErrStoreExists for some seconds.
func (c *Conn) RemoveUnfinished(ctx context.Context, stream string) error {
	if stream == recordsStream {
		return nil // engines that wait for the restore would make it anew
	}
	return c.deleteStream(ctx, stream)
}

// deleteStream deletes a stream that a restore has left, or does nothing if there is none. If a
// server still waits for the rest of that restore, it deletes the stream but does not reply, so
// that only another try learns of it.
func (c *Conn) deleteStream(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 4*hopTimeout)
	defer cancel()
	err := Retry(ctx, func(ctx context.Context) error {
		if err := c.js.DeleteStream(ctx, name); !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove the store %s of an unfinished restore: %w", name, err)
	}
	return nil
}

// FinishRestore lets engines use restored stores. Before it, it moves the stream of the records
// past the positions of its consumers, because a consumer that was copied after a message may
// be ahead of the copied stream, and would skip new messages.
func (c *Conn) FinishRestore(ctx context.Context) error {
	stream, err := c.js.Stream(ctx, recordsStream)
	if err != nil {
		return fmt.Errorf("finish the restore: %w", err)
	}
	ahead := uint64(0)
	consumers := stream.ListConsumers(ctx)
	for info := range consumers.Info() {
		ahead = max(ahead, info.Delivered.Stream, info.AckFloor.Stream)
	}
	if err := consumers.Err(); err != nil {
		return fmt.Errorf("finish the restore: read the positions of its consumers: %w", err)
	}
	for last := stream.CachedInfo().State.LastSeq; last < ahead; {
		ack, err := c.js.Publish(ctx, barrierSubject, nil)
		if err != nil {
			return fmt.Errorf("finish the restore: %w", err)
		}
		last = ack.Sequence
	}
	config := stream.CachedInfo().Config
	delete(config.Metadata, restoreMark)
	if _, err := c.js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("finish the restore: %w", err)
	}
	return nil
}

// LogRestored adds to a restored log that it was restored.
func (c *Conn) LogRestored(ctx context.Context, r schemas.Restored) error {
	e := schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: r.At, Kind: schemas.LogRestored, Actor: restoredBy,
		Rule: "restored from the backup of " + r.MadeAt.Format(time.RFC3339),
	}
	data, err := schemas.Encode(&e)
	if err == nil {
		_, err = c.js.Publish(ctx, schemas.LogSubject("nod"), data)
	}
	if err != nil {
		return fmt.Errorf("log the restore: %w", err)
	}
	return nil
}

// restoredBy is the author of the freeze and of the log entry of a restore.
const restoredBy = "nod restore"

// FreezeRestored changes restored settings, before any engine uses them: it freezes all agents,
// notes the time of the restore, by which older grants end, and removes the codes for pairing
// and for logins.
func (c *Conn) FreezeRestored(ctx context.Context, r schemas.Restored) error {
	stream, err := c.js.Stream(ctx, settingsStream)
	if err != nil {
		return fmt.Errorf("freeze the restored nod: %w", err)
	}
	b := &Bucket{kvStream: &kvStream{conn: c, name: settingsStream, stream: stream, prefix: "$KV.permission_settings.", reads: make(chan struct{}, maxReads)}, confirms: newActionGroup()}
	_, _, err = Change(ctx, b, "frozen", func(f *schemas.FreezeState, _ bool) (Edit, error) {
		f.Type = schemas.TypeFreezeState
		f.Freezes = slices.DeleteFunc(f.Freezes, func(z schemas.Freeze) bool { return z.Agent == "" && z.SessionID == "" })
		f.Freezes = append(f.Freezes, schemas.Freeze{
			Reason: "nod was restored from the backup of " + r.MadeAt.Format(time.RFC3339) + ", and later decisions are unknown",
			By:     schemas.By{Kind: schemas.ByPolicy, Name: restoredBy}, At: r.At,
		})
		return Edit{Store: true}, nil
	})
	if err == nil {
		err = putRestored(ctx, b, r)
	}
	if err == nil {
		err = removeCodes(ctx, b)
	}
	if err != nil {
		return fmt.Errorf("freeze the restored nod: %w", err)
	}
	return nil
}

func putRestored(ctx context.Context, b *Bucket, r schemas.Restored) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	for {
		old, revision, err := b.Document(ctx, schemas.RestoredKey)
		if err != nil && !errors.Is(err, ErrNotFound) || bytes.Equal(old, data) {
			return err
		}
		if _, err = b.PutDocument(ctx, schemas.RestoredKey, data, revision); !errors.Is(err, ErrMoved) {
			return err
		}
	}
}

// removeCodes removes codes that may have been used after the backup.
func removeCodes(ctx context.Context, b *Bucket) error {
	for _, filter := range []string{"pass.*", "pairing.*"} {
		keys, err := b.ListKeys(ctx, filter)
		if err != nil {
			return err
		}
		for _, key := range keys {
			_, revision, err := b.Document(ctx, key)
			if err == nil {
				err = b.Remove(ctx, key, revision)
			}
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
		}
	}
	return nil
}
