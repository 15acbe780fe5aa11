package contain

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// view is what nod knows before it starts a command: the scanned trees, the paths to hide or
// protect, and the scratch directory.
type view struct {
	spec    *Spec
	names   names
	trees   []tree // the project first, then the other writable and readable directories
	extra   []finding
	absent  []string // protected paths that did not exist before the command
	lock    *os.File // the lock file of the scratch directory, open until the command has ended
	scratch string

	temporary string // a directory to remove when the command has ended
}

func newView(s *Spec) (*view, error) {
	v := &view{spec: s, names: names{s.Secret, s.SecretBelow, s.Protected}}
	for _, top := range v.tops() {
		t, err := scan(top, &v.names, 0)
		if err != nil {
			return nil, err
		}
		t.found = slices.DeleteFunc(t.found, func(f finding) bool { return f.path == top })
		links, err := t.otherLinks()
		if err != nil {
			return nil, err
		}
		v.extra = slices.Concat(v.extra, t.linkTargets(), links)
		v.trees = append(v.trees, t)
	}
	if err := v.addOthers(); err != nil { // only now, because a command that started during the scans had no note before
		return nil, err
	}
	return v, v.openScratch()
}

// tops returns the directories to scan: the project and the granted paths.
func (v *view) tops() []string {
	tops := []string{v.spec.Project}
	for _, p := range slices.Concat(v.spec.Write, v.spec.Read) {
		if info, err := os.Lstat(p); err == nil && info.IsDir() && !slices.Contains(tops, p) {
			tops = append(tops, p)
		}
	}
	return tops
}

// openScratch opens and locks the scratch directory. If another command has locked it, the changes
// of this command stay in memory, because two overlays must not share a directory.
func (v *view) openScratch() error {
	dir := v.spec.Scratch
	if dir == "" {
		return nil
	}
	for _, d := range []string{dir, filepath.Join(dir, "tmp"), filepath.Join(dir, "layers")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("prepare the session's directory: %w", err)
		}
	}
	real, err := realPath(dir)
	if err != nil {
		return err
	}
	v.spec.Scratch = real
	lock, err := os.OpenFile(filepath.Join(real, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		v.scratch = filepath.Join(real, "layers")
	}
	v.lock = lock
	return nil
}

func (v *view) close() {
	if v.lock != nil {
		v.lock.Close()
	}
	if v.temporary != "" {
		_ = os.RemoveAll(v.temporary)
	}
}

func (v *view) readOnly(top string) bool {
	if top == v.spec.Project {
		return v.spec.ReadOnly
	}
	return !slices.Contains(v.spec.Write, top)
}
