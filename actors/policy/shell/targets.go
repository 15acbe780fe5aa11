package shell

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// maxTargets is the largest number of targets of a line. People see only the first targets.
const maxTargets = 24

// targets collects the objects of a line's commands.
type targets struct {
	facts *Facts
	lost  bool // a relative word may mean a path in any directory
	all   []schemas.Target
	where []schemas.Target // the places on which the commands take effect
}

// movers are commands that may change the directory in which later commands of the line run.
var movers = []string{"cd", "pushd", "popd", ".", "source", "eval"}

func (f *Facts) newTargets(line *Line) *targets {
	t := &targets{facts: f, lost: line.Untracked || line.Lost || f.Location.Lost}
	for i, argv := range f.Commands {
		if slices.Contains(movers, argv[0]) && !isOperandDot(argv) && (f.inexact[i] || line.Why != "" || len(line.Parts) == 0) {
			t.lost = true
		}
	}
	return t
}

// isOperandDot reports whether the word "." is only a directory among another command's words, as in find
// . -name x. As a command, "." runs a file.
func isOperandDot(argv []string) bool {
	return argv[0] == "." && (len(argv) == 1 || strings.HasPrefix(argv[1], "-"))
}

func (t *targets) add(target schemas.Target) {
	if len(t.all) < maxTargets && !slices.Contains(t.all, target) {
		t.all = append(t.all, target)
	}
}

// ofCommand adds the objects of one harm of a command, and returns the harm. The harm is less if the
// command deletes only the output of builds in the project.
func (t *targets) ofCommand(i int, h commands.Harm) commands.Harm {
	argv, inexact := t.facts.Commands[i], t.facts.inexact[i]
	files, names := commands.Objects(argv, h)
	remote, rest, hasRemote := commands.Remote(argv)
	if hasRemote && len(names) > 0 && t.facts.at[i] == "" {
		if slices.ContainsFunc(argv[:len(argv)-len(rest)], func(w string) bool { return len(t.facts.partial[w]) > 0 }) {
			names[0] = commands.Unknown
		} else {
			names[0] = t.remote(argv, remote, names[0])
		}
	}
	mild := h.IsDeletion() && h.Risk == schemas.RiskHigh && !inexact && len(files) > 0
	var found []schemas.Target
	lost := t.lost
	t.lost = lost || commands.ProgramName(argv[0]) == "git" && commands.HasGlobals(argv) // git -C names files of another directory
	for _, target := range t.files(h.Why, t.facts.at[i], files) {
		w := target.Name
		found = append(found, target)
		mild = mild && target.Place == schemas.PlaceProject && outputWord.MatchString(w) &&
			commands.IsBuildOutput(t.facts.Location.Relative(target.Path)) && !t.facts.Location.HoldsHome(t.facts.Location.Project)
	}
	t.lost = lost
	if mild {
		h = commands.Harm{Risk: schemas.RiskMedium, Why: "deletes build output"}
	}
	for _, target := range found {
		target.Does = h.Why
		t.add(target)
	}
	var places []string
	for k, name := range names {
		hidden := t.facts.hides(name)
		if isBranch := hasRemote && k > 0; isBranch && (hidden || !commands.IsPlain(strings.TrimLeft(name, "+:"))) {
			continue
		}
		if hidden {
			name = commands.Unknown
		}
		t.add(schemas.Target{Does: h.Why, Name: name})
		places = append(places, name)
	}
	if len(names) > 0 && t.facts.mayGoElsewhere(i) {
		t.add(schemas.Target{Does: h.Why, Name: commands.Unknown})
		places = append(places, commands.Unknown)
	}
	t.actsOn(i, places)
	if where := commands.OutsideOf(argv, t.facts.harmsOf(i)); where != "" {
		t.add(schemas.Target{Does: h.Why, Name: where, Place: schemas.PlaceOutside})
		t.place(schemas.Target{Does: schemas.ActsOn, Name: where, Place: schemas.PlaceOutside})
	}
	return h
}

// outputWord matches a word that people cannot mistake for nod's own text.
var outputWord = lazyregexp.New(`^[A-Za-z0-9._/@*-]{1,120}$`)

// FileTarget returns the target of the path w of a call. If w may mean several paths, a path outside the
// project is preferred. If the project is or contains a home directory, or is the whole file system, a
// target in it has no place, because "in the project" would sound harmless.
func FileTarget(loc *pathname.Location, does, w string) schemas.Target {
	target := schemas.Target{Does: does, Name: w}
	inside := schemas.PlaceProject
	if loc.HoldsHome(loc.Project) {
		inside = ""
	}
	for _, at := range loc.Resolve(w) {
		if strings.HasPrefix(at, "/?/") { // the path is in the made-up directory that stands for an unknown one
			return schemas.Target{Does: does, Name: w}
		}
		if target.Place == schemas.PlaceOutside {
			break
		}
		if target.Path = at; loc.Project != "" {
			target.Place = inside
			if !loc.InTree(at) {
				target.Place = schemas.PlaceOutside
			}
		}
	}
	return target
}
