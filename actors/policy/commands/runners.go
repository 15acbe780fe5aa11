package commands

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell/word"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// checkRemote refuses addresses, so that a command uses only the remotes and the registry that the
// project configures.
func checkRemote(_ Secrets, a *Args) string {
	if slices.ContainsFunc(a.operands, func(o word.Word) bool { return strings.Contains(o.Text, ":") }) {
		return "names an address"
	}
	return ""
}

func checkGh(_ Secrets, a *Args) string {
	if slices.ContainsFunc(a.flags, func(f flag) bool { return slices.Contains(ghFilters, f.name) && jqReads.MatchString(f.value) }) {
		return "its filter may read the environment"
	}
	if slices.ContainsFunc(a.flags, func(f flag) bool { return (f.name == "R" || f.name == "repo") && !ghRepository.MatchString(f.value) }) {
		return "its repository may be on another host, to which gh sends a login"
	}
	return ""
}

// ghRepository matches a repository on gh's own host.
var ghRepository = lazyregexp.New(`^(?:github\.com/)?[A-Za-z0-9_-]+/[A-Za-z0-9_.-]+$`)

// ghFilters are the flags of gh whose value is a program that formats the output.
var ghFilters = []string{"q", "jq", "t", "template"}

// ghPath matches a path of GitHub's API. It does not match addresses of other hosts.
var ghPath = lazyregexp.New(`^/?(?:repos|users?|orgs|search|rate_limit)(?:/\.?[A-Za-z0-9_@:+-][A-Za-z0-9_.@:+-]*)*(?:\?[A-Za-z0-9_.=&%/:+-]*)?$`)

// checkGhAPI allows gh api to read. gh api sends a GET unless it has a flag for a field or a method, and the
// entry lists no such flag.
func checkGhAPI(s Secrets, a *Args) string {
	if len(a.operands) != 1 || !ghPath.MatchString(a.operands[0].Text) {
		return "reads another address than one of GitHub's usual paths"
	}
	return checkGh(s, a)
}

// WithoutTexts returns the words of a command without those that cannot be paths: the filters of gh, which are
// programs for jq, and all words of tmux, whose listed commands name only windows.
func WithoutTexts(argv []string) []string {
	switch {
	case len(argv) > 0 && argv[0] == "tmux":
		return argv[:1]
	case len(argv) == 0 || argv[0] != "gh":
		return argv
	}
	var out []string
	for i := 0; i < len(argv); i++ {
		switch {
		case (argv[i] == "--jq" || argv[i] == "-q") && i+1 < len(argv):
			i++
		case !strings.HasPrefix(argv[i], "--jq="):
			out = append(out, argv[i])
		}
	}
	return out
}

// addsTarget reports whether a rule for a runner's command would let a further target in. The slice shown has
// the words in the rule. The slice rest has the words that follow them in the call.
func addsTarget(shown, rest []string) bool {
	c := Entry(shown[0])
	for i, w := range rest {
		chosen := i > 0 && c.chooser != "" && rest[i-1] == c.chooser
		if c.manyTargets && len(shown) > 1 && !chosen && !strings.HasPrefix(w, "-") && !IsCount("-"+w) {
			return true
		}
	}
	return false
}

// Bounded reports whether a rule for a command covers it with further words. The slice shown has the words in
// the rule, and the slice rest has the further words. None of these may add a target or lead outside the
// project.
func Bounded(shown, rest []string, loc *pathname.Location) bool {
	if shown[0] == "rtk" && len(shown) > 1 {
		shown = shown[1:]
	}
	c, words := runnerOf(shown)
	list := &unknownCommand
	if c == nil {
		c = list
	} else {
		list = runnerList(shown[:words])
	}
	switch {
	case addsTarget(shown, rest):
		return false
	case c.level == levelApproved:
		if _, why := c.Check(shown[0], word.Literals(rest), nil); why != "" {
			return false
		}
	case !keepsToProject(list, rest), slices.ContainsFunc(rest, func(w string) bool { return strings.HasPrefix(w, "@") }):
		return false
	}
	assigns := !(c.level == levelApproved && c.Text) // if the operands of a command are text, none of them sets a variable
	paths := rest                                    // every word of an unlisted tmux command may be a path
	if shown[0] != "tmux" || c.level == levelApproved {
		paths = WithoutTexts(append([]string{shown[0]}, rest...))[1:]
	}
	return !slices.ContainsFunc(paths, func(w string) bool {
		return assigns && !strings.HasPrefix(w, "-") && strings.Contains(w, "=") || leadsOut(w, loc)
	})
}

