// Package testprogram writes the programs that tests run.
//
// Linux refuses to run a file that any process has open for writing ("text file busy"). If a
// parallel test forks while a program is being written, the child inherits the open file until
// it calls exec. Tests must not write programs with os.WriteFile for this reason.
package testprogram

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"
)

// Build writes the program of a Go package to path, built with the flags. It runs go run with the option -exec cp, which copies
// the program instead of running it: unlike go build, go run keeps the linked program in the build cache.
// A lock lets only the first of several test processes link the program, and the others wait for it.
func Build(pkg, path string, flags ...string) error {
	lock := flock.New(filepath.Join(os.TempDir(), fmt.Sprintf("nod-test-build-%d.lock", os.Getuid())))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	defer lock.Close() // the lock ends with the process at the latest
	args := append(append([]string{"run", "-exec", "cp"}, flags...), pkg, path)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// Write writes an executable script, and makes a missing directory. While the file is open,
// this process forks no child.
func Write(t testing.TB, path, script string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte(script), 0o755))
}

// Copy copies a program to path, and makes a missing directory. It runs cp, so that this
// process never opens the new file: a large program takes too long to write while every fork
// waits.
func Copy(t testing.TB, program, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	out, err := exec.Command("cp", program, path).CombinedOutput()
	require.NoError(t, err, string(out))
}
