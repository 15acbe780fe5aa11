package policy

import (
	"path"
	"slices"
	"strings"
)

// location is the place of a call: its directories, project and home, which give
// relative paths and ~ a meaning. It is computed from names alone; symbolic links are
// not followed.
type location struct {
	dirs          []string // directories that the command may run in, clean; empty if unknown
	project       string   // clean; "" if unknown
	main          string   // the project of which project is a work tree; otherwise project
	home          string   // clean; "" if unknown
	leadsToSecret bool     // dirs may begin the path of a secret, as ~/.config begins .config/gh
}

func newLocation(c *Call) location {
	p := location{project: cleanAbs(c.Project), home: cleanAbs(c.Home)}
	if cwd := cleanAbs(c.Cwd); cwd != "" {
		p.dirs = []string{cwd}
		if p.project == "" {
			p.project = cwd
		}
	}
	p.main = mainTree(p.project)
	return p
}

// worktreeDirs are the directories in which tools keep further work trees of a project:
// inside it, or next to it under its name.
var worktreeDirs = []string{"/.claude/worktrees/", "/.worktrees/", "__worktrees/", ".worktrees/"}

// mainTree returns the project of which dir is a work tree, judged by its name; dir
// itself if it is not a work tree.
func mainTree(dir string) string {
	for _, w := range worktreeDirs {
		if i := strings.Index(dir, w); i > 0 && dir[i-1] != '/' {
			return dir[:i]
		}
	}
	return dir
}

// inTree reports whether the clean path p lies in the project or in a work tree of it.
func (loc *location) inTree(p string) bool {
	return within(p, loc.project) || within(mainTree(p), loc.main)
}

// relative returns the clean path p without the project, or without the work tree in
// the project, that holds p; p itself if it lies elsewhere.
func (loc *location) relative(p string) string {
	if !within(p, loc.project) {
		return p
	}
	p = p[len(loc.project):]
	for _, w := range worktreeDirs {
		if rest, ok := strings.CutPrefix(p, w); ok {
			name, _, _ := strings.Cut(rest, "/")
			return rest[len(name):]
		}
	}
	return p
}

// slashes writes a Windows path with slashes, D:\x and /d/x as d:/x.
func slashes(p string) string {
	if strings.IndexByte(p, '\\') >= 0 {
		p = strings.ReplaceAll(p, `\`, "/")
	}
	if len(p) >= 2 && p[1] == ':' && isAlnum(p[0]) && (len(p) == 2 || p[2] == '/') {
		p = strings.ToLower(p[:1]) + p[1:]
	}
	return p
}

func isAbs(p string) bool {
	return strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' && p[2] == '/' && isAlnum(p[0])
}

func cleanAbs(p string) string {
	p = slashes(p)
	if !isAbs(p) {
		return ""
	}
	return path.Clean(p)
}

// resolve returns every path that p may stand for; none if they are unknown.
func (loc *location) resolve(p string) []string {
	p = slashes(p)
	switch {
	case p == "~" || strings.HasPrefix(p, "~/"):
		if loc.home == "" {
			return nil
		}
		return []string{path.Join(loc.home, p[1:])}
	case isAbs(p):
		p = path.Clean(p)
		if len(loc.project) > 1 && loc.project[1] == ':' && len(p) > 2 && p[2] == '/' && p[0] == '/' {
			p = strings.ToLower(p[1:2]) + ":" + p[2:] // Git Bash writes d:/x as /d/x
		}
		return []string{p}
	}
	out := make([]string, 0, len(loc.dirs))
	for _, d := range loc.dirs {
		out = append(out, path.Join(d, p))
	}
	return out
}

// within reports whether p is dir or below it: /src holds /src/x, not /srcfoo.
func within(p, dir string) bool {
	if dir == "" || !strings.HasPrefix(p, dir) {
		return false
	}
	return len(p) == len(dir) || p[len(dir)] == '/' || strings.HasSuffix(dir, "/")
}

// inProject reports whether p certainly stands for a path of the project.
func (loc *location) inProject(p string) bool {
	all := loc.resolve(p)
	for _, r := range all {
		if !within(r, loc.project) {
			return false
		}
	}
	return len(all) > 0 && loc.project != ""
}

// standsInProject reports whether the command certainly runs in the project.
func (loc *location) standsInProject() bool {
	for _, d := range loc.dirs {
		if !loc.inTree(d) {
			return false
		}
	}
	return true // an unknown directory is the one that the agent started in
}

// standsAtTop reports whether the command certainly runs at the top of the project or
// of a work tree of it, and not in a directory below.
func (loc *location) standsAtTop() bool {
	return !slices.ContainsFunc(loc.dirs, func(d string) bool {
		return d != loc.project && d != loc.main && !slices.ContainsFunc(worktreeDirs, func(w string) bool {
			name, ok := strings.CutPrefix(d, loc.main+w)
			return ok && name != "" && !strings.Contains(name, "/")
		})
	})
}

// aboveHome reports whether p may be the home directory or hold it: a search of such a
// tree reads every secret in it.
func (loc *location) aboveHome(p string) bool {
	p = slashes(p)
	if p == "~" || p == "~/" || strings.HasPrefix(p, "~/.") && strings.Trim(p[2:], "./") == "" {
		return true
	}
	all := loc.resolve(p)
	if len(all) == 0 {
		return isAbs(p) || strings.HasPrefix(p, "..")
	}
	for _, r := range all {
		if loc.holdsHome(r) || r != loc.project && !strings.Contains(strings.Trim(r, "/"), "/") {
			return true
		}
	}
	return false
}

// holdsHome reports whether the clean path p is a home directory or holds one: the
// user's own, or one by its name, such as /home/ann.
func (loc *location) holdsHome(p string) bool {
	if loc.home != "" && within(loc.home, p) {
		return true
	}
	parts := strings.Split(strings.Trim(strings.ToLower(p), "/"), "/")
	if len(parts[0]) == 2 && parts[0][1] == ':' || parts[0] == "mnt" {
		parts = parts[1:] // a drive letter
	}
	return len(parts) == 0 || len(parts) == 1 && slices.Contains([]string{"", "home", "users", "root"}, parts[0]) || len(parts) == 2 && (parts[0] == "home" || parts[0] == "users")
}
