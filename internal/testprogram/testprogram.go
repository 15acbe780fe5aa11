// Package testprogram puts programs into place for tests that run them.
//
// Linux refuses to run a file that any process has open for writing ("text file busy"). A child
// that a parallel test forks at that moment inherits the open file until its exec. So no test
// writes a program with os.WriteFile.
package testprogram

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Write writes an executable script, and its directory if that is missing. While the file is
// open, this process forks no child.
func Write(t testing.TB, path, script string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte(script), 0o755))
}

// Copy copies a program to path, and makes its directory if that is missing. It runs cp, so
// that this process never opens the new file: to write a large program takes too long to hold
// up every fork.
func Copy(t testing.TB, program, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	out, err := exec.Command("cp", program, path).CombinedOutput()
	require.NoError(t, err, string(out))
}
