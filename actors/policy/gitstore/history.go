package gitstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	maxTrees = 1_000_000 // the largest number of trees that a History reads
	maxDepth = 200       // the largest depth of a directory
	maxFound = 10_000    // the largest number of contents, of all listed files, that a History keeps
)

// ErrUnfinished means that the time was too short to read all commits. The next call of Read reads
// further commits.
var ErrUnfinished = errors.New("nod has not yet read all commits")

// History finds the listed files in all commits of a repository, even in commits that no branch
// contains. It reads each tree once. It is not safe for concurrent use.
type History struct {
	listed  func(path string) bool
	root    *directory
	found   map[string]map[ID]bool // the contents of listed files, by path
	count   int                    // the number of contents in found
	trees   int
	stamp   string          // describes the object files at the end of the last complete reading
	packs   map[string]int  // the number of objects, by pack, that History has looked at
	loose   map[string]bool // the files with a single object that History has looked at
	looked  map[string]time.Time
	waiting []ID // commits, or their trees, that History has not yet read
}

// directory is a directory in any commit.
type directory struct {
	path  string // with a slash at the end; "" for the top
	dirs  map[string]*directory
	files map[string]bool // the names of the directory's files, and whether the files are listed
	seen  map[ID]bool     // the trees that were read at this path
}

// NewHistory returns a History that finds the files for which the function listed returns true. Paths
// are relative to the top of the work tree.
func NewHistory(listed func(path string) bool) *History {
	return &History{listed: listed, root: &directory{}, found: map[string]map[ID]bool{}, packs: map[string]int{}, loose: map[string]bool{}, looked: map[string]time.Time{}}
}

// Found returns the contents of each listed file, by path. The caller must not change the map.
func (h *History) Found() map[string]map[ID]bool { return h.found }

// Lists reports whether a path is listed. It remembers the answer.
func (h *History) Lists(file string) bool {
	d := h.root
	for {
		name, rest, deeper := strings.Cut(file, "/")
		if !deeper {
			return d.lists(h, []byte(name))
		}
		d, file = d.below([]byte(name)), rest
	}
}

func (d *directory) below(name []byte) *directory {
	if next := d.dirs[string(name)]; next != nil {
		return next
	}
	if d.dirs == nil {
		d.dirs = map[string]*directory{}
	}
	next := &directory{path: d.path + string(name) + "/"}
	d.dirs[string(name)] = next
	return next
}

func (d *directory) lists(h *History, name []byte) bool {
	if is, known := d.files[string(name)]; known {
		return is
	}
	if d.files == nil {
		d.files = map[string]bool{}
	}
	is := h.listed(d.path + string(name))
	d.files[string(name)] = is
	return is
}

// Read reads the new commits of a repository. The argument common is the repository's common directory.
// At the time in the argument until, Read stops and returns ErrUnfinished. After an error, listed files
// may be missing.
func (h *History) Read(common string, until time.Time) error {
	for {
		if err := h.read(common, until); !errors.Is(err, errMoved) {
			return err
		} else if time.Now().After(until) {
			return ErrUnfinished
		}
	}
}

// errMoved means that git changed the repository during the reading.
var errMoved = errors.New("the repository has changed")

