package contain

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nodbus/nod/connectors/agents/contain/inner"
)

// The command sees an empty file or directory in place of a secret. The inner process creates both.
const (
	emptyFile = inner.Own + "/empty"
	emptyDir  = inner.Own + "/empty-dir"
)

const sealed = harmless | inner.ReadOnly

// covers adds steps to a layout. The steps hide secrets and protect files.
type covers struct {
	layout *layout
	seen   map[string]bool
	copies int
	absent []string // protected paths that do not exist and that the command must not create
}

func (c *covers) begin() {
	c.layout.step(inner.Step{Kind: inner.StepFile, Path: emptyFile})
	c.layout.step(inner.Step{Kind: inner.StepDir, Path: emptyDir, Attr: 0o555})
}

// cover hides the path of a finding, or makes it read-only if its kind is protected. It skips a
// path that is covered already.
func (c *covers) cover(f finding) {
	if c.seen[f.path] || f.target != "" {
		return
	}
	c.seen[f.path] = true
	s := inner.Step{Kind: inner.StepCover, Path: f.path, Source: f.path, Attr: sealed, Dev: f.dev, Ino: f.ino}
	switch {
	case f.kind == protected:
	case f.dir:
		s.Source, s.Attr = emptyDir, sealed|inner.NoExec
	default:
		s.Source, s.Attr = emptyFile, sealed|inner.NoExec
	}
	c.layout.step(s)
}

// pin mounts a directory at its own path, because the command can neither rename nor move a mount point.
func (c *covers) pin(dir string) {
	f, err := inspect(dir, plain)
	if err == nil && f.dir && !c.seen[dir] {
		c.seen[dir] = true
		c.layout.step(inner.Step{Kind: inner.StepCover, Path: dir, Source: dir, Attr: harmless, Dev: f.dev, Ino: f.ino})
	}
}

// protect makes a path in a writable directory read-only. If the path does not exist, protect adds
// it to absent.
func (c *covers) protect(p string) {
	f, err := inspect(p, protected)
	switch {
	case err != nil:
		c.absent = append(c.absent, p)
	case f.target != "":
		if real, err := realPath(p); err == nil && c.layout.visible(real) {
			c.protect(real)
		}
	default:
		c.cover(f)
	}
}

func (c *covers) protectAll(paths []string) {
	for _, p := range paths {
		c.protect(p)
	}
}

// config makes a git configuration file read-only for the command, and hides passwords and
// tokens in the file.
func (c *covers) config(p string) {
	f, err := inspect(p, protected)
	data, readErr := os.ReadFile(p)
	if err != nil || readErr != nil || f.target != "" || c.seen[p] {
		c.protect(p)
		return
	}
	clean := withoutLogins(string(data))
	if clean == string(data) {
		c.cover(f)
		return
	}
	c.seen[p] = true
	c.copies++
	content := fmt.Sprintf("%s/config-%d", inner.Own, c.copies)
	c.layout.step(inner.Step{Kind: inner.StepFile, Path: content, Data: clean})
	c.layout.step(inner.Step{Kind: inner.StepCover, Path: p, Source: content, Attr: sealed, Dev: f.dev, Ino: f.ino})
}

// repository protects the files of a git repository that determine which programs git runs. The
// command can still commit.
func (c *covers) repository(dir string) {
	f, err := inspect(dir, gitDir)
	if err != nil || !f.dir || c.seen[dir] {
		return
	}
	c.pin(dir) // pin the directory, so that the command cannot put another repository at this path
	c.config(filepath.Join(dir, "config"))
	c.config(filepath.Join(dir, "config.worktree"))
	for _, name := range []string{"hooks", "commondir", "info/attributes", "info/grafts", "objects/info/alternates", "gitdir"} {
		c.protect(filepath.Join(dir, name))
	}
	trees, _ := filepath.Glob(filepath.Join(dir, "worktrees", "*"))
	for _, tree := range trees {
		for _, name := range []string{"commondir", "gitdir", "config.worktree"} {
			c.protect(filepath.Join(tree, name))
		}
	}
	// The command must not create these paths, because git would trust them later. When the user sets
	// up a submodule, git uses a repository below modules. When the user continues a rebase, git runs
	// commands from rebase-merge and rebase-apply.
	for _, name := range []string{"modules", "rebase-merge", "rebase-apply"} {
		if p := filepath.Join(dir, name); !exists(p) {
			c.absent = append(c.absent, p)
		}
	}
	c.protect(filepath.Join(dir, "rebase-merge/git-rebase-todo"))
	c.modules(filepath.Join(dir, "modules"), 0)
}

func exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}

// modules protects the repositories of submodules. These repositories may lie in nested directories.
func (c *covers) modules(dir string, depth int) {
	entries, err := os.ReadDir(dir)
	if err != nil || depth > 8 {
		return
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if _, err := os.Lstat(filepath.Join(at, "HEAD")); err == nil {
			c.repository(at)
		} else if e.IsDir() {
			c.modules(at, depth+1)
		}
	}
}

// linked describes the repository of a linked git work tree. The repository is outside the project.
type linked struct{ own, common string }

// linkedRepository returns the repository of a linked work tree. The file .git of the work tree names it.
func linkedRepository(file string) (linked, bool) {
	data, err := os.ReadFile(file)
	own, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if err != nil || !ok {
		return linked{}, false
	}
	if !filepath.IsAbs(own) {
		own = filepath.Join(filepath.Dir(file), own)
	}
	own, err = realPath(own)
	if err != nil {
		return linked{}, false
	}
	data, err = os.ReadFile(filepath.Join(own, "commondir"))
	if err != nil {
		return linked{}, false
	}
	common := strings.TrimSpace(string(data))
	if !filepath.IsAbs(common) {
		common = filepath.Join(own, common)
	}
	if common, err = realPath(common); err != nil || filepath.Dir(filepath.Dir(own)) != common {
		return linked{}, false
	}
	back, err := os.ReadFile(filepath.Join(own, "gitdir")) // the repository must name this work tree, because the project could otherwise name another project's repository
	if err != nil || filepath.Clean(strings.TrimSpace(string(back))) != file {
		return linked{}, false
	}
	return linked{own, common}, true
}

// show makes the repository of a linked work tree visible. The command can commit to the
// repository, but cannot change the repository's settings, its hooks or its other work trees.
func (r linked) show(l *layout, readOnly bool) error {
	if err := l.show(r.common, sealed); err != nil || readOnly {
		return err
	}
	for _, dir := range []string{filepath.Join(r.common, "objects"), filepath.Join(r.common, "refs"), filepath.Join(r.common, "logs"), r.own} {
		f, err := inspect(dir, plain)
		if err == nil && f.dir {
			l.step(inner.Step{Kind: inner.StepBind, Source: dir, Path: dir, Attr: harmless, Dev: f.dev, Ino: f.ino})
		}
	}
	return nil
}

func (c *covers) linkedRepository(r linked) {
	c.config(filepath.Join(r.common, "config"))
	c.config(filepath.Join(r.own, "config.worktree"))
	for _, name := range []string{"commondir", "gitdir"} {
		c.protect(filepath.Join(r.own, name))
	}
	c.protect(filepath.Join(r.common, "objects/info/alternates"))
}

// configuredPaths returns the paths in the project that git's settings name: hooks, included files and
// programs. It reads the settings of the repository, the user and the machine.
func configuredPaths(top, repository, home string) []string {
	g := gitNames{top: top, home: home, seen: map[string]bool{}}
	files := []string{filepath.Join(repository, "config"), filepath.Join(repository, "config.worktree"), "/etc/gitconfig"}
	if g.home != "" {
		files = append(files, filepath.Join(g.home, ".gitconfig"), filepath.Join(g.home, ".config/git/config"))
	}
	for _, f := range files {
		g.readConfig(f)
	}
	slices.Sort(g.paths)
	var all []string
	for _, p := range slices.Compact(g.paths) {
		if real, err := realPath(p); err == nil {
			p = real
		}
		if p != top && within(p, top) && !within(p, repository) {
			all = append(all, p)
		}
	}
	return all
}

func realPath(p string) (string, error) { return filepath.EvalSymlinks(p) }

// bareRepository protects a git repository that has no work tree.
func (c *covers) bareRepository(dir string) {
	if !bareRepositoryAt(dir) {
		return
	}
	for _, name := range []string{"config", "hooks"} {
		c.protect(filepath.Join(dir, name))
	}
}
