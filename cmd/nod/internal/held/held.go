// Package held keeps notes about what processes of nod do, and finds the notes of processes that were
// killed. While a process does the noted thing, it holds a lock on the note's file. The operating system
// releases the lock when the process ends in any way, so an unlocked note belongs to a dead process. A
// process that is killed leaves no other sign.
package held

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// unready is the prefix of a file name while the process has not locked the file yet.
const unready = "new-"

// Hold stores a note in a directory, which it makes if it is missing. The note stays until over is
// called or, after the process has ended, until Sweep has reported it.
func Hold(dir string, note []byte) (over func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	name := rand.Text()
	path := filepath.Join(dir, unready+name)
	lock := flock.New(path, flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = errors.New("another process holds the lock")
	}
	if err == nil {
		err = os.WriteFile(path, note, 0o600)
	}
	final := filepath.Join(dir, name)
	if err == nil {
		err = os.Rename(path, final)
	}
	if err != nil {
		_ = os.Remove(path)
		_ = lock.Close()
		return nil, err
	}
	return func() {
		_ = os.Remove(final) // remove the file before the lock is released, or a sweep would find an unlocked note and report a dead process
		_ = lock.Close()
	}, nil
}

// Sweep calls the function report for each note of a dead process, and removes the note if report
// succeeds. If report fails, Sweep goes on with the other notes, and the next sweep reports that note
// again.
func Sweep(dir string, report func(note []byte) error) error {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for processes that have died: %w", err)
	}
	var errs []error
	for _, name := range names {
		if !strings.HasPrefix(name.Name(), unready) {
			errs = append(errs, sweep(filepath.Join(dir, name.Name()), report))
		}
	}
	return errors.Join(errs...)
}

func sweep(path string, report func(note []byte) error) error {
	lock := flock.New(path, flock.SetFlag(os.O_RDWR)) // without O_CREATE, so that a removed file is not created again
	locked, err := lock.TryLock()
	if errors.Is(err, fs.ErrNotExist) || err == nil && !locked {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check whether a process has died: %w", err)
	}
	defer func() { _ = lock.Close() }()
	note, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the process was done after the directory was listed
	}
	if err != nil {
		return fmt.Errorf("read the note of a dead process: %w", err)
	}
	if err := report(note); err != nil {
		return err
	}
	return os.Remove(path)
}