func (h *History) read(common string, until time.Time) error {
	config, err := readBounded(common+"/config", 1<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	config = bytes.ToLower(config)
	if bytes.Contains(config, []byte("sha256")) {
		return errors.New("nod does not read repositories with SHA-256 names")
	}
	partial := bytes.Contains(config, []byte("promisor")) || bytes.Contains(config, []byte("partialclone"))
	o := &objects{dirs: alternates(common+"/objects", 0)}
	stamp, settled := o.stamp()
	if settled && stamp == h.stamp {
		return nil
	}
	defer o.close()
	if err := h.list(o, until); err != nil {
		return err
	}
	for len(h.waiting) > 0 {
		if time.Now().After(until) {
			return ErrUnfinished
		}
		last := len(h.waiting) - 1
		if err := h.commit(o, h.waiting[last]); errors.Is(err, errMissing) && !partial {
			// git cannot show a missing tree. The tree was removed, or a shallow clone never fetched it.
		} else if err != nil {
			return err
		}
		h.waiting = h.waiting[:last]
	}
	if now, _ := o.stamp(); now != stamp {
		return errMoved
	}
	h.stamp = stamp
	return nil
}

// tick is longer than the steps in which file systems note times. If a directory changes twice within
// tick, its time may be the same after both changes.
const tick = 100 * time.Millisecond

// stamp describes the object files. It changes if an object or a pack is added or removed. If the
// result settled is false, the next change may leave the stamp unchanged.
func (o *objects) stamp() (stamp string, settled bool) {
	var b strings.Builder
	settled = true
	for _, dir := range o.dirs {
		for i := range 256 {
			if info, err := os.Stat(fmt.Sprintf("%s/%02x", dir, i)); err == nil {
				settled = settled && time.Since(info.ModTime()) > tick
				fmt.Fprintf(&b, "%x %x\n", i, info.ModTime().UnixNano())
			}
		}
		entries, _ := os.ReadDir(dir + "/pack") // git can read nothing in a directory that nod cannot read
		for _, e := range entries {
			if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".idx") {
				fmt.Fprintf(&b, "%s %x %x\n", e.Name(), info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return b.String(), settled
}

// list opens the packs, and adds the new commits to h.waiting.
func (h *History) list(o *objects, until time.Time) error {
	for _, dir := range o.dirs {
		entries, err := os.ReadDir(dir + "/pack")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), ".idx"); ok {
				p, err := openPack(dir + "/pack/" + name)
				if err != nil {
					return err
				}
				o.packs = append(o.packs, p)
			}
		}
	}
	for _, p := range o.packs {
		name := p.file.Name()
		for i := h.packs[name]; i < p.len(); i++ {
			if i%1000 == 0 && time.Now().After(until) {
				h.packs[name] = i
				return ErrUnfinished
			}
			kind, err := o.kindOf(place{p, p.offset(i)})
			if err != nil {
				return err
			}
			if kind == kindCommit {
				h.waiting = append(h.waiting, p.id(i))
			}
		}
		h.packs[name] = p.len()
	}
	for _, dir := range o.dirs {
		for i := range 256 {
			if err := h.listLoose(o, fmt.Sprintf("%s/%02x", dir, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// listLoose looks for new commits among the objects that are not in packs, and adds the trees of
// these commits to h.waiting.
func (h *History) listLoose(o *objects, dir string) error {
	info, err := os.Stat(dir)
	if err != nil || info.ModTime().Equal(h.looked[dir]) {
		return nil // git can show nothing in a directory that nod cannot read
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if len(e.Name()) != 38 || h.loose[name] {
			continue // a file that git has not finished has a name of another length
		}
		obj, err := o.loose(name, false)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if h.loose[name] = true; obj.kind == kindCommit {
			tree, err := treeOf(obj.data)
			if err != nil {
				return err
			}
			h.waiting = append(h.waiting, tree)
		}
	}
	if time.Since(info.ModTime()) > tick {
		h.looked[dir] = info.ModTime()
	}
	return nil
}

// commit reads the tree with this id, or the tree of the commit with this id.
func (h *History) commit(o *objects, id ID) error {
	obj, err := o.read(id)
	if err != nil {
		return err
	}
	if obj.kind == kindCommit {
		if id, err = treeOf(obj.data); err != nil {
			return err
		}
	}
	return h.tree(o, h.root, id, 0)
}

// tree reads a tree at the path d, and all trees below it. If trees are missing, it reads all other
// trees before it returns errMissing.
func (h *History) tree(o *objects, d *directory, id ID, depth int) error {
	if d.seen[id] {
		return nil
	}
	if h.trees++; h.trees > maxTrees || depth > maxDepth {
		return fmt.Errorf("the repository holds more than %d directories, or one that is too deep", maxTrees)
	}
	obj, err := o.read(id)
	if err != nil {
		return err
	}
	if obj.kind != kindTree {
		return errors.New("a directory of the repository is no tree")
	}
	var missing error
	for data := obj.data; len(data) > 0; {
		head, rest, ok := bytes.Cut(data, []byte{0})
		mode, name, named := bytes.Cut(head, []byte{' '})
		if !ok || !named || len(rest) < 20 {
			return errors.New("a tree is damaged")
		}
		entry := ID(rest[:20])
		data = rest[20:]
		switch string(mode) {
		case "40000":
			if err := h.tree(o, d.below(name), entry, depth+1); errors.Is(err, errMissing) {
				missing = err
			} else if err != nil {
				return err
			}
		case "160000": // a submodule's commit
		default:
			if d.lists(h, name) && !h.add(d.path+string(name), entry) {
				return fmt.Errorf("the repository holds more than %d contents of files with secrets", maxFound)
			}
		}
	}
	if d.seen == nil {
		d.seen = map[ID]bool{}
	}
	d.seen[id] = missing == nil
	return missing
}

func (h *History) add(file string, content ID) bool {
	if h.found[file] == nil {
		h.found[file] = map[ID]bool{}
	}
	if !h.found[file][content] {
		h.found[file][content] = true
		h.count++
	}
	return h.count <= maxFound
}

// Paths returns the listed files in the order of their paths.
func (h *History) Paths() []string {
	var paths []string
	for file := range h.found {
		paths = append(paths, file)
	}
	slices.Sort(paths)
	return paths
}
