package contained

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/connectors/agents/readable"
)

// buildOutput are names of directories at the top of a project. Tools can make their content again.
var buildOutput = map[string]bool{
	"build": true, "dist": true, "out": true, "target": true, "node_modules": true, "coverage": true, "htmlcov": true, ".next": true, ".nuxt": true,
	".turbo": true, ".parcel-cache": true, "__pycache__": true, ".pytest_cache": true, ".mypy_cache": true, ".ruff_cache": true, ".tox": true, ".nox": true,
	".build": true, "DerivedData": true, ".eggs": true, ".nyc_output": true, ".coverage": true, "coverage.out": true, ".svelte-kit": true, ".angular": true,
}

// private reports whether a clean path is in /tmp or /var/tmp. Each contained process has its own /tmp
// and /var/tmp.
func private(p string) bool {
	return p == "/tmp" || strings.HasPrefix(p, "/tmp/") || strings.HasPrefix(p, "/var/tmp/")
}

// inPrivate reports whether a clean path is below /tmp or in /var/tmp. A path in the project or
// above the project does not count.
func inPrivate(s *shell.Script, p string) bool {
	return private(p) && p != "/tmp" && !pathname.Within(p, s.Project) && !pathname.Within(s.Project, p)
}

// throwaway reports whether a clean path is in build output at the project's top, or is build
// output itself.
func throwaway(s *shell.Script, p string) bool {
	if !pathname.Within(p, s.Project) {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(p[len(s.Project):], "/"), "/")
	return buildOutput[first] || strings.HasSuffix(first, ".egg-info") || strings.HasPrefix(first, "cmake-build-")
}

// resolve returns the full paths that a word may mean, or nil if one of these paths is unknown. For
// a word with a pattern it returns the directory above the pattern.
func (c *command) resolve(t shell.Term) []string {
	text := t.Text
	if !t.Known || text == "" {
		return nil
	}
	if at := strings.IndexAny(text, "*?["); t.Glob && at >= 0 {
		if text = text[:strings.LastIndexByte(text[:at], '/')+1]; text == "" {
			text = "."
		}
		if strings.Contains(t.Text[at:], "..") {
			return nil
		}
	}
	if strings.HasPrefix(text, "~") && !t.Tilde {
		text = "./" + text
	}
	loc := c.script.Location
	loc.Dirs = c.Dirs
	return loc.Resolve(text)
}

// device reports whether a path is a device that every process may use.
func device(p string) bool {
	switch p {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/urandom", "/dev/random":
		return true
	}
	return strings.HasPrefix(p, "/dev/fd/") && strings.Trim(p[8:], "0123456789") == ""
}

// secretIn returns the part of a word that may name a secret, or "".
func (c *command) secretIn(t shell.Term) string {
	loc := c.script.Location
	loc.Dirs = c.Dirs
	loc.LeadsToSecret = c.names.MayLeadFrom(&loc)
	for _, text := range []string{t.Text, t.Before()} {
		for _, piece := range pathname.Pieces(text) {
			if piece == "" || device(piece) || secrets.SourceGlob(piece) || strings.Trim(piece, "*?./") == "" {
				continue
			}
			if strings.Contains(piece, " ") {
				piece = noBrackets.Replace(piece) // code has spaces, and its brackets are not a file name pattern
			}
			if c.names.MayBeListed(piece, &loc, false) {
				return piece
			}
		}
	}
	return ""
}

var noBrackets = strings.NewReplacer("[", "_", "]", "_")

// outside returns the directories outside the project that every contained process may read. In a
// returned path, ~ means the home directory.
var outside = sync.OnceValue(func() []string {
	dirs := append(readable.System(), readable.ContainedSystem()...)
	for _, dir := range append(readable.Toolchains(), readable.Caches()...) {
		dirs = append(dirs, "~/"+dir)
	}
	return dirs
})

