// Package held keeps notes about the work of nod's processes, and finds the notes of processes that
// were killed, because a killed process leaves no other sign. During the noted work, a process holds a
// lock on the note's file. The operating system releases the lock when the process ends in any way, so
// an unlocked note belongs to a dead process.
package held

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Prefixes of file names. A file is unready until its process has locked it, and ended after its note's end.
const (
	unready = "new-"
	ended   = "over-"
)

// Notes are the notes in one directory.
type Notes struct {
	Dir    string        // the directory, which Hold makes if it is missing
	Linger time.Duration // the shortest time for which Recent returns a lingering note after its end
}

// Hold stores a note and returns the function over, which ends the note. If the process dies without calling
// over, the note ends when Sweep has reported it. If the parameter linger is true, Recent still returns the
// note for a while after its end.
func (n Notes) Hold(note []byte, linger bool) (over func(), err error) {
	dir := n.Dir
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
		n.end(final, linger) // the note ends before the lock is released; otherwise Sweep would take the unlocked note for that of a dead process
		_ = lock.Close()
	}, nil
}

// end marks a lingering note as ended, and removes any other note.
func (n Notes) end(path string, linger bool) {
	now := time.Now()
	if !linger || n.Linger <= 0 || os.Chtimes(path, now, now) != nil || os.Rename(path, filepath.Join(n.Dir, ended+filepath.Base(path))) != nil {
		_ = os.Remove(path)
	}
}

// Recent returns all notes that have not ended, and lingering notes that ended less than n.Linger ago.
// Until the next sweep it also returns lingering notes that ended earlier.
func (n Notes) Recent() (notes [][]byte, err error) {
	names, err := os.ReadDir(n.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range names {
		path := filepath.Join(n.Dir, name.Name())
		if strings.HasPrefix(name.Name(), unready) {
			continue
		}
		note, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && !strings.HasPrefix(name.Name(), ended) { // the note has ended since the directory was read
			note, err = os.ReadFile(filepath.Join(n.Dir, ended+name.Name()))
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		notes = append(notes, note)
	}
	return notes, nil
}

// ErrLater means that a note cannot be reported yet. If the function report of Sweep returns it, the next
// sweep reports the note again.
var ErrLater = errors.New("the note is not over yet")

// Sweep calls the function report for each note of a dead process, and ends the note if report succeeds. The
// parameter shared of report is true if a live process holds an equal note. If report fails, Sweep goes on
// with the other notes, and the next sweep reports that note again. Sweep returns the errors of report except
// ErrLater.
func (n Notes) Sweep(report func(note []byte, shared bool) error) error {
	names, err := os.ReadDir(n.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for processes that have died: %w", err)
	}
	var errs []error
	for _, name := range names {
		path := filepath.Join(n.Dir, name.Name())
		switch {
		case strings.HasPrefix(name.Name(), unready):
		case strings.HasPrefix(name.Name(), ended):
			if info, err := name.Info(); err == nil && time.Since(info.ModTime()) > n.Linger {
				_ = os.Remove(path)
			}
		default:
			if err := n.sweep(path, report); !errors.Is(err, ErrLater) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func (n Notes) sweep(path string, report func(note []byte, shared bool) error) error {
	lock := flock.New(path, flock.SetFlag(os.O_RDWR)) // no O_CREATE, so that a removed file is not created again
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
		return nil // the process ended the note after the directory was listed
	}
	if err != nil {
		return fmt.Errorf("read the note of a dead process: %w", err)
	}
	if err := report(note, n.isShared(path, note)); err != nil {
		return err
	}
	n.end(path, true)
	return nil
}

// isShared reports whether a process holds a note that is equal to the note at path.
func (n Notes) isShared(path string, note []byte) bool {
	names, _ := os.ReadDir(n.Dir) // if the directory can no longer be read, the note counts as not shared
	for _, name := range names {
		other := filepath.Join(n.Dir, name.Name())
		if other == path || strings.HasPrefix(name.Name(), unready) || strings.HasPrefix(name.Name(), ended) {
			continue
		}
		if content, err := os.ReadFile(other); err != nil || !bytes.Equal(content, note) {
			continue
		}
		lock := flock.New(other, flock.SetFlag(os.O_RDWR))
		locked, err := lock.TryLock()
		_ = lock.Close()
		if err == nil && !locked {
			return true
		}
	}
	return false
}
