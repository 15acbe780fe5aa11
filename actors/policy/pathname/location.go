// Package pathname compares paths only by their names. It resolves paths relative to the
// directories of a call, and matches paths with lists of names and patterns. It reads no files. It
// knows symbolic links only from the facts in a Location.
package pathname

import (
	"path"
	"slices"
	"strings"
)

// Location describes the directories in which a call runs, and to which its relative paths and ~ refer.
// The paths in Dirs, Project, Main, Tops, Exposed, Unsearched and Home are in the form of Clean.
type Location struct {
	Dirs          []string            // the directories in which the command may run; empty if unknown
	Project       string              // the project's root, in the form of Clean; "" if unknown
	Main          string              // the project whose work tree Project is, or Project itself if it is not a work tree
	Tops          []string            // the tops of the project and of its work trees; nil if unknown
	Exposed       []string            // files with secrets that a search of their directory would show
	Unsearched    []string            // directories with too many names for nod to find all files that belong in Exposed
	Searched      []Search            // the searches for which Exposed and Unsearched are complete; nil means all searches
	Links         map[string][]string // the clean paths to which paths lead through symbolic links, by full path; without paths that lead to themselves
	Looked        *Looks              // if not nil, it collects the places at which Follow and ExposedBelow look
	Tracked       map[string]Tracked  // the secrets that the repositories of directories track; nil means unknown
	Remotes       map[string]Remotes  // the remotes of the repository of each directory; if a directory is missing, its remotes are unknown
	LookedIn      *[]string           // if not nil, it collects the directories with which TrackedAt is called
	Changeable    bool                // nod may change the line before it runs
	Home          string              // the home directory, in the form of Clean; "" if unknown
	Lost          bool                // the command may run in any directory
	NamesOnly     bool                // the command prints only names, so it shows no secrets in hidden files outside the project
	LeadsToSecret bool                // a directory in Dirs is outside the project or on the way to a secret, as ~/.config is on the way to ~/.config/gh
}

// Locate returns the location of a call with the working directory cwd. If project is empty, cwd
// counts as the project. If only cwd is empty, the call may run in any directory, because an
// agent's shell can leave the project.
func Locate(cwd, project, home string) Location {
	p := Location{Project: Clean(project), Home: Clean(home)}
	if cwd := Clean(cwd); cwd != "" {
		p.Dirs = []string{cwd}
		if p.Project == "" {
			p.Project = cwd
		}
	}
	p.Lost = len(p.Dirs) == 0 && p.Project != ""
	p.Main = MainTree(p.Project)
	return p
}

// SetTops sets the tops of the project and of its work trees; if the argument is nil, they stay unknown.
func (loc *Location) SetTops(dirs []string) {
	if dirs == nil {
		return
	}
	loc.Tops = make([]string, len(dirs))
	for i, d := range dirs {
		loc.Tops[i] = Clean(d)
	}
}

// worktreeDirs are the directories in which tools make work trees of a project. They are below the
// project, or beside the project with its name in front.
var worktreeDirs = []string{"/.claude/worktrees/", "/.worktrees/", "__worktrees/", ".worktrees/"}

// MainTree returns the project to which the work tree dir belongs, or dir itself if dir is not a
// work tree. It decides by the path alone.
func MainTree(dir string) string {
	for _, w := range worktreeDirs {
		if i := strings.Index(dir, w); i > 0 && dir[i-1] != '/' {
			return dir[:i]
		}
	}
	return dir
}

// WorkTree returns the top of the work tree that contains the clean path p, or "" if there is none.
// It decides by the path alone.
func WorkTree(p string) string {
	main := MainTree(p)
	for _, w := range worktreeDirs {
		if rest, ok := strings.CutPrefix(p, main+w); ok && main != p {
			name, _, _ := strings.Cut(rest, "/")
			return main + w + name
		}
	}
	return ""
}

