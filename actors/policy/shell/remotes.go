package shell

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/schemas"
)

// remote returns the name of the repository with which a git command exchanges commits, with its host and
// path if nod knows them: "origin at github.com/ann/app". name is the name without them.
func (t *targets) remote(argv []string, remote, name string) string {
	if name != remote || t.lost || commands.HasGlobals(argv) || t.facts.changesRemotes() {
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

// repositoryCommands are the subcommands of git that leave its settings as they are.
var repositoryCommands = strings.Fields("add commit status log diff show tag rev-parse branch fetch pull push stash switch rebase merge ls-remote")

// changesRemotes reports whether the line may change the remotes, or the settings that git reads, before
// it uses them. In doubt it returns true.
func (f *Facts) changesRemotes() bool {
	if f.gitMoved || len(f.Writes) > 0 {
		return true
	}
	for _, argv := range f.Commands {
		name := commands.ProgramName(argv[0])
		if name == "git" {
			if len(argv) < 2 || commands.HasGlobals(argv) || !slices.Contains(repositoryCommands, argv[1]) {
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
