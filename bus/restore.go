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

// SavedStreams returns the streams that a backup contains, in the order of copying. If the content of
// one stream refers to another stream, the other stream is copied first. An entry of the log may
// therefore be missing in a backup, but no entry of the log contradicts a record of the same backup.
// Leases and queued prompts are left out, because engines make them anew.
func SavedStreams() []string {
	return []string{"permission_log", "KV_shown_prompts", recordsStream, "KV_permission_sessions", settingsStream}
}

const (
	recordsStream  = "KV_pending_permissions"
	settingsStream = "KV_permission_settings"
)

// restoreMark is a key in the metadata of the records' stream until a restore is finished. Engines do not
// open a store whose metadata has this key.
const restoreMark = "nod-restore"

// RestoreOrder returns the streams of a backup in the order of restoring. The records come first, with a
// mark that keeps engines away. The settings, which contain the freeze, come last: without settings and
// freezes no engine allows anything.
func RestoreOrder() []string {
	rest := slices.DeleteFunc(SavedStreams(), func(s string) bool { return s == recordsStream || s == settingsStream })
	return slices.Concat([]string{recordsStream}, rest, []string{settingsStream})
}

// Placed changes the description of a copied stream, so that the stream is restored with another
// number of replicas. If the parameter mark is not empty and the stream is that of the records,
// engines do not use the stores before FinishRestore.
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

// PrepareRestore fails if a store of nod exists, unless an unfinished restore has left it. It removes
// the stores that an unfinished restore has left. If that restore had the same mark, PrepareRestore
// keeps the store of the records, and the result recordsKept is true, because an engine that waits
// for the end of the restore would otherwise make a new store.
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

// removeLeft removes the stores that an unfinished restore has left. It does not ask for the state of
// a store first, because a server that waits for the rest of a store may not reply about it.
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

// RemoveUnfinished removes a store that an unfinished restore has left, unless it is the store of the
// records. For some seconds afterwards, Restore may still fail with ErrStoreExists.
func (c *Conn) RemoveUnfinished(ctx context.Context, stream string) error {
	if stream == recordsStream {
		return nil // this stream stays, because an engine that waits for the end of the restore would make a new stream in its place
	}
	return c.deleteStream(ctx, stream)
}

// deleteStream deletes a stream of an unfinished restore. It does nothing if there is no such stream.
// If the server still waits for the rest of the restore, it deletes the stream but does not reply, so
// deleteStream learns of the deletion only by another try.
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

// FinishRestore lets engines use restored stores. A consumer that was copied later than a message may be
// ahead of the copied stream, and would skip new messages. FinishRestore therefore first moves the
// records' stream past the positions of all its consumers.
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

// LogRestored adds an entry to a restored log, which says that the log was restored.
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

// restoredBy is the author of a restore's freeze and of its log entry.
const restoredBy = "nod restore"

// FreezeRestored changes restored settings before an engine uses them. It freezes all agents, and
// removes the codes for pairing and for logins. It also stores the time of the restore, because
// grants from before this time end.
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

// removeCodes removes the codes, because they may have been used after the backup was made.
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
