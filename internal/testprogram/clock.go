package testprogram

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ClockFile is the environment variable with the path of a process's clock file. The file contains the
// number of seconds by which the process's wall clock is ahead. The process reads the file every 50 ms.
// The monotonic clock does not change, as in a real clock step.
const ClockFile = "NOD_TEST_CLOCK"

// SteppedClock returns the path of a build overlay, whose files it writes into dir. A program that is built with
// it has a wall clock that a test can change (see ClockFile). The overlay replaces time.Now in the standard
// library, and leaves the program's own code unchanged. Other methods do not work: libfaketime needs libc,
// which Go programs do not use for the clock, and time namespaces do not change the wall clock.
func SteppedClock(dir string) (overlay string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find the standard library: %w", err)
	}
	std := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(std, "time.go"))
	if err != nil {
		return "", fmt.Errorf("read time.Now: %w", err)
	}
	const reads = "\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), reads) != 1 {
		return "", fmt.Errorf("time.Now of this Go release reads the clock differently: adapt SteppedClock")
	}
	files := map[string]string{
		"time.go": strings.Replace(string(source), reads, reads+"\tsec += testStep.Load()\n", 1),
		"step.go": strings.ReplaceAll(clockSource, "CLOCKFILE", ClockFile),
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(std, "time.go"):     filepath.Join(dir, "time.go"),
		filepath.Join(std, "teststep.go"): filepath.Join(dir, "step.go"),
	}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

const clockSource = `package time

import (
	"sync/atomic"
	"syscall"
)

var testStep atomic.Int64

func init() {
	path, set := syscall.Getenv("CLOCKFILE")
	if !set {
		return
	}
	go func() {
		for ; ; Sleep(50 * Millisecond) {
			f, err := open(path)
			if err != nil {
				continue
			}
			var text [32]byte
			n, _ := read(f, text[:])
			closefd(f)
			if seconds, err := atoi(string(text[:n])); err == nil {
				testStep.Store(int64(seconds))
			}
		}
	}()
}
`
