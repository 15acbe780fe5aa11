// Package hookwait finds requests on this machine whose hook died while it waited. While a hook waits,
// it holds a lock on a file. The operating system releases the lock when the hook's process ends in
// any way, so an unlocked file means a dead hook. An agent program that kills its hook leaves no other
// sign.
package hookwait

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/nodbus/nod/schemas"
)

// Dir returns the folder of the locks in a data directory.
func Dir(dataDir string) string { return filepath.Join(dataDir, "waiting") }

// unready is the prefix of a file name while the hook has not locked the file yet.
const unready = "new-"

// Hold records that this process waits for a request. The wait ends when over is called
// or the process ends.
func Hold(dataDir, sessionID, pendingID string) (over func(), err error) {
	dir := Dir(dataDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("record that a hook waits: %w", err)
	}
	name := rand.Text()
	path := filepath.Join(dir, unready+name)
	lock := flock.New(path, flock.SetPermissions(0o600))
	held, err := lock.TryLock()
	if err == nil && !held {
		err = errors.New("another process holds the lock")
	}
	if err == nil {
		err = os.WriteFile(path, []byte(schemas.Key(sessionID, pendingID)), 0o600)
	}
	final := filepath.Join(dir, name)
	if err == nil {
		err = os.Rename(path, final)
	}
	if err != nil {
		_ = os.Remove(path)
		_ = lock.Close()
		return nil, fmt.Errorf("record that a hook waits: %w", err)
	}
	return func() {
		_ = os.Remove(final) // remove the file before the lock is released, or a sweep would find an unlocked file and report a dead hook
		_ = lock.Close()
	}, nil
}

// Sweep calls the function report for each request whose hook has died. If report fails for a request,
// Sweep goes on with the other requests, and the next sweep reports that request again.
func Sweep(dataDir string, report func(sessionID, pendingID string) error) error {
	names, err := os.ReadDir(Dir(dataDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for hooks that have died: %w", err)
	}
	var errs []error
	for _, name := range names {
		if !strings.HasPrefix(name.Name(), unready) {
			errs = append(errs, sweep(filepath.Join(Dir(dataDir), name.Name()), report))
		}
	}
	return errors.Join(errs...)
}

func sweep(path string, report func(sessionID, pendingID string) error) error {
	lock := flock.New(path, flock.SetFlag(os.O_RDWR)) // without O_CREATE, so that a removed file is not created again
	held, err := lock.TryLock()
	if errors.Is(err, fs.ErrNotExist) || err == nil && !held {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check whether a hook has died: %w", err)
	}
	defer func() { _ = lock.Close() }()
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the hook ended regularly after the directory was listed
	}
	if err != nil {
		return fmt.Errorf("read which request a hook waited for: %w", err)
	}
	if session, id, ok := strings.Cut(string(key), "."); ok && schemas.ValidID(session) && schemas.ValidID(id) {
		if err := report(session, id); err != nil {
			return err
		}
	}
	return os.Remove(path)
}
