package commands

import (
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
)

var gitPretty = lazyregexp.New(`^(?:|oneline|short|medium|full|fuller|reference|email|raw|mboxrd|t?format:.*|(?s:.*%.*))$`)

// gitFormat refuses formats and sort keys for which git verifies signatures, because git then runs
// gpg. It refuses names of formats, because git's configuration may define such names. It also refuses
// values of --diff-merges that mean --remerge-diff, because repeating a merge can run a program.
func gitFormat(_ Secrets, a *Args) string {
	for _, f := range a.flags {
		switch f.name {
		case "diff-merges":
			if f.value == "r" || f.value == "remerge" {
				return "repeats a merge, which can run a program"
			}
		case "format", "pretty":
			if strings.Contains(f.value, "%G") || strings.Contains(strings.ToLower(f.value), "signature") {
				return "its format verifies signatures, which runs a program"
			}
			if a.name != "branch" && a.name != "tag" && a.name != "for-each-ref" && !gitPretty.MatchString(f.value) {
				return "its format is a name from the configuration"
			}
		case "sort":
			if strings.Contains(strings.ToLower(f.value), "signature") {
				return "sorts by signatures, which runs a program"
			}
		}
	}
	return ""
}

// gitRevision matches words that name a commit and not a directory, such as a relative revision, a
// hash, a version or a main branch.
var gitRevision = lazyregexp.New(`^(?:HEAD|@|main|master|develop|trunk|stash@.*|(?:origin|upstream)/.+|[0-9a-f]{7,64}|v?[0-9]+(?:\.[0-9]+)+.*|.*[~^:].*|.*[^./]\.\..*|.*\.\.[^./].*)$`)

// gitDiff refuses two operands that may both be directories. Outside a repository, git diff would
// compare all files in the two directories, including secrets.
func gitDiff(_ Secrets, a *Args) string {
	dirs := 0
	for _, o := range a.operands {
		if !gitRevision.MatchString(o.Text) && !namesFile(o) {
			dirs++
		}
	}
	if len(a.operands) == 2 && dirs == 2 {
		return "compares whole directories outside a repository, in which secrets may lie: write commits as A..B, paths as HEAD -- A B"
	}
	return ""
}

// gitBranch allows git branch only to list branches. Without --list or a similar flag, an operand
// is the name of a new branch. gitBranch ignores the flag -l, because it has another meaning in old
// versions of git.
func gitBranch(s Secrets, a *Args) string {
	if len(a.operands) > 0 && !a.has("list", "contains", "no-contains", "merged", "no-merged", "points-at") {
		return "could make a branch"
	}
	return gitFormat(s, a)
}

func gitTag(s Secrets, a *Args) string {
	if len(a.operands) > 0 && !a.has("l", "list", "contains", "no-contains", "merged", "no-merged", "points-at") {
		return "could make a tag"
	}
	return gitFormat(s, a)
}
