package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell"
)

// Resolver returns the true path for an absolute path. A true path has no symbolic links, no "." and no "..".
// If the true path cannot be found, Resolver returns an error.
type Resolver func(path string) (string, error)

// maxLinks is the largest number of symbolic links in a path. The kernel has the same limit.
const maxLinks = 40

// Disk describes the symbolic links and repositories on the machine where a command line runs.
type Disk = shell.Disk

// ThisDisk is the Disk of this machine. In this package only ThisDisk, Repositories and OnDisk read
// the file system.
type ThisDisk struct{}

// Links returns an error for a directory with maxDirEntries entries or more.
const maxDirEntries = 4096

// Links returns the names of the symbolic links in a directory, or nil if the directory does not
// exist. It returns an error if the directory has maxDirEntries or more entries.
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
	defer func() { _ = f.Close() }() // an error of Close does no harm, because the directory was only read
	entries, err := f.ReadDir(maxDirEntries)
	switch {
	case len(entries) == maxDirEntries:
		return nil, fmt.Errorf("it has %d entries or more", maxDirEntries)
	case errors.Is(err, io.EOF) || isMissing(err):
		err = nil
	}
	return entries, err
}

// WorkTree returns the top of the first repository that git finds in dir or above it. Without a
// repository, it returns dir itself. The result contains no symbolic links.
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

// isRepository reports whether dir is the top of a work tree, or is a bare repository.
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

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// OnDisk is the Resolver of this machine. It follows symbolic links like the kernel when a program opens or
// creates p, so it also follows a link whose target does not exist. It keeps the parts of p that do not exist
// as they are. The result is true only on this file system, and only until files are moved.
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
			return "", fmt.Errorf("find where %q leads: %s, before a .., does not exist", p, at)
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

// readLink returns the target of the symbolic link p, or "" if p is not a link. It returns an error
// for a link in /proc, because such a link has another target in each process.
func readLink(p string) (string, error) {
	info, err := os.Lstat(p)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return "", err
	}
	if pathname.Within(p, "/proc") {
		return "", fmt.Errorf("%s differs for each process", p)
	}
	return os.Readlink(p)
}

// Tops returns the directories in which git uses the project's own repository. These are the project, the top
// of its repository, and the repository's work trees. A directory that only looks like a work tree does not
// count. Tops returns an empty list if the project is in no repository, and nil if the project does not exist.
func (ThisDisk) Tops(project string) []string {
	if !path.IsAbs(project) || !exists(project) {
		return nil
	}
	project = path.Clean(project)
	top := project
	for !exists(top + "/.git") {
		if top == "/" {
			return []string{}
		}
		top = path.Dir(top)
	}
	tops := []string{top}
	if project != top && !exists(project+"/HEAD") {
		tops = append(tops, project)
	}
	store := top + "/.git"
	if own := gitDir(top); own != "" { // the file .git of top points to another directory, so top is a work tree of a repository elsewhere
		common, err := readGitFile(own + "/commondir")
		if err != nil {
			return tops
		}
		if store = strings.TrimSpace(string(common)); !path.IsAbs(store) {
			store = path.Join(own, store)
		}
		if !listsTree(own, top) {
			return []string{} // the repository does not list top as a work tree, so a stranger may have made it
		}
		if path.Base(store) == ".git" {
			tops = append(tops, path.Dir(store))
		}
	}
	entries, _ := os.ReadDir(store + "/worktrees") // a directory that cannot be read adds no work trees
	for _, e := range entries {
		admin := store + "/worktrees/" + e.Name()
		file, err := readGitFile(admin + "/gitdir")
		tree := path.Dir(strings.TrimSpace(string(file)))
		if err == nil && path.IsAbs(tree) && sameFile(gitDir(tree), admin) && !slices.Contains(tops, tree) {
			tops = append(tops, tree)
		}
	}
	return tops
}

// maxGitFile is the size limit, in bytes, for a file that readGitFile reads.
const maxGitFile = 64 << 10

// readGitFile reads one of the small files that link a work tree to its repository. An agent can
// create such a file, and reading a device or a pipe might never end. Therefore readGitFile returns
// an error for a device, a pipe or a long file.
func readGitFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxGitFile {
		return nil, fmt.Errorf("%s is no file of at most %d bytes", name, maxGitFile)
	}
	return os.ReadFile(name)
}

// gitDir returns the directory to which the file .git of a work tree points, or "".
func gitDir(tree string) string {
	text, err := readGitFile(tree + "/.git")
	dir, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if err != nil || !ok {
		return ""
	}
	if !path.IsAbs(dir) {
		dir = path.Join(tree, dir)
	}
	return dir
}

// listsTree reports whether a repository lists the work tree at the path tree. The directory admin is the one
// that the repository keeps for this work tree.
func listsTree(admin, tree string) bool {
	file, err := readGitFile(admin + "/gitdir")
	return err == nil && sameFile(path.Dir(strings.TrimSpace(string(file))), tree)
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}

func exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}
