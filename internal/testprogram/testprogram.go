// Package testprogram writes the programs that tests run.
//
// Linux refuses to run a file that any process has open for writing ("text file busy"). If a
// parallel test forks while a program is being written, the child inherits the open file until
// it calls exec. Tests must not write programs with os.WriteFile for this reason.
package testprogram

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

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
