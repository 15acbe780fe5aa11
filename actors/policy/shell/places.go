package shell

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// maxSpelled is the length, in bytes, of the longest word that nod spells for people.
const maxSpelled = 200

// spell notes how the line src spells a word. If nod knows only a part of the word, such as /x of $HOME/x,
// then w is this part. If nod knows the whole word, spell notes w too, because the same text may also be a
// part of another word.
func (f *Facts) spell(w string, known bool, word *syntax.Word, src string) {
	source, _, isMount := strings.Cut(w, ":") // $HOME/x:/x gives a container the directory $HOME/x
	if known {
		if f.exact == nil {
			f.exact = map[string]bool{}
		}
		f.exact[w], f.exact[source] = true, true
		return
	}
	if f.partial == nil {
		f.partial = map[string][]string{}
	}
	said := ""
	if word != nil {
		if from, to := int(word.Pos().Offset()), int(word.End().Offset()); from < to && to <= len(src) && to-from <= maxSpelled {
			said = strings.NewReplacer(`"`, "", "'", "").Replace(src[from:to])
		}
	}
	f.spellAs(w, said)
	if sourceSaid, _, _ := strings.Cut(said, ":"); isMount && !strings.ContainsAny(sourceSaid, "{(`") {
		f.spellAs(source, sourceSaid)
	}
}

func (f *Facts) spellAs(w, said string) {
	if !slices.Contains(f.partial[w], said) && len(f.partial[w]) < maxTargets {
		f.partial[w] = append(f.partial[w], said)
	}
}

// note notes a word before it joins Words or Writes. The parameter away is true if the word means a file of a
// container or of another machine.
func (f *Facts) note(w string, away bool) {
	switch {
	case f.host == "" && !away:
		delete(f.away, w)
	case f.away[w] != "", slices.Contains(f.Words, w), slices.Contains(f.Writes, w):
	default:
		if f.away == nil {
			f.away = map[string]string{}
		}
		f.away[w] = cmp.Or(f.host, "the container")
	}
}

// awayOn returns the machine or container on which a word means a file, or "" for this machine.
func (f *Facts) awayOn(w string) string {
	if f.renames() { // ssh may be another program than usual
		return ""
	}
	return f.away[w]
}

// files returns the targets of words that are paths on a host, or on this machine if host is "".
func (t *targets) files(does, host string, words []string) (all []schemas.Target) {
	if t.facts.renames() {
		host = ""
	}
	for _, w := range words {
		switch said := t.facts.partial[w]; {
		case host != "":
			all = append(all, schemas.Target{Does: does, Name: host + ":" + w})
		case len(said) == 0:
			all = append(all, t.file(does, w))
		case w == "" && len(said) > 1: // nod cannot tell which of the spellings is meant
			all = append(all, schemas.Target{Does: does, Name: commands.Unknown})
		default:
			for _, s := range said {
				all = append(all, t.spelled(does, s))
			}
			if t.facts.exact[w] {
				all = append(all, t.file(does, w))
			}
		}
	}
	return all
}

func (t *targets) addFiles(does, w string) {
	for _, target := range t.files(does, t.facts.awayOn(w), []string{w}) {
		t.add(target)
	}
}

// file returns the target of a word that is a path.
func (t *targets) file(does, w string) schemas.Target {
	if p := pathname.Slashes(w); t.lost && !pathname.IsAbs(p) && !strings.HasPrefix(p, "~") {
		return schemas.Target{Does: does, Name: w}
	}
	return FileTarget(t.facts.Location, does, w)
}

// spelled returns the target of a path with variables of the shell. nod knows only HOME and PWD, and these
// only if the line does not set them.
func (t *targets) spelled(does, said string) schemas.Target {
	target := schemas.Target{Does: does, Name: said}
	if said == "" {
		target.Name = commands.Unknown
	}
	plain := strings.NewReplacer("${HOME}", "$HOME", "${PWD}", "$PWD").Replace(said)
	at, isHome := strings.CutPrefix(plain, "$HOME")
	at, isHere := strings.CutPrefix(at, "$PWD")
	switch {
	case isHome == isHere, at != "" && at[0] != '/', strings.ContainsAny(at, "$`*?["), !t.facts.keepsHome():
		return target
	case isHome:
		target = t.file(does, "~"+at)
	case isHere:
		target = t.file(does, "."+at)
	}
	target.Name = said
	return target
}

// homeChangers are programs that may set HOME or PWD for the rest of the line, or for the commands that they run.
var homeChangers = append(strings.Fields("eval unset export declare typeset local readonly printf mapfile readarray getopts sudo doas su runuser env ssh chroot"), renamers...)

// keepsHome reports whether HOME and PWD certainly keep their values in the line.
func (f *Facts) keepsHome() bool {
	for _, name := range []string{"HOME", "PWD"} {
		if f.vars != nil && (len(f.vars.values[name]) > 0 || len(f.vars.from[name]) > 0 || len(f.vars.refs) > 0) {
			return false
		}
	}
	return !f.moved && !f.renamed && !slices.ContainsFunc(f.Commands, func(argv []string) bool {
		return slices.Contains(homeChangers, commands.ProgramName(argv[0])) && !isOperandDot(argv)
	})
}

// nod tells people at most maxPlaces of the places on which a line acts.
const maxPlaces = 8

// actsOn adds a place on which command i takes effect, such as "npm: the registry in use". The parameter
// names has the places that the command names. If it is empty, the place of a program such as docker is the
// program's daemon.
func (t *targets) actsOn(i int, names []string) {
	argv := t.facts.Commands[i]
	program := commands.ProgramName(argv[0])
	if len(names) == 0 {
		names = t.daemon(i)
	}
	if len(names) == 0 || t.facts.at[i] != "" || !commands.IsPlain(program) {
		return
	}
	var once []string
	for _, name := range names {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	text := program + ": " + strings.Join(once, ", ")
	if said := t.facts.partial[""]; slices.Contains(names, commands.Unknown) && slices.Contains(argv, "") && len(said) == 1 && variable.MatchString(said[0]) {
		text += " (" + said[0] + ")"
	}
	t.place(schemas.Target{Does: schemas.ActsOn, Name: text})
}

// daemon returns the names of the daemon that runs the containers of command i.
func (t *targets) daemon(i int) []string {
	names := commands.Daemon(t.facts.Commands[i])
	if len(names) > 0 && (t.facts.mayGoElsewhere(i) || slices.ContainsFunc(names, t.facts.hides)) {
		return []string{commands.Unknown}
	}
	return names
}

func (t *targets) place(target schemas.Target) {
	if len(t.where) < maxPlaces && !slices.Contains(t.where, target) {
		t.where = append(t.where, target)
	}
}

// variable matches a word that is only a variable.
var variable = lazyregexp.New(`^\$(\w{1,40}|\{\w{1,40}\})$`)