// readsOfGh are commands of gh that change nothing, and show only data that the user's login may see.
var readsOfGh = []string{"gh pr view", "gh pr list", "gh pr checks", "gh pr diff", "gh issue view", "gh issue list", "gh run view", "gh run list", "gh api", "gh search issues"}

// readsOfOneKind are lists of commands that only read, and show data of the same kind. A person may allow all
// commands of a list by one answer.
var readsOfOneKind = [][]string{
	readsOfGh,
	{"tmux list-sessions", "tmux list-windows", "tmux list-panes"},
	{"tmux capture-pane", "tmux display-message"},
}

// ReadsService reports whether argv begins with the name of a command in readsOfGh.
func ReadsService(argv []string) bool {
	return slices.ContainsFunc([]int{2, 3}, func(n int) bool { return slices.Contains(readsOfGh, strings.Join(argv[:min(n, len(argv))], " ")) })
}

// OtherReads returns the names of all other commands that read data of the same kind as the command with this
// name. If readsOfOneKind does not have the command, OtherReads returns nil.
func OtherReads(name []string) (others [][]string) {
	own := strings.Join(name, " ")
	for _, list := range readsOfOneKind {
		if !slices.Contains(list, own) {
			continue
		}
		for _, other := range list {
			if other != own {
				others = append(others, strings.Fields(other))
			}
		}
	}
	return others
}

// checkTmux refuses a semicolon, because tmux takes it for the end of a command. It also refuses every format
// that tmuxFormat does not match, because a format may run a program.
func checkTmux(_ Secrets, a *Args) string {
	ends := func(w string) bool { return strings.Contains(w, ";") }
	if slices.ContainsFunc(a.flags, func(f flag) bool { return ends(f.value) }) || slices.ContainsFunc(a.operands, func(w word.Word) bool { return ends(w.Text) }) {
		return "may begin another command of tmux"
	}
	if slices.ContainsFunc(a.operands, func(w word.Word) bool { return !tmuxFormat.MatchString(w.Text) }) {
		return "its format may run a program"
	}
	return ""
}

// tmuxFormat matches a format that names plain variables of tmux, such as #{pane_current_path}. For any other name,
// tmux shows the environment variable with this name.
var tmuxFormat = lazyregexp.New(`^(?:[^#]|#\{(?:(?:pane|window)_[a-z_]+|session_(?:name|id|windows|attached|created|activity|path))\})*$`)

// leadsOut reports whether the word w names a path outside the project. It also reports true for a
// file that decides which programs run, such as a hook.
func leadsOut(w string, loc *pathname.Location) bool {
	flag := strings.HasPrefix(w, "-")
	parts := pathname.Pieces(w)
	if flag && len(w) > 2 && w[1] != '-' {
		parts = append(parts, w[2:]) // in a flag such as -C/DIR, the value follows the letter directly
	}
	return slices.ContainsFunc(parts, func(p string) bool {
		out := pathname.IsAbs(pathname.Slashes(p)) || strings.HasPrefix(p, "~") || strings.Contains("/"+pathname.Slashes(p)+"/", "/../")
		return out && p != "/dev/null" && !loc.InProject(p) || slices.ContainsFunc(pathname.Split(nil, p), func(seg string) bool {
			return len(seg) > 1 && seg[0] == '.' && pathname.NeverRemembered.Has(seg, true)
		})
	})
}

// RunnerName returns how many of the first words in argv are a runner's name, or 0 if argv does not begin
// with a runner.
func RunnerName(argv []string) int {
	if len(argv) > 1 && argv[0] == "rtk" {
		if n := RunnerName(argv[1:]); n > 0 {
			return n + 1
		}
	}
	_, n := runnerOf(argv)
	return n
}

// runnerOf returns the entry of the runner at the start of argv and the number of words of the
// runner's name. If argv is not a runner, it returns nil.
func runnerOf(argv []string) (*Command, int) {
	for n := min(3, len(argv)); n > 0; n-- {
		name := strings.Join(argv[:n], " ")
		if c := Entry(name); c.runner && strings.Count(name, " ") == n-1 { // the name of the command go test has two words; a single word "go test" is an argument
			return c, n
		}
	}
	return nil, 0
}
