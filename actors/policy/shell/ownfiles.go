package shell

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// ownShowCommands are nod's commands that only show something. nod treats every other nod command,
// even an unknown one, as a command that decides, grants or configures.
var ownShowCommands = map[string]bool{
	"pending": true, "show": true, "ask": true, "doctor": true, "grants": true, "version": true, "help": true, "status": true, "history": true, "sessions": true, "completion": true, "--help": true, "--version": true, "-h": true,
	"policy check": true, "policy explain": true, "policy test": true, "policy presets": true, "policy replay": true, "policy suggest": true,
	"session show": true, "settings show": true, "settings schema": true, "audit tail": true, "audit verify": true,
}

// The reasons for denying access to nod itself.
const (
	OwnCommandDenied = "agents may not run nod commands that decide, grant or configure"
	OwnFilesDenied   = "agents may not write nod's own files"
)

// ownCommandText matches nod commands that decide, grant or configure, in text that cannot be parsed.
var ownCommandText = lazyregexp.New(`(?i)(?:^|[^A-Za-z0-9_.-])nod(?:\.exe)?\s+(?:--?[a-z-]+(?:[= ]\S+)?\s+)*(?:allow|deny|freeze|thaw|up|engine|connector|token-service|setup|install|uninstall|service|invite|join|session\s+set|grant|revoke|gate|settings\s+apply|policy\s+suggest\s.*--a|answer|leave|back|login|open|stop|resume|approvers|pair|keys|hook|inbox|backup|restore|voice)\b`)

func (f *Facts) ownCommand(argv []string) {
	if b := commands.ProgramName(argv[0]); b != "nod" && !(b == "go" && slices.ContainsFunc(argv, func(a string) bool { return strings.HasSuffix(a, "cmd/nod") || strings.Contains(a, "cmd/nod@") })) {
		return
	}
	if commands.ProgramName(argv[0]) == "go" {
		if len(argv) < 2 || argv[1] != "run" {
			return
		}
		i := slices.IndexFunc(argv, func(a string) bool { return strings.Contains(a, "cmd/nod") })
		argv = argv[i:]
	}
	if len(argv) > 1 && argv[1] == "exec" { // nod exec runs its later words as a command
		for i := range argv[2:] {
			f.ownCommand(argv[2+i:])
		}
		return
	}
	verb := strings.Join(argv[1:min(len(argv), 3)], " ")
	if verb == "policy suggest" && slices.ContainsFunc(argv, func(a string) bool { return strings.HasPrefix(a, "--a") }) { // such as --apply
		f.Forbidden = OwnCommandDenied
		return
	}
	if len(argv) == 1 || ownShowCommands[verb] || ownShowCommands[argv[1]] {
		return
	}
	f.Forbidden = OwnCommandDenied
}

// ownWrites denies a line that may write nod's own files. Such a line redirects output to an own
// file, or names an own file in a command that may do more than read.
func (f *Facts) ownWrites(unparsed bool) {
	at := *f.Location
	for _, argv := range f.Commands {
		if len(at.Dirs) < 4 && slices.Contains(argv, "-C") {
			at.Dirs = append(at.Dirs[:len(at.Dirs):len(at.Dirs)], f.directoriesAfterC(argv)...)
		}
	}
	own := func(p string) bool { return f.secrets.Own(p, &at) }
	if slices.ContainsFunc(f.Writes, own) {
		f.Forbidden = OwnFilesDenied
	}
	if !slices.ContainsFunc(f.Words, own) {
		return
	}
	if unparsed {
		f.Forbidden = OwnFilesDenied
		return
	}
	inside := slices.ContainsFunc(f.Commands, func(a []string) bool { return a[0] == "cd" && slices.ContainsFunc(a, own) })
	for _, argv := range f.Commands {
		if (inside || slices.ContainsFunc(argv, own)) && !f.leavesOwnFiles(argv, inside) {
			f.Forbidden = OwnFilesDenied
			return
		}
	}
}

// directoriesAfterC returns the directories in which relative paths of argv may begin if each -C
// DIR changes the directory, as it does in git, tar and make. For other commands, the further
// directories only cause more questions and denials.
func (f *Facts) directoriesAfterC(argv []string) []string {
	to := *f.Location
	for i := 0; i+1 < len(argv) && i < 12; i++ {
		if argv[i] == "-C" {
			to.Dirs = to.Resolve(argv[i+1])
		}
	}
	return to.Dirs
}

// leavesOwnFiles reports whether a command leaves the files among its words unchanged: it only reads
// them, or adds them to a repository. The parameter inside means that the line runs in one of nod's own
// directories. There, an addition to a repository changes nod's files.
func (f *Facts) leavesOwnFiles(argv []string, inside bool) bool {
	switch argv[0] {
	case "cd", "test", "[":
		return true
	case "git":
		if len(argv) > 1 && (argv[1] == "add" || argv[1] == "commit") {
			return !inside && commands.Entry("git "+argv[1]).Fits(argv[2:])
		}
		return f.gitOnlyReads(argv[1:])
	}
	c := commands.Reader(argv[0])
	return c != nil && !strings.Contains(argv[0], " ") && c.Fits(argv[1:])
}

// gitOnlyReads reports whether git with these words only reads. It ignores options before the
// subcommand, because they write nothing, although they may make git use another repository or program.
func (f *Facts) gitOnlyReads(words []string) bool {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		n := 1
		if words[0] == "-C" || words[0] == "-c" {
			n = 2
		}
		words = words[min(n, len(words)):]
	}
	for n := min(2, len(words)); n > 0; n-- {
		if sub := commands.Reader("git " + strings.Join(words[:n], " ")); sub != nil {
			return sub.Fits(words[n:])
		}
	}
	return len(words) == 0
}
