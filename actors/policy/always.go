package policy

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// Always is a remembered "yes" with its exact reach.
type Always = schemas.Always

// With is p with remembered answers. They allow what asks and nothing else: rules
// that deny or ask, secrets and nod's own commands stand above them.
func (p *Policy) With(grants ...Always) *Policy { return p.WithLists(NewAnswers(grants)) }

// WithLists is With for lists that are too long to copy. It keeps them, and a
// verdict's Remembered tells places in them.
func (p *Policy) WithLists(lists ...*Answers) *Policy {
	out := *p
	out.grants = append(p.grants[:len(p.grants):len(p.grants)], lists...)
	return &out
}

// rememberedCommand finds the first of the remembered answers for a command, of those
// with the fewest words, for which covers holds.
func (p *Policy) rememberedCommand(argv []string, covers func(*Always) bool) (*Always, Remembered) {
	return p.remembered(func(a *Answers) []int { return a.commands(argv) }, covers)
}

// rememberedTool finds the first of those for anything else.
func (p *Policy) rememberedTool(covers func(*Always) bool) (*Always, Remembered) {
	return p.remembered((*Answers).tools, covers)
}

func (p *Policy) remembered(candidates func(*Answers) []int, covers func(*Always) bool) (*Always, Remembered) {
	for l, list := range p.grants {
		for _, i := range candidates(list) {
			if g := &list.all[i]; covers(g) {
				return g, Remembered{l, i}
			}
		}
	}
	return nil, Remembered{}
}

// inScope reports whether the call happens in the grant's project.
func inScope(a *Always, pl *place) bool {
	if a.Project == "" {
		return true
	}
	project := cleanAbs(a.Project)
	if project == "" || len(pl.dirs) == 0 {
		return false
	}
	return !slices.ContainsFunc(pl.dirs, func(d string) bool { return !within(d, project) })
}

// coversArgv reports whether the grant holds exactly this command.
func coversArgv(a *Always, j *judge, argv []string) bool {
	// The words come first: they tell most answers apart, of which there may be many.
	if len(a.Argv) == 0 || len(argv) < len(a.Argv) || !slices.Equal(a.Argv, argv[:len(a.Argv)]) {
		return false
	}
	if canonical(a.Tool).name != j.tool.name || !inScope(a, &j.line.place) {
		return false
	}
	if len(a.Dirs) > 0 && slices.ContainsFunc(j.line.dirs, func(d string) bool { return !slices.Contains(a.Dirs, d) }) {
		return false
	}
	if a.Prefix && len(argv) > len(a.Argv) {
		return further(a, &j.line.place, argv[len(a.Argv):])
	}
	return len(argv) == len(a.Argv)
}

// coversTool reports whether the grant holds a call that is no command.
func coversTool(a *Always, j *judge, t *target) bool {
	// What is cheap to tell comes first: there may be many answers. What of the web asks
	// does so for its address, which no grant holds.
	if len(a.Argv) > 0 || j.tool.kind == kindShell || j.tool.kind == kindWeb {
		return false
	}
	if canonical(a.Tool).name != j.tool.name || !inScope(a, j.place) {
		return false
	}
	if a.Path == "" {
		return j.tool.kind != kindEdit
	}
	for _, p := range t.paths {
		for _, full := range j.place.resolve(p) {
			if dir, ok := strings.CutSuffix(a.Path, "/"); ok && (!within(full, dir) || len(unusual(full[len(dir):])) > 0) || !ok && full != a.Path {
				return false
			}
		}
		if len(j.place.resolve(p)) == 0 {
			return false
		}
	}
	return len(t.paths) > 0
}
