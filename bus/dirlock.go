package bus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// dirLock keeps a second server off a data directory, because two servers would decide the same requests.
// The lock ends with the process, even if the process is killed.
type dirLock struct{ file *flock.Flock }

func lockDir(dir string) (*dirLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unwritable(dir, err)
	}
	file := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	held, err := file.TryLock()
	if err != nil {
		return nil, unwritable(dir, err)
	}
	if !held {
		return nil, inUse(dir)
	}
	return &dirLock{file: file}, nil
}

func (l *dirLock) release() error {
	if err := l.file.Unlock(); err != nil {
		return fmt.Errorf("unlock the data directory: %w", err)
	}
	return nil
}

// unwritable returns an error that names the data directory and the reason. The error leaves out the
// failed operation and its file, which would not help the user.
func unwritable(dir string, err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("the data directory %s cannot be used: %w: fix its permissions, or name another with --data", dir, err)
}

// ErrInUse means that another server runs on the data directory.
var ErrInUse = errors.New("in use by a running nod")

func inUse(dir string) error {
	who := ""
	if run, err := ReadRun(dir); err == nil {
		who = fmt.Sprintf(" (process %d on %s)", run.PID, run.URL)
	}
	return fmt.Errorf("the data directory %s is %w%s: stop that one, or name another directory with --data", dir, ErrInUse, who)
}
