package contain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// kind is the reason why a path needs a mount of its own.
type kind int

const (
	plain kind = iota
	secret
	protected
	socket  // a Unix socket of another program
	gitDir  // a git repository, or the file .git of a linked work tree
	gitHead // a file named HEAD, which may mark a repository without a work tree
	through // a symbolic link with a protected name
)

// finding is a path that a scan found and that may need a mount of its own.
type finding struct {
	path     string
	kind     kind
	dir      bool
	dev, ino uint64
	links    uint64
	target   string // where the path leads, if it is a symbolic link; as stored in the link
	leads    string // the file to which a symbolic link finally leads, if that file is in the same tree
}

// linkToSecret reports whether f is a symbolic link to a file that is secret only because of this link.
func (f *finding) linkToSecret() bool { return f.kind == secret && f.leads != "" }

// tree is what the scan of one directory has found.
type tree struct {
	top   string
	dirs  []string // all directories that the scan read
	inos  []uint64 // the inode number of each of dirs, but 0 for top
	found []finding
}

// maxEntries is the largest number of files in a project. Run refuses a larger project, because the
// scan for secrets would take too long.
const maxEntries = 2_000_000

// names decides by its name whether a path is secret or protected.
type names struct {
	secret      func(full string) bool
	secretBelow func(dir string) bool
	protected   func(rel string) bool
}

func (n *names) of(top, full, name string) kind {
	switch {
	case name == ".git":
		return gitDir
	case name == "HEAD":
		return gitHead
	case n.secret != nil && n.secret(full):
		return secret
	case n.protected != nil && n.protected(strings.TrimPrefix(full[len(top):], "/")):
		return protected
	}
	return plain
}

// leads reports whether a symbolic link with the path rel would give a protected name to files in
// its target. An example is a link named .github.
func (n *names) leads(rel string) bool {
	return n.protected != nil && slices.ContainsFunc([]string{"/workflows/x.yml", "/copilot-instructions.md", "/hooks/x.json"}, func(below string) bool {
		return n.protected(rel + below)
	})
}

