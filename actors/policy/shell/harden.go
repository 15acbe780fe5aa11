package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// hardened are settings that keep git from running configured programs: the file monitor, the
// hooks, the program for signatures, and the merge drivers, which git runs to repeat a merge.
var hardened = []string{"core.fsmonitor=false", "log.showSignature=false", "core.hooksPath=/dev/null", "log.diffMerges=separate"}

// hardenedOptions are the options that Harden adds after the word git. Without optional locks, git
// does not write the index. Without a pager, git runs no program that shows the output.
var hardenedOptions = " -c " + strings.Join(hardened, " -c ") + " --no-optional-locks --no-pager"

// Harden rewrites a harmless line so that git runs no program from the repository's configuration,
// and excludes the files of LeftOut. If nothing must change, Harden returns the line and false.
func (line *Line) Harden() (string, bool) {
	src := line.src
	file := parse(src)
	if file == nil || !line.Harmless() {
		return src, false
	}
	var b strings.Builder
	last := 0
	harden := func(at int, with string) {
		if !strings.HasPrefix(src[at:], with) {
			b.WriteString(src[last:at] + with)
			last = at
		}
	}
	for _, call := range allCalls(file) {
		if name, _ := word.Known(call.Args[0], src); name != "git" {
			continue
		}
		harden(int(call.Args[0].End().Offset()), hardenedOptions)
		if sub, flags := differSubcommand(call, src); sub != nil {
			harden(int(sub.End().Offset()), flags)
		}
		for _, file := range line.leftOut[joinTexts(argumentsOf(call, src))] {
			b.WriteString(src[last:call.End().Offset()] + " " + pathspec(file))
			last = int(call.End().Offset())
		}
	}
	return b.String() + src[last:], last > 0
}

// argumentsOf returns the words after a command's name.
func argumentsOf(call *syntax.CallExpr, src string) []word.Word {
	words := make([]word.Word, len(call.Args)-1)
	for i, arg := range call.Args[1:] {
		words[i], _ = word.Read(arg, src)
	}
	return words
}

// differSubcommand returns the last word of git's subcommand, and flags that keep the subcommand
// from running a configured program for comparing files. It returns nil if the subcommand never
// runs such a program.
func differSubcommand(call *syntax.CallExpr, src string) (*syntax.Word, string) {
	for i := 1; i < len(call.Args); i++ {
		switch w, _ := word.Known(call.Args[i], src); {
		case w == "-C", w == "-c":
			i++
		case strings.HasPrefix(w, "-"):
		case w == "grep":
			return call.Args[i], " --no-textconv"
		default:
			if i+1 < len(call.Args) {
				next, _ := word.Known(call.Args[i+1], src)
				if commands.Entry("git " + w + " " + next).Differ {
					return call.Args[i+1], " --no-ext-diff --no-textconv"
				}
			}
			if commands.Entry("git " + w).Differ {
				return call.Args[i], " --no-ext-diff --no-textconv"
			}
			return nil, ""
		}
	}
	return nil, ""
}
