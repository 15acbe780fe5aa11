package hook

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Change is the change that an installation makes to one file. Write either replaces the whole file, or
// fails and leaves the file unchanged.
type Change struct {
	Path          string // the file, after symbolic links are followed
	Before, After []byte
	// Warning tells the user why the host will ask nod about fewer calls or about none, or why an
	// uninstallation did not remove nod's setting. It is usually empty.
	Warning string
	// EmptyHooks is true if the file had an empty list of hooks before an installation.
	EmptyHooks bool
	// NewDirectories are the missing directories that Write makes for the file, parents before children.
	NewDirectories []string
	// Note holds advice for the user after an installation; may be empty.
	Note string

	// conceal returns a content of the file without the secrets that Diff must not show. It may be nil.
	conceal func(content []byte) []byte

	isNew bool
	mode  fs.FileMode
}

// openChange reads the file at path. If there is no file, Write will create it. If path is a symbolic
// link to a missing file, openChange returns an error.
func openChange(path string) (Change, error) {
	c := Change{Path: path, isNew: true, mode: 0o644}
	resolved, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if target, err := os.Readlink(path); err == nil {
			return c, fmt.Errorf("%s is a link to %s, which does not exist: make that file or remove the link first", path, target)
		}
		c.NewDirectories = missingDirs(path)
		return c, nil
	case err != nil:
		return c, fmt.Errorf("find %s: %w", path, err)
	}
	c.Path, c.isNew = resolved, false
	info, err := os.Stat(resolved)
	if err != nil {
		return c, fmt.Errorf("read the settings: %w", err)
	}
	c.mode = info.Mode().Perm()
	if c.Before, err = os.ReadFile(resolved); err != nil {
		return c, fmt.Errorf("read the settings: %w", err)
	}
	return c, nil
}

// missingDirs returns the missing directories above path, parents before children.
func missingDirs(path string) (dirs []string) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			slices.Reverse(dirs)
			return dirs
		}
		dirs = append(dirs, dir)
	}
}

// Blank reports whether the file exists and contains only white space.
func (c Change) Blank() bool { return !c.isNew && len(bytes.TrimSpace(c.Before)) == 0 }

// ReadFile reads a file that nod keeps beside a host's settings. The result changes nothing until the
// caller sets its field After. If Write creates the file, only the user can read it.
func ReadFile(path string) (Change, error) {
	c, err := openChange(path)
	if c.isNew {
		c.mode = 0o600
	}
	c.After = c.Before
	return c, err
}

// Changed reports whether Write would change the file.
func (c Change) Changed() bool { return !bytes.Equal(c.Before, c.After) }

// Creates reports whether the file does not exist yet.
func (c Change) Creates() bool { return c.isNew }

// Write replaces the file in one step, so that after a crash it is either the old file or the new one.
// If another program has changed the file since nod read it, Write fails and changes nothing.
func (c Change) Write() error {
	if !c.Changed() {
		return nil
	}
	dir := filepath.Dir(c.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of %s: %w", c.Path, err)
	}
	// A new file gets c.mode, reduced by the umask. os.CreateTemp would give it the mode 0600.
	name := filepath.Join(dir, ".nod-"+rand.Text()+".tmp")
	temp, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, c.mode)
	if err != nil {
		return fmt.Errorf("write beside %s: %w; nothing was changed", c.Path, err)
	}
	if err := c.replaceBy(temp); err != nil {
		_ = os.Remove(name)
		return fmt.Errorf("write %s: %w; nothing was changed", c.Path, err)
	}
	return nil
}

// Undo restores the file as it was before Write. If Write created the file, Undo removes it. If another
// program has changed the file since Write, Undo fails and changes nothing.
func (c Change) Undo() error {
	back := c
	back.Before, back.After, back.isNew = c.After, c.Before, false
	if !c.isNew {
		return back.Write()
	}
	now, err := os.ReadFile(c.Path)
	if err == nil && !bytes.Equal(now, c.After) {
		err = errors.New("it was changed meanwhile")
	}
	if err == nil {
		err = os.Remove(c.Path)
	}
	if err != nil {
		return fmt.Errorf("undo the change of %s: %w", c.Path, err)
	}
	return nil
}

func (c Change) replaceBy(temp *os.File) error {
	_, err := temp.Write(c.After)
	if !c.isNew {
		err = errors.Join(err, temp.Chmod(c.mode))
	}
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	now, err := os.ReadFile(c.Path)
	if err != nil && (!c.isNew || !errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	if !bytes.Equal(now, c.Before) {
		return errors.New("it was changed meanwhile: run the command again")
	}
	return os.Rename(temp.Name(), c.Path)
}

// Diff returns the change in the format of diff -u, as one hunk, or "" if there is no change.
func (c Change) Diff() string {
	if !c.Changed() {
		return ""
	}
	const context = 3
	before, after := c.Before, c.After
	if c.conceal != nil {
		before, after = c.conceal(before), c.conceal(after)
	}
	was, is := splitLines(before), splitLines(after)
	head := 0
	for head < min(len(was), len(is)) && was[head] == is[head] {
		head++
	}
	tail := 0
	for tail < min(len(was), len(is))-head && was[len(was)-1-tail] == is[len(is)-1-tail] {
		tail++
	}
	from := max(0, head-context)
	shown := min(tail, context)
	wasEnd, isEnd := len(was)-tail, len(is)-tail

	var b strings.Builder
	name := c.Path
	if c.isNew {
		name = os.DevNull
	}
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", name, c.Path)
	fmt.Fprintf(&b, "@@ -%s +%s @@\n", hunkRange(from, wasEnd+shown), hunkRange(from, isEnd+shown))
	write := func(mark string, lines []string) {
		for _, l := range lines {
			b.WriteString(mark + l)
			if !strings.HasSuffix(l, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	write(" ", was[from:head])
	write("-", was[head:wasEnd])
	write("+", is[head:isEnd])
	write(" ", was[wasEnd:wasEnd+shown])
	return b.String()
}

func splitLines(data []byte) []string {
	all := strings.SplitAfter(string(data), "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// hunkRange formats a range of lines for the header of a hunk.
func hunkRange(from, to int) string {
	if to == from {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}
