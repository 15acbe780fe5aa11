package contain

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nodbus/nod/connectors/agents/contain/inner"
)

// The inner process's own files: what the command finds in place of a secret.
const (
	emptyFile = inner.Own + "/empty"
	emptyDir  = inner.Own + "/empty-dir"
)

const sealed = harmless | inner.ReadOnly

// covers hides and protects what the scans found.
type covers struct {
	layout *layout
	seen   map[string]bool
	copies int
	absent []string // protected paths that do not exist; the command must not make them
}

func (c *covers) begin() {
	c.layout.step(inner.Step{Kind: inner.StepFile, Path: emptyFile})
	c.layout.step(inner.Step{Kind: inner.StepDir, Path: emptyDir, Attr: 0o555})
}

// cover hides or protects one finding. Findings that were covered before are skipped.
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

// protect protects a path of a writable directory. If the path does not exist, the command must
// not make it.
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

// config shows a git configuration file without logins, and protects it.
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

// repository protects the parts of a repository that decide which programs git runs. The
// command can still commit.
func (c *covers) repository(dir string) {
	f, err := inspect(dir, gitDir)
	if err != nil || !f.dir || c.seen[dir] {
		return
	}
	c.seen[dir] = true
	// A mount of its own cannot be renamed, so the command cannot put another repository there.
	c.layout.step(inner.Step{Kind: inner.StepCover, Path: dir, Source: dir, Attr: harmless, Dev: f.dev, Ino: f.ino})
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
	// Git would obey a repository in modules when a submodule is set up, and the commands in the
	// list of a rebase when it goes on.
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

// modules protects the repositories of submodules, which may lie in nested directories.
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

// linked is the repository of a linked work tree, outside of the project.
type linked struct{ own, common string }

// linkedRepository returns the repository to which the file .git of a work tree leads.
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
	back, err := os.ReadFile(filepath.Join(own, "gitdir")) // a project must not name another project's repository
	if err != nil || filepath.Clean(strings.TrimSpace(string(back))) != file {
		return linked{}, false
	}
	return linked{own, common}, true
}

// show makes the linked repository usable: the command can commit to it, and cannot change its
// settings, its hooks and the other work trees.
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

// configuredPaths returns the paths of a project to which its repository's and the user's git
// settings lead: hooks, included files and programs.
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

// realPath returns the path without symbolic links.
func realPath(p string) (string, error) { return filepath.EvalSymlinks(p) }

// bareRepository protects a repository without a work tree.
func (c *covers) bareRepository(dir string) {
	if !bareRepositoryAt(dir) {
		return
	}
	for _, name := range []string{"config", "hooks"} {
		c.protect(filepath.Join(dir, name))
	}
}
