package commands

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/shell/word"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// Shown describes the tracked files whose content a git command prints although no word names them.
type Shown int

// The sets of tracked files, from the smallest to the largest.
const (
	ShowsNone    Shown = iota
	ShowsChanged       // files that differ from the index
	ShowsTracked       // files in the index
	ShowsHistory       // files of any commit
)

// Flags of git's diff commands. A command with a flag of printsNames and without a flag of
// printsPatch prints no content. A flag that may or may not print content is in printsPatch.
var (
	printsNames = strings.Fields("stat numstat shortstat dirstat X summary name-only name-status raw compact-summary cumulative no-patch s quiet")
	printsPatch = strings.Fields("p u patch unified U patch-with-raw patch-with-stat binary function-context W check c cc dd m diff-merges merge base ours theirs combined-all-paths word-diff word-diff-regex color-words L")
)

// Shows returns the set of tracked files whose content a git subcommand prints with these words, and
// whether pathspecs limit this set.
func (a *Args) Shows(sub string) (shown Shown, limited bool) {
	limited = !a.has("follow", "full-diff", "L")
	named := !a.has(printsPatch...) && a.has(printsNames...)
	switch sub {
	case "log", "reflog show":
		if a.has(printsPatch...) {
			return ShowsHistory, limited
		}
	case "show":
		if !named && (len(a.operands) == 0 || slices.ContainsFunc(a.operands, func(w word.Word) bool { return !revisionPath.MatchString(w.Text) || strings.Contains(w.Text, "..") })) {
			return ShowsHistory, limited
		}
	case "stash show":
		if !named {
			return ShowsHistory, false // git stash show takes no pathspec
		}
	case "diff":
		switch {
		case named:
		case !a.mayNameCommit() && !a.has("cached", "staged", "merge-base", "base", "ours", "theirs"):
			return ShowsChanged, limited
		default:
			return ShowsHistory, limited
		}
	case "grep":
		switch {
		case a.has("l", "L", "files-with-matches", "files-without-match", "name-only", "c", "count", "q", "quiet"):
		case !a.mayNameCommit() && !a.has("cached"):
			return ShowsTracked, true
		default:
			return ShowsHistory, true
		}
	}
	return ShowsNone, false
}

// GitShows returns the results of Shows and of Objects for a git subcommand with these words.
func GitShows(sub string, texts []string) (Shown, []string) {
	a, _ := Entry("git "+sub).parse(sub, word.Literals(texts))
	shown, _ := a.Shows(sub)
	return shown, a.Objects()
}

// revisionPath matches a word REV:PATH, which names a file of a commit. nod checks PATH like the
// path of any other file.
var revisionPath = lazyregexp.New(`^[A-Za-z0-9_./~^-]+:.+$`)

// mayNameCommit reports whether a word may be a commit. Such a word is an operand before -- that is
// not a script and does not exclude a path.
func (a *Args) mayNameCommit() bool {
	paths := a.Paths()
	return slices.ContainsFunc(paths[:len(paths)-len(a.Pathspecs())], func(w word.Word) bool {
		out, _ := Excluded(w.Text)
		return out == ""
	})
}

// Pathspecs returns the words after --, which limit a git command to paths. A word before -- may
// also be a commit.
func (a *Args) Pathspecs() []word.Word {
	switch {
	case a.dashes < 0:
		return nil
	case a.dashes == 0 && a.of.takesScript(a):
		return a.operands[1:]
	}
	return a.operands[a.dashes:]
}

// Objects returns the words of a git command that may be hexadecimal names of objects, in lower case.
func (a *Args) Objects() (names []string) {
	for _, w := range a.operands {
		for piece := range strings.FieldsFuncSeq(strings.ToLower(w.Text), func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') }) {
			if len(piece) >= 4 && strings.Trim(piece, "0123456789abcdef") == "" && !slices.Contains(names, piece) {
				names = append(names, piece)
			}
		}
	}
	return names
}

// plainPath matches paths that are safe in single quotes in a command line.
var plainPath = lazyregexp.New(`^[A-Za-z0-9_./@+,=~ -]+$`)

// PlainPath reports whether Excluded can read the path p in a pathspec, and p is safe in single
// quotes in a command line.
func PlainPath(p string) bool { return plainPath.MatchString(p) }

// Excluded returns the path that a pathspec excludes. It returns "" if the pathspec excludes nothing
// or contains a pattern. If the result fromTop is true, the path starts at the top of the work tree.
func Excluded(t string) (out string, fromTop bool) {
	for _, magic := range []string{":(top,exclude,literal)", ":(exclude,top,literal)", ":(top,exclude)", ":(exclude,top)", ":(exclude)", ":!", ":^"} {
		rest, ok := strings.CutPrefix(t, magic)
		if !ok {
			continue
		}
		plain := rest != "" && rest[0] != '/' && plainPath.MatchString(rest) && !strings.Contains("/"+rest+"/", "/../")
		if strings.HasSuffix(magic, ")") || plain && (rest[0] == '.' || rest[0] == '_' || rest[0] >= 'A' && rest[0] <= 'z' || rest[0] >= '0' && rest[0] <= '9') {
			if plain {
				return rest, strings.Contains(magic, "top")
			}
		}
		return "", false
	}
	return "", false
}
