package contain

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// reviewTime is the time limit of the search for changed files. The search for protected names always
// runs to its end.
const reviewTime = 300 * time.Millisecond

// review does the only review of a command that has ended. It moves away new protected paths and lists the
// changed files. The mounts could not prevent the new paths, because they protect only paths that exist.
func (v *view) review(before time.Time, r *Report) { v.reviewer(before).end(r) }

// watch starts to review the writable directories at intervals. Its result, the function finish,
// ends these reviews and does the last review.
func (v *view) watch(before time.Time) (finish func(*Report)) {
	w := v.reviewer(before)
	every := v.spec.ReviewEvery
	if every == 0 {
		every = DefaultReviewEvery
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		next := time.NewTimer(every)
		defer next.Stop()
		for {
			select {
			case <-stop:
				return
			case <-next.C:
				begun := time.Now()
				w.undoWhat(w.foundTwice)
				next.Reset(pause(every, time.Since(begun)))
			}
		}
	}()
	return func(r *Report) {
		close(stop)
		<-stopped
		w.end(r)
	}
}

// pause returns the time between two reviews. every is the usual time, and took is the duration of the
// last review. Long reviews are rarer, so that they take about a hundredth of one processor.
func pause(every, took time.Duration) time.Duration {
	return min(max(every, 100*took), 6*every)
}

func (v *view) reviewer(before time.Time) *reviewer {
	w := &reviewer{view: v, top: v.spec.Project, names: &v.names, before: before, known: map[string]uint64{}, found: map[string]finding{}, buf: make([]byte, 64<<10)}
	for _, t := range v.trees {
		if v.readOnly(t.top) {
			continue
		}
		for i, dir := range t.dirs {
			w.known[dir] = t.inos[i]
		}
		for _, f := range t.found {
			w.found[f.path] = f
		}
	}
	return w
}

// end does the last review. The command must have ended.
func (w *reviewer) end(r *Report) {
	w.undoWhat(func(string) bool { return true })
	r.Undone, r.UndoneTo = w.undone, w.moved
	if !w.view.readOnly(w.top) {
		w.changes(w.top, r)
	}
}

// undoWhat searches for forbidden changes. It undoes the change of a path if the function due returns
// true for that path.
func (w *reviewer) undoWhat(due func(path string) bool) {
	w.due, w.dirs, w.once, w.nowFound = due, nil, w.nowFound, map[string]bool{}
	for _, t := range w.view.trees {
		if !w.view.readOnly(t.top) {
			w.tree(t)
		}
	}
	for _, p := range w.view.absent {
		if _, err := os.Lstat(p); err == nil {
			w.undo = append(w.undo, p)
		}
	}
	w.takeAway()
}

// foundTwice notes that this review has found a path, and reports whether the preceding review
// has also found it.
func (w *reviewer) foundTwice(path string) bool {
	w.nowFound[path] = true
	return w.once[path]
}

type reviewer struct {
	view   *view
	names  *names
	before time.Time
	known  map[string]uint64  // the inode numbers of the directories that existed before the command
	found  map[string]finding // the findings before the command
	dirs   []string           // the directories that exist after the command
	undo   []string
	undone []string
	moved  string // the directory to which takeAway moves paths
	top    string // the project's root directory
	buf    []byte

	due      func(path string) bool // reports whether this review undoes the change of a path
	once     map[string]bool        // the paths that the preceding review found
	nowFound map[string]bool        // the paths that this review found
	moves    int                    // the number of paths that takeAway has moved
}

func (w *reviewer) changed(st *unix.Stat_t) bool {
	return !time.Unix(st.Ctim.Unix()).Before(w.before)
}

// existed reports whether a path is the same file as before the command. The name alone does not prove
// this, because a command can rename a directory above the file and then create another file at the path.
func (w *reviewer) existed(full string) bool {
	f, ok := w.found[full]
	if !ok {
		return false
	}
	now, err := inspect(full, f.kind)
	return err == nil && now.dev == f.dev && now.ino == f.ino
}

// tree searches a tree for new protected names. It skips a directory that the command has
// neither changed nor moved.
func (w *reviewer) tree(t tree) {
	todo := slices.Clone(t.dirs)
	moved := map[string]bool{}
	for len(todo) > 0 {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		var st unix.Stat_t
		if err := unix.Lstat(dir, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			continue
		}
		w.dirs = append(w.dirs, dir)
		if _, known := w.known[dir]; known && !moved[dir] && !w.changed(&st) {
			continue
		}
		_ = eachEntry(dir, w.buf, func(name string, typ byte, ino uint64) error {
			full := dir + "/" + name
			switch k := w.names.of(t.top, full, name); {
			case w.existed(full), w.sameDir(full, ino):
			case k == gitDir && harmlessRepository(full):
			case k == gitDir, w.names.protected != nil && w.names.protected(full[len(t.top)+1:]):
				w.undo = append(w.undo, full)
			case typ == unix.DT_LNK && w.names.leads(full[len(t.top)+1:]):
				w.undo = append(w.undo, full)
			case name == "HEAD" && bareRepositoryAt(dir):
				w.undo = append(w.undo, full)
			case typ == unix.DT_DIR || typ == unix.DT_UNKNOWN:
				moved[full] = true
				todo = append(todo, full)
			}
			return nil
		})
	}
	for _, f := range t.found {
		if f.target != "" && (f.kind != secret || f.leads != "") {
			w.restore(f)
		}
	}
}