// Public returns directories that have no files of the user: those of the system, of toolchains,
// and of their caches. An empty home means that the home directory is unknown.
func Public(home string) []string {
	dirs := readable.System()
	if home == "" {
		return dirs
	}
	for _, dir := range append(readable.Toolchains(), readable.Caches()...) {
		dirs = append(dirs, path.Join(home, dir))
	}
	return dirs
}

func (c *command) readable(p string) bool {
	if pathname.Within(p, c.script.Project) || private(p) || device(p) {
		return true
	}
	return slices.ContainsFunc(outside(), func(place string) bool {
		if rest, ok := strings.CutPrefix(place, "~"); ok {
			return c.script.Home != "" && pathname.Within(p, c.script.Home+rest)
		}
		return pathname.Within(p, place)
	})
}

// readsOutside adds the permission to read a path outside the project, unless every contained
// process may read this path.
func (c *command) readsOutside(t shell.Term) {
	for _, piece := range append([]string{t.Text}, flagValue(t.Text)...) {
		slashed := pathname.Slashes(piece)
		if !t.Known || !pathname.IsAbs(slashed) && !(t.Tilde && piece == t.Text) && !strings.Contains("/"+slashed+"/", "/../") || strings.ContainsAny(piece, " \n|;") || strings.Contains(piece, "://") || strings.HasPrefix(piece, "//") {
			continue
		}
		part := t
		part.Text = piece
		// After a cd, a relative path may mean several files. If one of the files is readable, no
		// permission is added. The command then fails if it reads an unreadable file.
		if all := c.resolve(part); len(all) > 0 && !slices.ContainsFunc(all, c.readable) {
			c.need(c.Words, "@read:"+all[0])
		}
	}
}

func flagValue(text string) []string {
	if _, value, ok := strings.Cut(text, "="); ok && value != "" {
		return []string{value}
	}
	return nil
}

// programPath checks the path of a program. A program in the project counts as the project's code.
func (c *command) programPath(name shell.Term) {
	if !strings.ContainsAny(name.Text, `/\`) {
		return
	}
	all := c.resolve(name)
	if len(all) == 0 {
		c.refuse("is at a path that is not known")
	}
	for _, p := range all {
		c.readsCode(p)
	}
}

// writes checks a file that a command writes. If the argument over is true, the file's earlier content
// is lost.
func (c *command) writes(t shell.Term, over bool) {
	if t.Known && device(t.Text) {
		return
	}
	if w := c.secretIn(t); w != "" {
		c.refuse("writes a secret or settings, " + w)
		return
	}
	all := c.resolve(t)
	if len(all) == 0 || t.Glob {
		c.refuse("writes a file whose path is not known")
		return
	}
	for _, p := range all {
		c.writesPath(p, over)
	}
}

func (c *command) writesPath(p string, over bool) {
	switch {
	case inPrivate(c.script, p), throwaway(c.script, p):
	case pathname.Within(p, c.script.Project):
		if rel := strings.TrimPrefix(p[len(c.script.Project):], "/"); pathname.NeverRemembered.Has(rel, true) || c.protected.Has(rel) {
			c.refuse("writes " + path.Base(p) + ", which may decide what programs run")
		}
		if over {
			c.refuse("may overwrite " + p[len(c.script.Project):])
		}
	default:
		if c.script.HoldsHome(p) {
			c.refuse("writes to a home directory itself")
			return
		}
		c.need(c.Words, "@write:"+path.Dir(p))
	}
}

func (c *command) redirect(r shell.Redirect) {
	if len(c.Words) > 0 && c.Words[0].Known {
		c.name = c.Words[0].Text
	} else {
		c.name = "the line"
	}
	switch r.Kind {
	case shell.Truncates:
		c.writes(r.File, true)
		c.stores(r.File)
	case shell.Appends:
		c.writes(r.File, false)
		c.stores(r.File)
	case shell.ReadsFile:
		if w := c.secretIn(r.File); w != "" {
			c.refuse("reads a secret or settings, " + w)
		}
		c.readsOutside(r.File)
	}
}
