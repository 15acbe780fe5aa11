package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// maxLeftOut is the largest number of files that Harden excludes from a git command.
const maxLeftOut = 64

// showsTracked returns the reason to ask about a git command that may print tracked secrets although
// it does not name them, or "". If the caller can change the line, and git can exclude the files,
// showsTracked instead notes the files for Harden. The argument words has the words after git.
func (line *Line) showsTracked(name string, a *commands.Args, words []word.Word, here *pathname.Location) string {
	shown, limited := a.Shows(name)
	objects := a.Objects()
	if shown == commands.ShowsNone && len(objects) == 0 {
		return ""
	}
	limited = limited && !slices.ContainsFunc(words, func(w word.Word) bool { return w.Text == "--literal-pathspecs" })
	if len(here.Dirs) == 0 && here.Tracked != nil {
		return "prints files of a repository in a directory that nod does not know"
	}
	var leaveOut []string
	for _, dir := range here.Dirs {
		t, known := here.TrackedAt(dir)
		if !known {
			continue
		}
		if slices.ContainsFunc(objects, func(name string) bool { return t.Named(name) }) {
			return "may print the content of a file with secrets by its name in git, " + strings.Join(objects, " ")
		}
		switch {
		case t.UnreadIndex != "":
			return "may print secrets that git tracks: " + t.UnreadIndex
		case t.Unread != "" && (shown == commands.ShowsHistory || name == "cat-file" && len(objects) > 0):
			return "may print secrets that git tracks: " + t.Unread
		}
		for _, f := range t.Files {
			switch {
			case shown == commands.ShowsNone, shown == commands.ShowsChanged && !f.Changed, shown == commands.ShowsTracked && !f.Indexed:
			case limited && !mayInclude(a, t.Top, t.Dir, f.Path):
			case !slices.Contains(leaveOut, f.Path):
				leaveOut = append(leaveOut, f.Path)
			}
		}
	}
	if len(leaveOut) == 0 {
		return ""
	}
	if limited && here.Changeable && len(leaveOut) <= maxLeftOut && !slices.ContainsFunc(leaveOut, func(p string) bool { return !commands.PlainPath(p) }) {
		line.leaveOut(words, leaveOut)
		return ""
	}
	why := "may print " + leaveOut[0] + ", a file with secrets that git tracks or tracked"
	if limited {
		why += ": leave it out by adding " + pathspec(leaveOut[0])
	}
	return why
}

// pathspec returns a word that makes git exclude a file.
func pathspec(file string) string { return "':(top,exclude,literal)" + file + "'" }

func (line *Line) leaveOut(words []word.Word, files []string) {
	if line.leftOut == nil {
		line.leftOut = map[string][]string{}
	}
	line.leftOut[joinTexts(words)] = files
}

func joinTexts(words []word.Word) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(w.Text)
		b.WriteByte(0)
	}
	return b.String()
}

// LeftOut returns the files that Harden excludes from the output of the line's git commands.
// Without this change, the line would not be harmless.
func (line *Line) LeftOut() (files []string) {
	for _, some := range line.leftOut {
		for _, f := range some {
			if !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	slices.Sort(files)
	return files
}

// mayInclude reports whether the pathspecs of a git command in dir may include a file. The file's
// path is relative to the top of the work tree. In doubt mayInclude returns true.
func mayInclude(a *commands.Args, top, dir, file string) bool {
	full := path.Join(top, file)
	if slices.ContainsFunc(a.Paths(), func(w word.Word) bool {
		out, fromTop := commands.Excluded(w.Text)
		return out != "" && pathname.Within(full, path.Join(map[bool]string{true: top, false: dir}[fromTop], out))
	}) {
		return false
	}
	limits := false
	for _, w := range a.Pathspecs() {
		t := w.Text
		switch out, _ := commands.Excluded(t); {
		case out != "" || strings.HasPrefix(t, ":!") || strings.HasPrefix(t, ":^"):
			continue
		case strings.HasPrefix(t, ":") || strings.HasPrefix(t, "/") || t == "" || w.Tilde: // a full path may contain links
			return true
		case strings.ContainsAny(t, `*?[\`):
			if !strings.HasPrefix(t, "*.") || strings.ContainsAny(t[2:], `*?[]\/`) || slices.ContainsFunc(strings.Split(file, "/"), func(name string) bool { return strings.HasSuffix(name, t[1:]) }) {
				return true
			}
		case pathname.Within(full, path.Join(dir, t)):
			return true
		}
		limits = true
	}
	return !limits
}
