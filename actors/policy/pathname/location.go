// Package pathname compares paths by their names alone: it resolves them at the place of a
// call, and matches them with lists of names and patterns. It looks at no file, so it follows
// no symbolic link.
package pathname

import (
	"path"
	"slices"
	"strings"
)

// Location is the place of a call: its directories, project and home, which give
// relative paths and ~ a meaning.
type Location struct {
	Dirs          []string // directories that the command may run in, clean; empty if unknown
	Project       string   // clean; "" if unknown
	Main          string   // the project of which Project is a work tree; otherwise Project
	Home          string   // clean; "" if unknown
	LeadsToSecret bool     // the path of a secret may begin in Dirs, as .config/gh begins in ~/.config
}

// Locate returns the location of a call in cwd. An empty project is taken to be cwd.
func Locate(cwd, project, home string) Location {
	p := Location{Project: Clean(project), Home: Clean(home)}
	if cwd := Clean(cwd); cwd != "" {
		p.Dirs = []string{cwd}
		if p.Project == "" {
			p.Project = cwd
		}
	}
	p.Main = MainTree(p.Project)
	return p
}

// worktreeDirs are the directories in which tools keep further work trees of a project:
// inside it, or next to it under its name.
var worktreeDirs = []string{"/.claude/worktrees/", "/.worktrees/", "__worktrees/", ".worktrees/"}

// MainTree returns the project of which dir is a work tree, judged by its name; dir
// itself if it is not a work tree.
func MainTree(dir string) string {
	for _, w := range worktreeDirs {
		if i := strings.Index(dir, w); i > 0 && dir[i-1] != '/' {
			return dir[:i]
		}
	}
	return dir
}

// InTree reports whether the clean path p lies in the project or in a work tree of it.
func (loc *Location) InTree(p string) bool {
	return Within(p, loc.Project) || Within(MainTree(p), loc.Main)
}

// Relative returns the clean path p without the leading path of the project, or of the work
// tree in the project that holds p. If p lies elsewhere, it returns p.
func (loc *Location) Relative(p string) string {
	if !Within(p, loc.Project) {
		return p
	}
	p = p[len(loc.Project):]
	for _, w := range worktreeDirs {
		if rest, ok := strings.CutPrefix(p, w); ok {
			name, _, _ := strings.Cut(rest, "/")
			return rest[len(name):]
		}
	}
	return p
}

// Slashes returns p with slashes for backslashes and a lower-case drive letter: D:\x becomes
// d:/x.
func Slashes(p string) string {
	if strings.IndexByte(p, '\\') >= 0 {
		p = strings.ReplaceAll(p, `\`, "/")
	}
	if len(p) >= 2 && p[1] == ':' && isAlnum(p[0]) && (len(p) == 2 || p[2] == '/') {
		p = strings.ToLower(p[:1]) + p[1:]
	}
	return p
}

// IsAbs reports whether p, with slashes, is absolute, also as a Windows path.
func IsAbs(p string) bool {
	return strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' && p[2] == '/' && isAlnum(p[0])
}

// Clean returns the absolute path p in its shortest form, with slashes; "" if p is not
// absolute.
func Clean(p string) string {
	p = Slashes(p)
	if !IsAbs(p) {
		return ""
	}
	return path.Clean(p)
}

// Resolve returns the full paths that p may stand for: one for each of Dirs if p is relative.
// It returns none if Dirs, or Home for ~, is unknown.
func (loc *Location) Resolve(p string) []string {
	p = Slashes(p)
	switch {
	case p == "~" || strings.HasPrefix(p, "~/"):
		if loc.Home == "" {
			return nil
		}
		return []string{path.Join(loc.Home, p[1:])}
	case IsAbs(p):
		p = path.Clean(p)
		if len(loc.Project) > 1 && loc.Project[1] == ':' && len(p) > 2 && p[2] == '/' && p[0] == '/' {
			p = strings.ToLower(p[1:2]) + ":" + p[2:] // Git Bash writes d:/x as /d/x
		}
		return []string{p}
	}
	out := make([]string, 0, len(loc.Dirs))
	for _, d := range loc.Dirs {
		out = append(out, path.Join(d, p))
	}
	return out
}

// Within reports whether p is dir or below it: /src holds /src/x, not /srcfoo.
func Within(p, dir string) bool {
	if dir == "" || !strings.HasPrefix(p, dir) {
		return false
	}
	return len(p) == len(dir) || p[len(dir)] == '/' || strings.HasSuffix(dir, "/")
}

// InProject reports whether p certainly stands for a path of the project.
func (loc *Location) InProject(p string) bool {
	all := loc.Resolve(p)
	for _, r := range all {
		if !Within(r, loc.Project) {
			return false
		}
	}
	return len(all) > 0 && loc.Project != ""
}

// StandsInProject reports whether the command certainly runs in the project.
func (loc *Location) StandsInProject() bool {
	for _, d := range loc.Dirs {
		if !loc.InTree(d) {
			return false
		}
	}
	return true // an unknown directory is the one that the agent started in
}

// StandsAtTop reports whether the command certainly runs at the top of the project or
// of a work tree of it, and not in a directory below.
func (loc *Location) StandsAtTop() bool {
	return !slices.ContainsFunc(loc.Dirs, func(d string) bool {
		return d != loc.Project && d != loc.Main && !slices.ContainsFunc(worktreeDirs, func(w string) bool {
			name, ok := strings.CutPrefix(d, loc.Main+w)
			return ok && name != "" && !strings.Contains(name, "/")
		})
	})
}

// AboveHome reports whether p may be the home directory or hold it: a search of p would read
// every secret in it.
func (loc *Location) AboveHome(p string) bool {
	p = Slashes(p)
	if p == "~" || p == "~/" || strings.HasPrefix(p, "~/.") && strings.Trim(p[2:], "./") == "" {
		return true
	}
	all := loc.Resolve(p)
	if len(all) == 0 {
		return IsAbs(p) || strings.HasPrefix(p, "..")
	}
	for _, r := range all {
		if loc.HoldsHome(r) || r != loc.Project && !strings.Contains(strings.Trim(r, "/"), "/") {
			return true
		}
	}
	return false
}

// HoldsHome reports whether the clean path p is a home directory or holds one. A home
// directory is the user's own, or one that its name shows, such as /home/ann.
func (loc *Location) HoldsHome(p string) bool {
	if loc.Home != "" && Within(loc.Home, p) {
		return true
	}
	parts := strings.Split(strings.Trim(strings.ToLower(p), "/"), "/")
	switch {
	case parts[0] == "mnt" && len(parts) > 1 && len(parts[1]) == 1: // a drive of Windows, in WSL
		parts = parts[2:]
	case parts[0] == "mnt", len(parts[0]) == 2 && parts[0][1] == ':': // a drive letter
		parts = parts[1:]
	}
	return len(parts) == 0 || len(parts) == 1 && slices.Contains([]string{"", "home", "users", "root"}, parts[0]) || len(parts) == 2 && (parts[0] == "home" || parts[0] == "users")
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