// leadsToSecrets reports whether a symbolic link with the path full gives a secret name to files
// in its target. An example is a link named .docker to a directory with a file config.json.
func (n *names) leadsToSecrets(full string) bool {
	if n.secretBelow == nil || !n.secretBelow(full) {
		return false
	}
	var st unix.Stat_t
	return unix.Stat(full, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// enoughForOne is a number of directories. One goroutine reads so many in the time that the start
// of another goroutine takes.
const enoughForOne = 4

type subdir struct {
	path string
	ino  uint64
}

// scanner reads the directories of a tree with several goroutines.
type scanner struct {
	names *names
	top   string
	depth int // the number of levels below top that the scan reads; 0 means all

	mu      sync.Mutex
	wake    *sync.Cond
	todo    []subdir
	busy    int
	workers int // the number of further goroutines that may start; most trees are small and need none
	wait    sync.WaitGroup
	entries int
	tree    tree
	err     error
}

// scan finds the paths below top that may need their own mounts. It reads depth levels, or all
// levels if depth is 0.
func scan(top string, n *names, depth int) (tree, error) {
	s := &scanner{names: n, top: top, depth: depth, todo: []subdir{{path: top}}, tree: tree{top: top}}
	s.wake = sync.NewCond(&s.mu)
	s.workers = min(runtime.GOMAXPROCS(0), 8) - 1
	s.work()
	s.wait.Wait()
	if s.err != nil {
		return tree{}, fmt.Errorf("look for secrets in %s: %w", top, s.err)
	}
	slices.SortFunc(s.tree.found, func(a, b finding) int { return strings.Compare(a.path, b.path) })
	return s.tree, nil
}

func (s *scanner) work() {
	buf := make([]byte, 64<<10)
	for {
		s.mu.Lock()
		for len(s.todo) == 0 && s.busy > 0 && s.err == nil {
			s.wake.Wait()
		}
		if len(s.todo) == 0 || s.err != nil {
			s.wake.Broadcast()
			s.mu.Unlock()
			return
		}
		dir := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		s.busy++
		s.mu.Unlock()

		sub, found, entries, err := s.directory(dir.path, buf)

		s.mu.Lock()
		s.busy--
		s.entries += entries
		s.tree.dirs, s.tree.inos = append(s.tree.dirs, dir.path), append(s.tree.inos, dir.ino)
		s.tree.found = append(s.tree.found, found...)
		s.todo = append(s.todo, sub...)
		for ; s.workers > 0 && len(s.todo) > enoughForOne; s.workers-- {
			s.wait.Go(s.work)
		}
		if err == nil && s.entries > maxEntries {
			err = fmt.Errorf("it has more than %d files: contain a part of it", maxEntries)
		}
		if s.err == nil {
			s.err = err
		}
		s.wake.Broadcast()
		s.mu.Unlock()
	}
}

func (s *scanner) directory(dir string, buf []byte) (sub []subdir, found []finding, entries int, err error) {
	deep := s.depth > 0 && strings.Count(dir[len(s.top):], "/")+1 >= s.depth
	err = eachEntry(dir, buf, func(name string, typ byte, ino uint64) error {
		entries++
		full := dir + "/" + name
		if dir == "/" {
			full = "/" + name
		}
		if typ == unix.DT_UNKNOWN {
			var st unix.Stat_t
			if err := unix.Lstat(full, &st); err != nil {
				return ignoreGone(err)
			}
			typ = byte(st.Mode & unix.S_IFMT >> 12)
		}
		k := s.names.of(s.top, full, name)
		switch {
		case k == plain && typ == unix.DT_SOCK:
			k = socket
		case k == plain && typ == unix.DT_LNK && s.names.leadsToSecrets(full):
			k = secret
		case k == plain && typ == unix.DT_LNK && s.names.leads(strings.TrimPrefix(full[len(s.top):], "/")):
			k = protected
		}
		if k == gitHead && (typ != unix.DT_REG || !bareRepositoryAt(dir)) {
			k = plain
		}
		if k == plain {
			if typ == unix.DT_DIR && !deep {
				sub = append(sub, subdir{full, ino})
			}
			return nil
		}
		f, err := inspect(full, k)
		if err == nil {
			found = append(found, f)
		}
		return ignoreGone(err)
	})
	if errors.Is(err, fs.ErrPermission) && dir != s.top {
		err = nil // skip this directory, because the command cannot read it either
	}
	return sub, found, entries, ignoreGone(err)
}

// ignoreGone returns err, or nil if err only means that a file was removed during the scan.
func ignoreGone(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func inspect(full string, k kind) (finding, error) {
	var st unix.Stat_t
	if err := unix.Lstat(full, &st); err != nil {
		return finding{}, err
	}
	f := finding{path: full, kind: k, dir: st.Mode&unix.S_IFMT == unix.S_IFDIR, dev: st.Dev, ino: st.Ino, links: uint64(st.Nlink)}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return f, nil
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlink(full, buf)
	if err != nil {
		return finding{}, err
	}
	if f.target = string(buf[:n]); f.kind != secret {
		f.kind = through
	}
	return f, nil
}

// eachEntry calls f with the name, the type and the inode of each entry of a directory.
func eachEntry(dir string, buf []byte, f func(name string, typ byte, ino uint64) error) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil || n == 0 {
			return err
		}
		for b := buf[:n]; len(b) > 0; {
			size := int(b[16]) | int(b[17])<<8 // the field d_reclen of struct linux_dirent64
			name := b[19:size]
			if end := slices.Index(name, 0); end >= 0 {
				name = name[:end]
			}
			if s := string(name); s != "." && s != ".." {
				if err := f(s, b[18], binary.LittleEndian.Uint64(b)); err != nil {
					return err
				}
			}
			b = b[size:]
		}
	}
}

// linkTargets returns a finding for the target of each symbolic link in t.found, if the target is in
// the tree. The finding has the kind of the link, but protected instead of through. linkTargets also
// stores the target in the finding of the link.
func (t *tree) linkTargets() []finding {
	var out []finding
	for i, f := range t.found {
		if f.target == "" {
			continue
		}
		to := f.target
		if !path.IsAbs(to) {
			to = path.Join(path.Dir(f.path), to)
		}
		real, err := realPath(to)
		if err != nil || !within(real, t.top) || real == t.top {
			continue
		}
		t.found[i].leads = real
		k := f.kind
		if k == through {
			k = protected
		}
		if g, err := inspect(real, k); err == nil {
			out = append(out, g)
		}
	}
	return out
}

// otherLinks returns findings for the other hard links to secret and protected files.
func (t *tree) otherLinks() ([]finding, error) {
	type file struct{ dev, ino uint64 }
	kinds := map[file]kind{}
	known := map[string]bool{}
	for _, f := range t.found {
		if !f.dir && f.links > 1 && (f.kind == secret || f.kind == protected) {
			kinds[file{f.dev, f.ino}] = f.kind
			known[f.path] = true
		}
	}
	if len(kinds) == 0 {
		return nil, nil
	}
	var out []finding
	buf := make([]byte, 64<<10)
	for _, dir := range t.dirs {
		err := eachEntry(dir, buf, func(name string, typ byte, _ uint64) error {
			if full := dir + "/" + name; typ == unix.DT_REG && !known[full] {
				f, err := inspect(full, plain)
				if err != nil {
					return ignoreGone(err)
				}
				if f.kind = kinds[file{f.dev, f.ino}]; f.kind != plain {
					out = append(out, f)
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return out, nil
}

// within reports whether the clean path p is the path dir or is below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}
