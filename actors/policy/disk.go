package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// Resolver says where an absolute path leads: the same place without symbolic
// links, "." or "..". An error means that this cannot be told.
type Resolver func(path string) (string, error)

// linksMax is how many symbolic links a path may go through, the kernel's own
// limit.
const maxLinks = 40

// Disk is what ShellNeeds has to know of the files of the machine that a line
// runs on. An error means that it cannot be told.
type Disk interface {
	// Links are the names of the symbolic links in a directory.
	Links(dir string) ([]string, error)
	// WorkTree is the top of the repository that git finds from a directory, dir
	// itself where it finds none.
	WorkTree(dir string) (string, error)
}

// ThisDisk is the Disk of this machine. It and OnDisk are the only things in
// this package that look at files.
type ThisDisk struct{}

// linksIn is in how many entries of a directory links are looked for.
const maxDirEntries = 4096

// Links are those of a directory as it is now; none where it is not there. A
// directory of too many entries is an error.
func (ThisDisk) Links(dir string) (names []string, err error) {
	entries, err := dirEntries(dir)
	if err != nil {
		return nil, fmt.Errorf("find the links in %q: %w", dir, err)
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func dirEntries(dir string) ([]fs.DirEntry, error) {
	f, err := os.Open(dir)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	entries, err := f.ReadDir(maxDirEntries)
	switch {
	case len(entries) == maxDirEntries:
		return nil, fmt.Errorf("it has %d entries or more", maxDirEntries)
	case errors.Is(err, io.EOF) || isMissing(err):
		err = nil
	}
	return entries, err
}

// WorkTree goes up from dir, its links followed, as git does.
func (ThisDisk) WorkTree(dir string) (string, error) {
	at, err := OnDisk(dir)
	if err != nil {
		return "", err
	}
	for up := at; ; up = path.Dir(up) {
		is, err := isRepository(up)
		switch {
		case err != nil:
			return "", fmt.Errorf("find the repository of %q: %w", dir, err)
		case is:
			return up, nil
		case up == "/":
			return at, nil
		}
	}
}

// repository reports whether dir is the top of a work tree, or a repository that
// has none.
func isRepository(dir string) (bool, error) {
	info, err := os.Stat(dir + "/.git")
	switch {
	case isMissing(err):
	case err != nil || !info.IsDir():
		return err == nil, err
	}
	for _, at := range []string{dir + "/.git", dir} {
		if _, err := os.Lstat(at + "/HEAD"); isMissing(err) {
			continue
		} else if err != nil {
			return false, err
		}
		for _, store := range []string{"/objects", "/commondir"} {
			if _, err := os.Stat(at + store); !isMissing(err) {
				return err == nil, err
			}
		}
	}
	return false, nil
}

// missing reports whether err says that there is no such file.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// OnDisk is the Resolver of this machine. It follows links as the kernel does
// that opens or creates p, so a link that leads nowhere stands for its target,
// and what is not there yet for itself in the directory that is. It is right
// about this process's own file system alone, and only for as long as nobody
// moves things.
func OnDisk(p string) (string, error) {
	if !path.IsAbs(p) {
		return "", fmt.Errorf("find where %q leads: it is not absolute", p)
	}
	at, rest, links, missing := "/", p, 0, false
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next := path.Join(at, name)
		if missing && name == ".." {
			return "", fmt.Errorf("find where %q leads: %s is not there to go back from", p, at)
		}
		if missing || next == at || name == ".." {
			at = next
			continue
		}
		target, err := readLink(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			at, missing = next, true
		case err != nil:
			return "", fmt.Errorf("find where %q leads: %w", p, err)
		case target == "":
			at = next
		case links == maxLinks:
			return "", fmt.Errorf("find where %q leads: it goes through more than %d symbolic links", p, maxLinks)
		default:
			links++
			rest = target + "/" + rest
			if path.IsAbs(target) {
				at = "/"
			}
		}
	}
	return at, nil
}

// readLink is what the symbolic link p says; "" where p is none.
func readLink(p string) (string, error) {
	info, err := os.Lstat(p)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return "", err
	}
	if within(p, "/proc") {
		return "", fmt.Errorf("%s is another file for each process", p)
	}
	return os.Readlink(p)
}
