// Package testprogram writes the programs that tests run.
//
// Tests must not write programs with os.WriteFile, because Linux refuses to run a file that any process
// has open for writing ("text file busy"). If a parallel test forks while a program is being written,
// the child inherits the open file until it calls exec.
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

// Build compiles a Go package with the given flags, and writes the program to path. It uses go run,
// because go run, unlike go build, keeps the linked program in the build cache. The option -exec cp
// copies the program instead of running it. A lock lets only the first of several test processes link
// the program, and the others wait for it.
func Build(pkg, path string, flags ...string) error {
	lock := flock.New(filepath.Join(os.TempDir(), fmt.Sprintf("nod-test-build-%d.lock", os.Getuid())))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	defer lock.Close() // when the process ends, the kernel releases the lock
	args := append(append([]string{"run", "-exec", "cp"}, flags...), pkg, path)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// Write writes an executable script, and creates its directory if it is missing. While the file is
// open, this process forks no child.
func Write(t testing.TB, path, script string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte(script), 0o755))
}

// Copy copies a program to path, and creates its directory if it is missing. It runs cp, so that this
// process never opens the new file; otherwise every fork would have to wait during the long write.
func Copy(t testing.TB, program, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	out, err := exec.Command("cp", program, path).CombinedOutput()
	require.NoError(t, err, string(out))
}
