package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// With these settings, git runs no file monitor that the configuration names, and no program
// that checks signatures.
const (
	noMonitor   = "core.fsmonitor=false"
	noSignature = "log.showSignature=false"
)

// Harden rewrites a harmless line so that git runs no program that the repository's
// configuration names. It returns the line unchanged and false if there is nothing to
// rewrite.
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
		harden(int(call.Args[0].End().Offset()), " -c "+noMonitor+" -c "+noSignature)
		if sub := differSubcommand(call, src); sub != nil {
			harden(int(sub.End().Offset()), " --no-ext-diff --no-textconv")
		}
	}
	return b.String() + src[last:], last > 0
}

// differSubcommand returns the word that is git's subcommand if this subcommand may run a diff
// program that the configuration names. Otherwise it returns nil.
func differSubcommand(call *syntax.CallExpr, src string) *syntax.Word {
	for i := 1; i < len(call.Args); i++ {
		switch w, _ := word.Known(call.Args[i], src); {
		case w == "-C", w == "-c":
			i++
		case !strings.HasPrefix(w, "-"):
			if commands.Entry("git " + w).Differ {
				return call.Args[i]
			}
			return nil
		}
	}
	return nil
}
