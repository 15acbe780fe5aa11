package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// RestoreOptions configure RestoreInto and RestoreStores.
type RestoreOptions struct {
	From     string // the directory of the backup
	Replicas int    // the number of replicas of each store on NATS servers; 0 means 1
	Version  string
	Log      *slog.Logger
	Report   func(string) // is called with a line of text about each step; may be nil
}

// restoring is a restore in progress.
type restoring struct {
	RestoreOptions
	manifest Manifest
	note     schemas.Restored
	// recordsKept means that an earlier, unfinished restore has already restored the records.
	recordsKept bool
}

func (o RestoreOptions) begin() (*restoring, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Report == nil {
		o.Report = func(string) {}
	}
	m, err := openArchive(o.From)
	if err != nil {
		return nil, err
	}
	r := &restoring{RestoreOptions: o, manifest: m, note: schemas.Restored{At: time.Now().UTC(), MadeAt: m.MadeAt}}
	for _, s := range m.Streams { // the time of the restore must not seem earlier than the backup, even if the servers' clocks were ahead at the backup
		var state struct {
			Last time.Time `json:"last_ts"`
		}
		if err := json.Unmarshal(s.State, &state); err != nil {
			return nil, fmt.Errorf("read the backup %s: %w", o.From, err)
		}
		if state.Last.After(r.note.At) {
			r.note.At = state.Last
		}
	}
	o.Report("the backup is complete and undamaged")
	return r, nil
}

// RestoreInto creates a data directory from a backup. The directory must be empty or missing, and
// stays so until the restore is complete and on disk. The restored nod is frozen: until a thaw it
// denies all requests that were pending when the backup was made, and all new requests. Grants from
// before the restore have ended.
func RestoreInto(ctx context.Context, dir string, o RestoreOptions) (Manifest, error) {
	r, err := o.begin()
	if err != nil {
		return Manifest{}, err
	}
	if err := r.checkFormat(); err != nil {
		return r.manifest, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return r.manifest, err
	}
	if entries, err := os.ReadDir(dir); len(entries) > 0 {
		return r.manifest, fmt.Errorf("%s is not empty: restore into a new directory (--data), and use that one", dir)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return r.manifest, err
	}
	unfinished := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".restoring") // an earlier restore that was killed may have left this directory
	if err := errors.Join(os.RemoveAll(unfinished), os.MkdirAll(filepath.Dir(dir), 0o700), os.Mkdir(unfinished, 0o700)); err != nil {
		return r.manifest, fmt.Errorf("restore: %w", err)
	}
	if err := r.fill(ctx, unfinished); err != nil {
		return r.manifest, errors.Join(err, os.RemoveAll(unfinished))
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return r.manifest, err
	}
	if err := os.Rename(unfinished, dir); err != nil {
		return r.manifest, fmt.Errorf("restore: %w", err)
	}
	return r.manifest, syncDir(filepath.Dir(dir))
}

func (r *restoring) checkFormat() error {
	current := len(steps()) + 1
	switch {
	case r.manifest.DataFormat == 0:
		return fmt.Errorf("the backup %s is of stores on NATS servers, without keys: restore it to NATS servers (--nats-url)", r.From)
	case r.manifest.DataFormat > current:
		return fmt.Errorf("the backup %s has data of format %d, of nod %s, and this nod knows formats up to %d: install that nod", r.From, r.manifest.DataFormat, r.manifest.Nod, current)
	}
	return nil
}

