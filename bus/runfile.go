package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Run is the content of run.json, which exists as long as a server runs on a data directory.
type Run struct {
	URL     string    `json:"url"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Version string    `json:"version,omitempty"`
}

const runName = "run.json"

// ErrNotRunning means that no server runs on a data directory.
var ErrNotRunning = errors.New("nod is not running")

// ReadRun reads run.json. The error is ErrNotRunning if the file does not exist, or if the process that
// it names is gone.
func ReadRun(dir string) (Run, error) {
	path := filepath.Join(dir, runName)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Run{}, fmt.Errorf("%w on %s: start it with nod up", ErrNotRunning, dir)
	} else if err != nil {
		return Run{}, fmt.Errorf("find the running nod: %w", err)
	}
	var r Run
	if err := json.Unmarshal(content, &r); err != nil || r.URL == "" || r.PID <= 0 {
		return Run{}, fmt.Errorf("%s is damaged: start nod up again, which rewrites it", path)
	}
	if !alive(r.PID) {
		return Run{}, fmt.Errorf("%w on %s: process %d is gone: start it with nod up", ErrNotRunning, dir, r.PID)
	}
	return r, nil
}

// write replaces run.json as a whole. If it fails, the old file stays.
func (r Run) write(dir string) error {
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode %s: %w", runName, err)
	}
	tmp, err := os.CreateTemp(dir, ".run-*")
	if err != nil {
		return unwritable(dir, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(content, '\n'))
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(dir, runName))
	}
	if err != nil {
		return unwritable(dir, err)
	}
	return nil
}

func removeRun(dir string) error {
	if err := os.Remove(filepath.Join(dir, runName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", runName, err)
	}
	return nil
}

// alive reports whether a process with this pid exists, whoever its user is. After nod has ended,
// another program may get nod's pid. The result is then true although nod is gone, and a connection
// to nod fails.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	if runtime.GOOS == "windows" {
		return true // on Windows, FindProcess has already failed if the process is gone
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, fs.ErrPermission)
}
