package rig

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Tree makes a directory with the subdirectories "in" and "out", and returns it. Symbolic links below "in"
// lead to "out", to a missing file in "out", and to a missing path elsewhere.
func Tree(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = errors.Join(os.MkdirAll(dir+"/in/sub", 0o755), os.MkdirAll(dir+"/out", 0o755), os.Symlink(dir+"/out", dir+"/in/link"), os.Symlink(dir+"/out/x", dir+"/in/sub/leak.txt"), os.Symlink(dir+"/nowhere", dir+"/in/dangling"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
