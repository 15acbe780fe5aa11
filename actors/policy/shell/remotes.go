package shell

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/schemas"
)

// remote describes the repository with which a git command exchanges commits. The argument remote is the
// repository as the command names it, and the argument name is the repository's name for people. If nod knows
// where the repository is, the result says so, as in "origin at github.com/ann/app". Otherwise the result is
// name.
func (t *targets) remote(argv []string, remote, name string) string {
	if name != remote || t.lost || commands.HasGlobals(argv) || t.facts.changesRemotes(remote == commands.DefaultRemote) {
		return name
	}
	push, said := argv[1] == "push", ""
	for _, r := range t.facts.Location.RemotesAt() {
		by, places := remote, r.Fetch
		if push {
			places = r.Push
		}
		if remote == commands.DefaultRemote {
			if by = r.DefaultFetch; push {
				by = r.Default
			}
		}
		at := places[by]
		if at == "" || said != "" && said != by+" at "+at {
			return name
		}
		said = by + " at " + at
	}
	if said == "" {
		return name
	}
	return said
}

// remoteKeepers are subcommands of git that do more than read, but do not change the addresses of remotes.
// defaultKeepers do not change the default remote either, unless a flag sets it.
var (
	defaultKeepers = strings.Fields("add commit tag fetch pull push")
	remoteKeepers  = append(strings.Fields("branch switch merge"), defaultKeepers...)
)

// changesRemotes reports whether the line may change the remotes, or the settings that git reads, before git
// uses them. If the argument byDefault is true, a change of the default remote counts too. In doubt
// changesRemotes returns true.
func (f *Facts) changesRemotes(byDefault bool) bool {
	if f.gitMoved || f.renames() || len(f.Writes) > 0 {
		return true
	}
	keepers := remoteKeepers
	if byDefault {
		keepers = defaultKeepers
	}
	for _, argv := range f.Commands {
		name := commands.ProgramName(argv[0])
		if name == "git" {
			if len(argv) < 2 || commands.HasGlobals(argv) || commands.IsElsewhere(argv[0]) {
				return true
			}
			reads := commands.Reader("git " + argv[1])
			if !slices.Contains(keepers, argv[1]) && (reads == nil || !reads.Fits(argv[2:])) {
				return true
			}
			if byDefault && slices.ContainsFunc(argv[2:], setsUpstream) && len(f.Commands) > 1 {
				return true
			}
			continue
		}
		mild := !slices.ContainsFunc(commands.Harms(argv), func(h commands.Harm) bool { return h.Risk != schemas.RiskLow })
		if name != "cd" && (commands.Reader(name) == nil || !mild) {
			return true
		}
	}
	return false
}

// setsUpstream reports whether a word of a git command may set the default remote of a branch.
func setsUpstream(w string) bool {
	return strings.HasPrefix(w, "--se") || strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "u")
}
