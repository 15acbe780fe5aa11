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

// checkGhAPI allows gh api to read. Without the flags for fields and methods, which the entry does
// not list, gh api sends a GET.
func checkGhAPI(s Secrets, a *Args) string {
	if len(a.operands) != 1 || !ghPath.MatchString(a.operands[0].Text) {
		return "reads another address than one of GitHub's usual paths"
	}
	return checkGh(s, a)
}

// WithoutFilters returns the words of a command without the filters of gh, because these filters are
// jq programs and not paths. If the first word is not gh, all words are returned.
func WithoutFilters(argv []string) []string {
	if len(argv) == 0 || argv[0] != "gh" {
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

// addsTarget reports whether one of the words rest, which follow the runner's command shown, is a
// further target for the runner.
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

// Bounded reports whether a rule for the command shown also covers this command with the words rest
// after it. None of the words may add a target or lead outside the project.
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
	return !slices.ContainsFunc(WithoutFilters(append([]string{shown[0]}, rest...))[1:], func(w string) bool {
		return assigns && !strings.HasPrefix(w, "-") && strings.Contains(w, "=") || leadsOut(w, loc)
	})
}

// readsOfOneKind are commands of gh that change nothing, and show only data that the user's login may see. A
// person may allow all of them by one answer.
var readsOfOneKind = []string{"pr view", "pr list", "pr checks", "pr diff", "issue view", "issue list", "run view", "run list", "api", "search issues"}

func isOfOneKind(name []string) bool {
	return len(name) > 1 && name[0] == "gh" && slices.Contains(readsOfOneKind, strings.Join(name[1:], " "))
}

// ReadsService reports whether argv begins with the name of one of the commands readsOfOneKind.
func ReadsService(argv []string) bool {
	return isOfOneKind(argv[:min(2, len(argv))]) || isOfOneKind(argv[:min(3, len(argv))])
}

// OtherReads returns the names of all other commands that read from the same service as the command with this
// name. If name is not the name of one of the commands readsOfOneKind, OtherReads returns nil.
func OtherReads(name []string) (others [][]string) {
	if !isOfOneKind(name) {
		return nil
	}
	for _, other := range readsOfOneKind {
		if words := strings.Fields("gh " + other); !slices.Equal(words, name) {
			others = append(others, words)
		}
	}
	return others
}

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

// RunnerName returns how many first words of argv name a runner, or 0 if argv is not a runner.
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
