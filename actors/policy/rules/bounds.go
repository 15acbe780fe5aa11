package rules

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
)

// bounded reports whether an allow rule covers all words of argv, even words that the rule does not contain.
// For example, the author of a rule for go test or git log did not mean flags that run other programs or
// write other files. The rule covers such a flag only if the rule itself contains it.
func (r *Rule) bounded(argv []string, loc *pathname.Location) bool {
	if argv[0] == "git" {
		return commands.GitBounded(argv[1:], r.spells)
	}
	name := commands.RunnerName(argv)
	if name == 0 {
		return true
	}
	shown, rest := argv[:name], []string(nil)
	for i := name; i < len(argv); i++ {
		switch {
		case i == len(shown) && i < len(r.argv) && r.argv[i] == argv[i] && argv[i][:1] != "-":
			shown = argv[:i+1] // the rule contains the target
		case !r.spells(argv[i]):
			rest = append(rest, argv[i])
		}
	}
	return commands.Bounded(shown, rest, loc)
}

// spells reports whether the rule contains the word, or a pattern other than * that matches the word.
func (r *Rule) spells(w string) bool {
	return slices.ContainsFunc(r.argv, func(own string) bool {
		return own == w || strings.Trim(own, "*") != "" && pathname.Match(own, w)
	})
}