// InTree reports whether the clean path p is in the project or in one of its work trees.
func (loc *Location) InTree(p string) bool {
	return Within(p, loc.Project) || Within(MainTree(p), loc.Main) || slices.ContainsFunc(loc.Tops, func(top string) bool { return Within(p, top) })
}

// Relative returns the clean path p relative to the project. In a work tree below the project, it
// returns p relative to the work tree. A path outside the project stays unchanged.
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

// Slashes replaces the backslashes in p by slashes, and makes a drive letter lower case. For
// example, D:\x becomes d:/x.
func Slashes(p string) string {
	if strings.IndexByte(p, '\\') >= 0 {
		p = strings.ReplaceAll(p, `\`, "/")
	}
	if len(p) >= 2 && p[1] == ':' && isAlnum(p[0]) && (len(p) == 2 || p[2] == '/') {
		p = strings.ToLower(p[:1]) + p[1:]
	}
	return p
}

// IsAbs reports whether p is an absolute path of Unix or Windows. The path must contain no backslashes.
func IsAbs(p string) bool {
	return strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' && p[2] == '/' && isAlnum(p[0])
}

// Clean returns the shortest form of the absolute path p, with slashes. If p is not absolute, it
// returns "".
func Clean(p string) string {
	p = Slashes(p)
	if !IsAbs(p) {
		return ""
	}
	return path.Clean(p)
}

// Resolve returns the full paths that p may mean. These are the results of Spelled, and the known
// places to which symbolic links lead p.
func (loc *Location) Resolve(p string) []string {
	all := loc.Spelled(p)
	for _, at := range loc.Follow(p) {
		if !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// Spelled returns the full paths that p may mean if p contains no symbolic links. A relative p
// means one path for each of Dirs. A p with a leading ~ means no path if Home is unknown.
func (loc *Location) Spelled(p string) []string {
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

// Within reports whether p is the directory dir or a path below it. For example, /src/x is within
// /src, and /srcfoo is not.
func Within(p, dir string) bool {
	if dir == "" || !strings.HasPrefix(p, dir) {
		return false
	}
	return len(p) == len(dir) || p[len(dir)] == '/' || strings.HasSuffix(dir, "/")
}

// InProject reports whether p is certainly in the project.
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
	return !loc.Lost // a call without directory and project runs in the directory where the agent started, which counts as the project
}

// StandsAtTop reports whether the command certainly runs in the top directory of the project or
// of one of its work trees.
func (loc *Location) StandsAtTop() bool {
	return !loc.Lost && !slices.ContainsFunc(loc.Dirs, func(d string) bool {
		if loc.Tops != nil {
			return !slices.Contains(loc.Tops, d)
		}
		return d != loc.Project && d != loc.Main && !slices.ContainsFunc(worktreeDirs, func(w string) bool {
			name, ok := strings.CutPrefix(d, loc.Main+w)
			return ok && name != "" && !strings.Contains(name, "/")
		})
	})
}

// AboveHome reports whether p may be the home directory or a directory above it. A search of
// such a directory reads every secret in the home directory.
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

// HoldsHome reports whether the clean path p is a home directory or contains one. A home directory
// is loc.Home, or a directory with a typical name, such as /home/ann.
func (loc *Location) HoldsHome(p string) bool {
	if loc.Home != "" && Within(loc.Home, p) {
		return true
	}
	parts := strings.Split(strings.Trim(strings.ToLower(p), "/"), "/")
	switch {
	case parts[0] == "mnt" && len(parts) > 1 && len(parts[1]) == 1: // a Windows drive in WSL, such as /mnt/c
		parts = parts[2:]
	case parts[0] == "mnt", len(parts[0]) == 2 && parts[0][1] == ':': // /mnt itself, or a path with a drive letter
		parts = parts[1:]
	}
	return len(parts) == 0 || len(parts) == 1 && slices.Contains([]string{"", "home", "users", "root"}, parts[0]) || len(parts) == 2 && (parts[0] == "home" || parts[0] == "users")
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