// fill creates the content of a data directory, and syncs it to disk.
func (r *restoring) fill(ctx context.Context, dir string) error {
	if err := copyData(filepath.Join(r.From, filesDir), dir); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := (format{Format: r.manifest.DataFormat, Nod: r.manifest.Nod}).write(dir); err != nil {
		return err
	}
	err := r.serving(ctx, dir, func(c *bus.Conn) error { return r.restoreStores(ctx, c, 1) })
	if err == nil {
		err = bus.SyncStores(dir)
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return errors.Join(os.RemoveAll(filepath.Join(dir, "lock")), syncDir(dir))
}

// serving runs a server on the directory dir, and calls f with a connection to it. Only the role
// owner-store may use this server.
func (r *restoring) serving(ctx context.Context, dir string, f func(*bus.Conn) error) error {
	id := roles.ID{Role: roles.OwnerStore}
	keys, err := roles.OpenKeys(dir)
	if err == nil {
		err = keys.Ensure(id)
	}
	if err != nil {
		return err
	}
	user, err := keys.User(id)
	if err != nil {
		return err
	}
	server, err := bus.Embed(ctx, bus.EmbedOptions{DataDir: dir, SyncInterval: time.Minute, Users: []roles.User{user}, Version: r.Version, Log: r.Log})
	if err != nil {
		return err
	}
	conn, err := bus.Connect(ctx, bus.Options{Server: server, Name: "nod restore", Creds: keys.Path(id), Inbox: id.InboxPrefix(), Log: r.Log})
	if err == nil {
		err = f(conn)
		conn.Close()
	}
	return bus.JoinErrors(err, server.Close())
}

// RestoreStores restores the stores of a backup to NATS servers without stores of nod. The connection
// needs all rights on the stores (owner-store). Engines that start during the restore wait until it
// is complete, even if RestoreStores is interrupted and called again. The restored stores are frozen,
// as RestoreInto does it.
func RestoreStores(ctx context.Context, conn *bus.Conn, o RestoreOptions) (Manifest, error) {
	r, err := o.begin()
	if err != nil {
		return Manifest{}, err
	}
	if r.recordsKept, err = conn.PrepareRestore(ctx, r.mark()); err != nil {
		return r.manifest, err
	}
	return r.manifest, r.restoreStores(ctx, conn, max(1, o.Replicas))
}

// mark returns a text by which a later restore recognises stores that come from the same backup.
func (r *restoring) mark() string { return r.manifest.MadeAt.Format(time.RFC3339Nano) }

func (r *restoring) restoreStores(ctx context.Context, conn *bus.Conn, replicas int) error {
	frozen, err := os.MkdirTemp("", "nod-restore-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(frozen)
	settings, err := r.freezeSettings(ctx, frozen)
	if err != nil {
		return err
	}
	for i, name := range bus.RestoreOrder() {
		if i == 0 && r.recordsKept {
			r.Report("restored " + name + ", by an earlier try")
			continue
		}
		s, path := r.stream(name)
		if name == settings.Name {
			s, path = settings, filepath.Join(frozen, "settings")
		}
		if err := r.restoreStream(ctx, conn, s, path, replicas); err != nil {
			return err
		}
		r.Report("restored " + name)
	}
	if err := conn.LogRestored(ctx, r.note); err != nil {
		return err
	}
	return conn.FinishRestore(ctx)
}

func (r *restoring) stream(name string) (s archivedStream, path string) {
	for _, s := range r.manifest.Streams {
		if s.Name == name {
			return s, filepath.Join(r.From, filepath.FromSlash(s.Path))
		}
	}
	return archivedStream{Name: name}, "" // this cannot happen, because openArchive has checked that all streams are in the backup
}

// leftWithin is how long the servers may keep parts of a killed restore.
const leftWithin = 30 * time.Second

// restoreStream restores one store. If a killed restore has left a part of the store, restoreStream
// removes that part and tries again, for at most leftWithin.
func (r *restoring) restoreStream(ctx context.Context, conn *bus.Conn, s archivedStream, path string, replicas int) error {
	until := time.Now().Add(leftWithin)
	for {
		err := r.restoreOnce(ctx, conn, s, path, replicas)
		if !errors.Is(err, bus.ErrStoreExists) || time.Now().After(until) {
			return err
		}
		if err := conn.RemoveUnfinished(ctx, s.Name); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (r *restoring) restoreOnce(ctx context.Context, conn *bus.Conn, s archivedStream, path string, replicas int) error {
	placed, err := s.Placed(replicas, r.mark())
	if err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	return conn.Restore(ctx, s.Name, placed, in)
}

// freezeSettings writes a copy of the settings, with a freeze in it, into the file "settings" in dir.
// It adds the freeze on a separate server, so that no engine ever sees the restored settings without
// the freeze.
func (r *restoring) freezeSettings(ctx context.Context, dir string) (archivedStream, error) {
	order := bus.RestoreOrder()
	s, path := r.stream(order[len(order)-1])
	err := r.serving(ctx, filepath.Join(dir, "server"), func(c *bus.Conn) error {
		if err := r.restoreStream(ctx, c, s, path, 1); err != nil {
			return err
		}
		if err := c.FreezeRestored(ctx, r.note); err != nil {
			return err
		}
		out, err := os.OpenFile(filepath.Join(dir, "settings"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		s.Snapshot, err = c.Snapshot(ctx, s.Name, out)
		return errors.Join(err, out.Close())
	})
	return s, err
}
