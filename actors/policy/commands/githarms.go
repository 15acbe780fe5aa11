package commands

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/schemas"
)

var (
	throwsAway        = Harm{schemas.RiskHigh, "throws away uncommitted changes"}
	throwsAwayStashed = Harm{schemas.RiskHigh, "throws away uncommitted changes that are stashed"}
	deletesUntracked  = Harm{schemas.RiskHigh, "deletes untracked files"}
	deletesIgnored    = Harm{schemas.RiskHigh, "deletes ignored files"}
	deletesBoth       = Harm{schemas.RiskHigh, "deletes untracked and ignored files"}
)

// harmOfGit returns the harm of a git command whose words, and not only its subcommand, decide the harm. For
// every other git command, ok is false, and the table's entry for the subcommand has the harm.
func harmOfGit(args []string) (h Harm, ok bool) {
	if len(args) == 0 {
		return Harm{}, false
	}
	rest := args[1:]
	switch args[0] {
	case "config":
		return Harm{}, len(rest) > 0 && slices.Contains([]string{"--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l"}, rest[0])
	case "checkout":
		if len(rest) > 1 && rest[0] == "-b" {
			return changesRepository, true
		}
		return throwsAway, hasFlag(rest, "f", "force") || slices.Contains(rest, "--") || slices.ContainsFunc(rest, isWholeTree)
	case "switch":
		return throwsAway, hasFlag(rest, "f", "force", "discard-changes")
	case "restore":
		if hasFlag(rest, "S", "staged") && !hasFlag(rest, "W", "worktree") {
			return changesRepository, true
		}
		return throwsAway, true
	case "clean":
		switch {
		case hasFlag(rest, "n", "dry-run"):
			return Harm{}, true
		case hasFlag(rest, "X"):
			return deletesIgnored, true
		case hasFlag(rest, "x"):
			return deletesBoth, true
		}
		return deletesUntracked, true
	}
	return Harm{}, false
}

// isWholeTree reports whether an operand of git names all files.
func isWholeTree(a string) bool {
	return slices.Contains([]string{".", "./", "*", ":/", ":/*", ":"}, a)
}

// hasFlag reports whether a command has one of these flags. A flag with one letter may be in a group of letters.
func hasFlag(args []string, flags ...string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		name := strings.TrimLeft(a, "-")
		long := strings.HasPrefix(a, "--")
		return name != a && slices.ContainsFunc(flags, func(f string) bool {
			return long && len(f) > 1 && name == f || !long && len(f) == 1 && strings.Contains(name, f)
		})
	})
}

// pathsOfGit returns the files that a git command deletes or resets, as its words name them.
func pathsOfGit(args []string) []string {
	switch args[0] {
	case "rm", "clean":
		all := operands(args[1:], "e", "exclude", "pathspec-from-file")
		if len(all) == 0 && args[0] == "clean" {
			return []string{"."}
		}
		return all
	case "restore":
		return operands(args[1:], "s", "source", "pathspec-from-file")
	case "checkout":
		if at := slices.Index(args, "--"); at >= 0 {
			return args[at+1:]
		}
		return slices.DeleteFunc(operands(args[1:]), func(a string) bool { return !isWholeTree(a) })
	}
	return nil
}

// The harms of find. A test before the action, such as -name, selects the files to delete. The words in
// narrowsNothing do not count as tests, because they narrow the selection little or not at all.
var (
	deletesFound    = Harm{schemas.RiskHigh, "deletes files"}
	deletesAllHere  = Harm{schemas.RiskHigh, "deletes every file here"}
	deletesAllBelow = Harm{schemas.RiskHigh, "deletes every file below"}
	narrowsNothing  = strings.Fields("-type -xtype -maxdepth -mindepth -depth -d -xdev -mount -print -print0 -ls -follow -noleaf -ignore_readdir_race -warn -nowarn -true -daystart -regextype -L -H -P -f -d ( ) -a -and , ! -not")
)

// harmOfFind returns the harm of a find command that deletes files. For any other find command, ok is false.
func harmOfFind(args []string) (h Harm, ok bool) {
	selects, starts := false, []string(nil)
	for i, a := range args {
		switch {
		case a == "-delete", isExec(a) && i+1 < len(args) && Entry(ProgramName(args[i+1])).Harm == deletes:
			switch {
			case selects && args[i-1] != "-o" && args[i-1] != "-or":
				return deletesFound, true
			case len(starts) == 0 || slices.Contains(starts, ".") || slices.Contains(starts, "./"):
				return deletesAllHere, true
			}
			return deletesAllBelow, true
		case strings.HasPrefix(a, "-") || a == "(" || a == "!":
			selects = selects || !slices.Contains(narrowsNothing, a)
		case i == 0 || !strings.HasPrefix(args[i-1], "-") && len(starts) == i:
			starts = append(starts, a)
		}
	}
	return Harm{}, false
}

func isExec(a string) bool { return slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, a) }
