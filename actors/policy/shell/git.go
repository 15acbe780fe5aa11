package shell

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// git allows git subcommands that only read, in a repository of the project. Even such a subcommand
// may run a program from the repository's configuration (core.fsmonitor, diff.external, a
// textconv). Harden prevents this.
func (line *Line) git(words []word.Word) (string, bool) {
	here, all := line.Location, words
	for len(words) > 0 && strings.HasPrefix(words[0].Text, "-") {
		switch opt := words[0]; {
		case opt.Text == "--no-pager", opt.Text == "-P", opt.Text == "--no-optional-locks", opt.Text == "--literal-pathspecs":
			words = words[1:]
		case opt.Text == "-c" && len(words) > 1 && slices.Contains(hardened, words[1].Text): // Harden adds these options
			words = words[2:]
		case opt.Text == "-C" && line.reader.Level >= commands.LevelReaders && len(words) > 1:
			if words[1].Glob || !pathname.IsAbs(pathname.Slashes(words[1].Text)) && !words[1].Tilde || line.secretPath(words[1]) {
				return "-C does not name the project or a directory in it in full", false
			}
			here.Dirs, words = line.Resolve(words[1].Text), words[2:]
			if here.Lost = false; len(here.Dirs) == 0 {
				return "-C names a directory that nod does not know", false
			}
		case opt.Text == "--version" && len(words) == 1:
			return "", false
		default:
			return opt.Text + " before the subcommand can re-point git", false
		}
	}
	if here.Lost {
		return "reads a repository in a directory that nod does not know: put -C and the project's path before the subcommand", false
	}
	if !here.StandsInProject() {
		return "reads a repository outside the project, whose configuration can run programs", false
	}
	if !here.StandsAtTop() {
		// A directory in a project may have files from strangers that form a repository. git would
		// obey this repository's configuration, which can name programs to run.
		return "a directory below the project may be a repository of its own, whose configuration can run programs: put -C and the project's path before the subcommand", false
	}
	if len(words) == 0 || words[0].Glob {
		return "has no plain subcommand", false
	}
	sub, name := commands.Reader("git "+words[0].Text), words[0].Text
	if len(words) > 1 && !words[1].Glob && commands.Reader("git "+name+" "+words[1].Text) != nil {
		words = words[1:]
		name += " " + words[0].Text
		sub = commands.Reader("git " + name)
	}
	if sub == nil || !sub.AllowedAt(line.reader.Level) {
		return name + " is not a subcommand known to only read", false
	}
	links, looked := line.Links, line.Looked
	line.Links, line.Looked = nil, nil // git shows a link itself, and not the linked file
	defer func() { line.Links, line.Looked = links, looked }()
	a, why := sub.Check(name, words[1:], line)
	operands, checked := a.Paths(), words[1:]
	if sub.Loose {
		checked = operands
	}
	if sub.Text {
		return why, false
	}
	for _, w := range checked {
		if line.gitSecret(w.Text) {
			return line.namesWhat(w), true
		}
	}
	if why == "" {
		why = line.gitPaths(operands, &here)
	}
	if why == "" {
		why = line.showsTracked(name, &a, all, &here)
	}
	return why, false
}

// gitSecret reports whether a word after git may mean a secret. The word may be a pattern, which
// git itself expands, or may have the form REV:PATH or :(magic)PATH.
func (line *Line) gitSecret(t string) bool {
	if strings.HasPrefix(t, ":!") || strings.HasPrefix(t, ":^") || strings.HasPrefix(t, "--") && !strings.Contains(t, "=") {
		return false // such a word excludes a path, or is a flag without a value
	}
	if out, _ := commands.Excluded(t); out != "" {
		return false
	}
	if i := strings.LastIndexByte(t, ')'); i >= 0 && strings.HasPrefix(t, ":(") {
		t = t[i+1:]
	}
	if i := strings.LastIndexByte(t, ':'); i >= 0 && i+1 < len(t) && line.secretIn(t[i+1:], true) {
		return true
	}
	for strings.HasSuffix(t, "/*") || strings.HasSuffix(t, "/**") {
		t = strings.TrimRight(t, "*/")
	}
	// * and patterns such as *.go are allowed although they could match a secret, because tracked
	// files are meant to be shared.
	return !secrets.SourceGlob(t) && t != "*" && line.secretText(t, !strings.HasPrefix(t, "-"))
}

// gitPaths returns the reason to refuse a path outside the project, or "". A check is needed
// because git diff reads any file, even outside the repository.
func (line *Line) gitPaths(words []word.Word, here *pathname.Location) string {
	for _, w := range words {
		t := w.Text
		if out, _ := commands.Excluded(t); out != "" {
			continue
		}
		if strings.HasPrefix(t, ":(") && !strings.HasPrefix(t, ":(exclude)") && !strings.HasPrefix(t, ":(top)") {
			return "uses a path form that nod does not follow"
		}
		if !w.Tilde && !pathname.IsAbs(pathname.Slashes(t)) && !strings.Contains("/"+pathname.Slashes(t)+"/", "/../") {
			continue
		}
		all := here.Resolve(t)
		if len(all) == 0 || slices.ContainsFunc(all, func(p string) bool { return !here.InTree(p) }) {
			return "names a path outside the project"
		}
	}
	return ""
}
