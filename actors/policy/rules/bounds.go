package rules

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
)

// bounded reports whether the words of argv that an allow rule does not contain are ones that
// its author meant. The author of a rule for go test or git log did not mean flags that run
// other programs or write other files: a rule must contain such a flag.
func (r *Rule) bounded(argv []string, loc *pathname.Location) bool {
	if argv[0] == "git" {
		return !r.addsHarmToGit(argv)
	}
	name := commands.RunnerName(argv)
	if name == 0 {
		return true
	}
	shown, rest := argv[:name], []string(nil)
	for i := name; i < len(argv); i++ {
		switch {
		case i == len(shown) && i < len(r.argv) && r.argv[i] == argv[i] && argv[i][:1] != "-":
			shown = argv[:i+1] // the rule names the target
		case !r.spells(argv[i]):
			rest = append(rest, argv[i])
		}
	}
	return commands.Bounded(shown, rest, loc)
}

// spells reports whether the rule contains the word, or a pattern for it with a part of its
// text.
func (r *Rule) spells(w string) bool {
	return slices.ContainsFunc(r.argv, func(own string) bool {
		return own == w || strings.Trim(own, "*") != "" && pathname.Match(own, w)
	})
}

// gitHarmfulFlags are flags with which git commands that usually only read can write a file or
// start a program.
var gitHarmfulFlags = []string{
	"--output", "--output-directory", "--ext-diff", "--textconv", "--filters", "--open-files-in-pager", "--exec", "--upload-pack", "--receive-pack", "--extcmd",
	"--template", "--config", "--config-env", "--exec-path", "--git-dir", "--work-tree", "--separate-git-dir", "--paginate", "--strategy", "--remote", "--smtp-server",
	"--to-command", "--sendmail-cmd", "--cc-cmd", "--to-cmd", "--tool", "--gpg-sign", "--show-signature", "--remerge-diff", "--no-index", "--tree-filter", "--index-filter",
}

// gitHarmfulLetters are harmful flags of one letter, by subcommand.
var gitHarmfulLetters = map[string]string{
	"grep": "O", "clone": "uc", "rebase": "xsS", "archive": "o", "format-patch": "o", "difftool": "xt", "mergetool": "t", "pull": "sS",
	"merge": "sS", "cherry-pick": "S", "revert": "S", "commit": "S", "tag": "su", "am": "S", "help": "w",
}

// gitRunners are subcommands that run a given command, or write to a given file. A rule must
// contain all their words.
var gitRunners = [][]string{
	{"bisect", "run"}, {"submodule", "foreach"}, {"bundle", "create"}, {"filter-branch"}, {"difftool"}, {"mergetool"}, {"config"}, {"instaweb"}, {"daemon"}, {"web--browse"},
	{"send-email"}, {"hook"}, {"for-each-repo"}, {"maintenance"}, {"credential"}, {"fast-import"}, {"fast-export"}, {"var"}, {"shell"}, {"upload-pack"}, {"receive-pack"},
	{"remote-ext"}, {"remote-fd"}, {"svn"}, {"p4"}, {"cvsimport"}, {"cvsserver"}, {"update-git-for-windows"},
}

// addsHarmToGit reports whether a git command has a harmful flag or subcommand that the rule
// does not contain. Words after -- count too, because git may take this word for the value of a
// flag.
func (r *Rule) addsHarmToGit(argv []string) bool {
	i := 1
	for ; i < len(argv) && strings.HasPrefix(argv[i], "-"); i++ {
		if !r.spells(argv[i]) && !slices.Contains([]string{"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--version"}, argv[i]) {
			return true // options before the subcommand can change what git runs
		}
	}
	if i == len(argv) {
		return false
	}
	sub, rest := argv[i], argv[i+1:]
	if slices.ContainsFunc(gitRunners, func(words []string) bool {
		return sub == words[0] && (len(words) == 1 || slices.Contains(rest, words[1])) && slices.ContainsFunc(words, func(w string) bool { return !r.spells(w) })
	}) {
		return true
	}
	return slices.ContainsFunc(rest, func(w string) bool {
		name, _, _ := strings.Cut(w, "=")
		switch {
		case r.spells(w):
			return false
		case len(name) > 2 && name[:2] == "--":
			return slices.ContainsFunc(gitHarmfulFlags, func(flag string) bool { return strings.HasPrefix(flag, name) })
		case len(w) > 1 && w[0] == '-':
			return strings.ContainsAny(w, gitHarmfulLetters[sub])
		}
		return false
	})
}
