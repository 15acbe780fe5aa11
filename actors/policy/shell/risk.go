package shell

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// Assessment describes the risk of a command line for people. It has the reasons for all risks of the
// line, the objects of these reasons, and the code that the line runs but does not contain.
type Assessment struct {
	Risk    schemas.Risk
	Reasons []string
	Targets []schemas.Target
	Unseen  []string
}

// Risk returns the worst risk of a command line, with the reasons for all its risks.
func (f *Facts) Risk(line *Line) Assessment {
	worst, why := commands.Harm{Risk: schemas.RiskLow}, []string(nil)
	add := func(h commands.Harm) {
		if h.Rank() > worst.Rank() {
			worst = h
		}
		if !slices.Contains(why, h.Why) {
			why = append(why, h.Why)
		}
	}
	on, sent := f.newTargets(line), f.sentSecrets()
	for _, what := range sent.reasons {
		add(commands.Harm{Risk: schemas.RiskHigh, Why: what})
	}
	for i, argv := range f.Commands {
		if isOperandDot(argv) {
			continue
		}
		for _, h := range commands.Harms(argv) {
			if sent.by[i] && h.OnlyTransfers() {
				on.actsOn(i, []string{f.destination(i)})
				continue
			}
			add(on.ofCommand(i, h))
		}
	}
	for _, w := range f.Writes {
		if _, _, ok := socketOf(w); ok {
			continue
		}
		add(commands.Harm{Risk: schemas.RiskMedium, Why: "writes files"})
		on.addFiles("writes files", w)
	}
	for _, w := range f.piped {
		if commands.Entry(commands.ProgramName(w)).RunsInput() {
			add(commands.Harm{Risk: schemas.RiskHigh, Why: "runs its input as code"})
		}
	}
	for _, w := range append(f.Words[:len(f.Words):len(f.Words)], f.Writes...) {
		if _, _, ok := socketOf(w); ok || f.awayOn(w) != "" {
			continue
		}
		if p := pathname.Slashes(w); (pathname.IsAbs(p) || strings.HasPrefix(p, "~") || strings.HasPrefix(p, "../")) && p != "/dev/null" && f.Location.Project != "" && !f.Location.InProject(p) {
			add(commands.Harm{Risk: schemas.RiskMedium, Why: schemas.OutsideProject})
			on.addFiles(schemas.OutsideProject, w)
		}
	}
	if why := f.secretReason(line, sent.words); why != "" {
		add(commands.Harm{Risk: schemas.RiskHigh, Why: why})
	}
	if f.Forbidden != "" {
		add(commands.Harm{Risk: schemas.RiskHigh, Why: "changes nod itself"})
	}
	if f.subst {
		add(commands.Harm{Risk: schemas.RiskMedium, Why: "runs a command inside another"})
	}
	if len(why) == 0 && !line.Harmless() {
		add(commands.Harm{Risk: schemas.RiskMedium, Why: "runs a command that nod does not know to be harmless"})
	}
	if slices.ContainsFunc(on.all, func(t schemas.Target) bool { return t.Place == schemas.PlaceOutside }) {
		add(commands.Harm{Risk: schemas.RiskMedium, Why: schemas.OutsideProject})
	}
	return Assessment{worst.Risk, why, slices.Concat(on.where, on.all), f.unseen()}
}

// unseen describes the code that the line runs but does not contain.
func (f *Facts) unseen() (all []string) {
	downloads := slices.ContainsFunc(f.Commands, commands.Downloads)
	for i, argv := range f.Commands {
		if isOperandDot(argv) {
			continue
		}
		code := commands.Unseen(argv, commands.Input{
			Piped: slices.Contains(f.piped, argv[0]), Downloaded: downloads, Computed: f.subst && f.inexact[i],
		})
		if code != "" && !slices.Contains(all, code) && len(all) < maxTargets {
			all = append(all, code)
		}
	}
	return all
}

// plainWord matches a word that people cannot mistake for nod's own text.
var plainWord = lazyregexp.New(`^[A-Za-z0-9._/~*?-]{1,40}$`)

// secretReason returns the reason that the line names, or may name, a secret or settings, with the word
// that does; or "". It leaves out the words of secrets that the line sends.
func (f *Facts) secretReason(line *Line, sent []string) string {
	certain, maybe := "", ""
	for i, w := range append(f.Words[:len(f.Words):len(f.Words)], f.meant...) {
		switch {
		case w == "", slices.Contains(sent, w), slices.Contains(sent, commands.FileIn(w)):
		case certain == "" && slices.ContainsFunc(f.Location.Resolve(w), f.secrets.Listed):
			certain = w
		case maybe == "" && i < len(f.Words) && f.secrets.MayBe(w, f.Location, false):
			maybe = w
		}
	}
	why, at := "touches a secret or settings", certain
	switch {
	case certain != "":
	case maybe != "" || len(sent) == 0 && line.NamesSecret():
		why, at = "may touch a secret or settings", maybe
	default:
		return ""
	}
	if plainWord.MatchString(at) {
		why += " (" + at + ")"
	}
	return why
}
