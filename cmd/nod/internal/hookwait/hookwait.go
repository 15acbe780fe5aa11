// Package hookwait tells which requests of this machine a hook still waits for. A
// hook holds a lock while it waits. The lock ends with the hook's process, however
// that ends, so that a sweep finds the requests whose hook has died: an agent program
// that kills its hook says nothing.
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

// Dir is where the locks of a data directory are.
func Dir(dataDir string) string { return filepath.Join(dataDir, "waiting") }

// unready is how the name of a lock begins that is not held yet.
const unready = "new-"

// Hold says that this process waits for a request, until over is called or the
// process ends.
func Hold(dataDir, sessionID, pendingID string) (over func(), err error) {
	dir := Dir(dataDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("note that a hook waits: %w", err)
	}
	name := rand.Text()
	path := filepath.Join(dir, unready+name)
	lock := flock.New(path, flock.SetPermissions(0o600))
	held, err := lock.TryLock()
	if err == nil && !held {
		err = errors.New("it is held")
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
		return nil, fmt.Errorf("note that a hook waits: %w", err)
	}
	return func() {
		_ = os.Remove(final) // before the lock goes, so that no sweep takes it for a dead hook's
		_ = lock.Close()
	}, nil
}

// Sweep calls tell for each request whose hook has died, and forgets those that tell
// took. One that tell fails for is there for the next sweep.
func Sweep(dataDir string, tell func(sessionID, pendingID string) error) error {
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
			errs = append(errs, sweep(filepath.Join(Dir(dataDir), name.Name()), tell))
		}
	}
	return errors.Join(errs...)
}

func sweep(path string, tell func(sessionID, pendingID string) error) error {
	lock := flock.New(path, flock.SetFlag(os.O_RDWR)) // it is not made again
	held, err := lock.TryLock()
	if errors.Is(err, fs.ErrNotExist) || err == nil && !held {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look whether a hook has died: %w", err)
	}
	defer func() { _ = lock.Close() }()
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its hook had just ended
	}
	if err != nil {
		return fmt.Errorf("read which request a hook waited for: %w", err)
	}
	if session, id, ok := strings.Cut(string(key), "."); ok && schemas.ValidID(session) && schemas.ValidID(id) {
		if err := tell(session, id); err != nil {
			return err
		}
	}
	return os.Remove(path)
}