// restore restores a symbolic link that the command has removed or changed. If the link has a secret
// name, the file to which it leads is secret, so restore makes the link lead to the same file again.
func (w *reviewer) restore(f finding) {
	now, err := os.Readlink(f.path)
	real, _ := realPath(f.path) // real is empty only after an error
	if err == nil && now == f.target && (f.kind != secret || real == f.leads) || !w.due(f.path) {
		return
	}
	w.takeOne(f.path)
	_ = os.Symlink(f.target, f.path)
	if real, _ := realPath(f.path); f.kind == secret && real != f.leads {
		_ = os.Remove(f.path)
		_ = os.Symlink(f.leads, f.path)
	}
}

// sameDir reports whether the same directory was at this path before the command.
func (w *reviewer) sameDir(full string, ino uint64) bool {
	before, known := w.known[full]
	return known && before == ino
}

// takeAway moves the paths in w.undo to another directory, so that no program uses them. It deletes
// a path that it cannot move.
func (w *reviewer) takeAway() {
	for _, p := range w.undo {
		if w.due(p) {
			w.takeOne(p)
		}
	}
	w.undo = nil
}

func (w *reviewer) takeOne(p string) {
	if _, err := os.Lstat(p); err != nil {
		return
	}
	if !w.moveAway(p) {
		_ = os.RemoveAll(p)
	}
	if w.moves++; !slices.Contains(w.undone, p) {
		w.undone = append(w.undone, p)
	}
}

// moveAway moves a path to a new directory for temporary files. If that directory is on another
// file system, moveAway uses a directory in the project's root, with a name that no program looks
// for. It does not delete the path, because the user may have created it.
func (w *reviewer) moveAway(p string) bool {
	name := strconv.Itoa(w.moves) + "-" + filepath.Base(p)
	for _, parent := range []string{os.TempDir(), w.top} {
		if w.moved == "" || filepath.Dir(w.moved) != parent {
			dir, err := os.MkdirTemp(parent, "nod-removed-")
			if err != nil {
				continue
			}
			if os.Rename(p, filepath.Join(dir, name)) == nil {
				w.moved = dir
				return true
			}
			_ = os.Remove(dir)
			continue
		}
		if os.Rename(p, filepath.Join(w.moved, name)) == nil {
			return true
		}
	}
	return false
}

// changes lists the files that have changed since the command started.
func (w *reviewer) changes(top string, r *Report) {
	deadline := time.Now().Add(reviewTime)
	for _, dir := range w.dirs {
		if !within(dir, top) {
			continue
		}
		if time.Now().After(deadline) {
			r.Partial = true
			break
		}
		_ = eachEntry(dir, w.buf, func(name string, typ byte, _ uint64) error {
			var st unix.Stat_t
			if full := dir + "/" + name; typ != unix.DT_DIR && unix.Lstat(full, &st) == nil && w.changed(&st) && st.Mode&unix.S_IFMT != unix.S_IFDIR {
				if r.Changes++; len(r.Changed) < MaxChanged {
					r.Changed = append(r.Changed, full[len(top)+1:])
				}
			}
			return nil
		})
	}
	slices.Sort(r.Changed)
	r.Partial = r.Partial || r.Changes > len(r.Changed)
}

// harmlessRepository reports whether no setting or file of a new git repository makes git start a program.
// Such a repository has no hooks, and only the settings that git init and git clone write.
func harmlessRepository(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	for _, name := range []string{"config.worktree", "commondir", "modules", "worktrees", "objects/info/alternates"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			return false
		}
	}
	hooks, err := os.ReadDir(filepath.Join(dir, "hooks"))
	if err != nil && !os.IsNotExist(err) || slices.ContainsFunc(hooks, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".sample") }) {
		return false
	}
	config, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil {
		return false
	}
	for _, s := range parseGitConfig(string(config)) {
		if !slices.Contains([]string{
			"core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.symlinks", "core.ignorecase",
			"remote.url", "remote.fetch", "branch.remote", "branch.merge",
		}, s.section+"."+s.key) || s.key == "url" && strings.Contains(s.value, "::") {
			return false
		}
	}
	return true
}

// bareRepositoryAt reports whether git would take a directory for a repository without a work tree.
func bareRepositoryAt(dir string) bool {
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}
