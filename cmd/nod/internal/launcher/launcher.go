// Package launcher gives nod a path that survives upgrades: a link in the data directory, by which
// hooks and the service run nod. Other paths are unreliable, because a package manager may install each
// version at a new path, and hosts may run hooks without any PATH.
package launcher

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Path returns the path of a data directory's launcher, which may not exist. The launcher has its own
// folder, so that it never replaces another program.
func Path(dataDir string) string { return filepath.Join(dataDir, "launcher", "nod") }

// Self returns a path of this program that stays valid after an upgrade: the path of a file in PATH that
// leads to this program, or else the program's own path. It returns an error if go run or go test built the
// program.
func Self() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find nod's own path: %w", err)
	}
	if temporary(self) {
		return "", errors.New("this nod was started by `go run` and will be gone: install it first (go install ./cmd/nod), then run that one")
	}
	return lasting(self), nil
}

// lasting returns the path of the file in PATH that leads to self, or self if there is no such file.
func lasting(self string) string {
	found, err := exec.LookPath(filepath.Base(self))
	if err != nil || !same(found, self) {
		return self
	}
	if found, err = filepath.Abs(found); err != nil {
		return self
	}
	return found
}

// temporary reports whether go run or go test built the program at path.
func temporary(path string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(path), "/"), func(dir string) bool {
		return strings.HasPrefix(dir, "go-build")
	})
}

func same(a, b string) bool {
	ai, err := os.Stat(a)
	if err != nil {
		return false
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi)
}

// Ensure makes the launcher lead to this nod, and returns the launcher's path. If the launcher already leads
// to this nod, Ensure changes the target only to a file in PATH, because that file's path stays valid after
// an upgrade. After an error the launcher is unchanged.
func Ensure(dataDir string) (string, error) {
	program, err := Self()
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(Path(dataDir))
	if err != nil {
		return "", fmt.Errorf("find the data directory: %w", err)
	}
	was, _ := os.Readlink(path) // the link's target; "" if there is no launcher
	self, err := os.Executable()
	leads := err == nil && same(path, self)
	if program == path || program == was || leads && program == self {
		return path, nil
	}
	if err := replace(path, program); err != nil {
		return "", fmt.Errorf("make the launcher %s: %w", path, err)
	}
	return path, nil
}

// replace creates or replaces the link atomically, so that an existing link is never missing.
func replace(path, target string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp := filepath.Join(dir, ".nod-"+rand.Text())
	if err := os.Symlink(target, temp); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}

// Check returns an error of one line if the launcher cannot be used. The error matches fs.ErrNotExist
// if there is no launcher or its target does not exist.
func Check(dataDir string) error {
	path := Path(dataDir)
	if _, err := os.Lstat(path); err != nil {
		return fmt.Errorf("there is no launcher %s: %w", path, fs.ErrNotExist)
	}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		to, _ := os.Readlink(path)
		return fmt.Errorf("the launcher %s leads to %s, which is gone: %w", path, to, fs.ErrNotExist)
	}
	if err != nil {
		return fmt.Errorf("follow the launcher: %w", err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return fmt.Errorf("follow the launcher: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("the launcher %s leads to %s, which cannot be run", path, target)
	}
	return nil
}

// Repair makes the launcher lead to this nod if the launcher's target does not exist. It does not
// create a launcher, and leaves a working launcher unchanged.
func Repair(dataDir string) error {
	if _, err := os.Lstat(Path(dataDir)); err != nil {
		return nil // without a launcher there is nothing to repair
	}
	if err := Check(dataDir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_, err := Ensure(dataDir)
	return err
}

// Remove removes the launcher, if there is one.
func Remove(dataDir string) error {
	path := Path(dataDir)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the launcher: %w", err)
	}
	_ = os.Remove(filepath.Dir(path)) // Remove fails if the folder has other files
	return nil
}
