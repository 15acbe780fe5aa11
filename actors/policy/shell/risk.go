package shell

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/schemas"
)

// Assessment describes the risk of a command line for people. It has the reasons for all risks of the
// line, the objects of these reasons, and the code that the line runs but does not contain.
type Assessment struct {
	Risk    schemas.Risk
	Reasons []string
	Grave   []string // the elements of Reasons whose own risk is high
	Targets []schemas.Target
	Unseen  []string
}

// unknownHarm is the reason for a line without a known harm that is not known to be harmless.
const unknownHarm = "runs a command that nod does not know to be harmless"

// Judge returns the risk of code that is not the command line of a shell tool, such as a query in the input of
// another tool. It knows only harms that the code shows: code without such a harm has no reasons and a low
// risk.
func (r *Reader) Judge(lang commands.Language, text string, loc pathname.Location) Assessment {
	loc.Looked, loc.LookedIn = nil, nil // the caller's verdict does not depend on the disk
	line := &Line{Location: loc, reader: r}
	f := &Facts{Location: &loc, secrets: r.Secrets}
	if lang == commands.ShellCode {
		read, file := r.Read(text, loc)
		if read.Harmless() {
			return Assessment{Risk: schemas.RiskLow}
		}
		line, f = read, r.Facts(read, file, text, &loc)
	} else {
		f.addCode(lang, text, 0)
	}
	a := f.Risk(line)
	if a.Reasons = slices.DeleteFunc(a.Reasons, func(why string) bool { return why == unknownHarm }); len(a.Reasons) == 0 {
		a.Risk = schemas.RiskLow
	}
	return a
}

// Risk returns the worst risk of a command line, with the reasons for all its risks.
func (f *Facts) Risk(line *Line) Assessment {
	worst, why, grave := commands.Harm{Risk: schemas.RiskLow}, []string(nil), []string(nil)
	raise := func(h commands.Harm) {
		if h.Rank() > worst.Rank() {
			worst = h
		}
	}
	add := func(h commands.Harm) {
		if raise(h); !slices.Contains(why, h.Why) {
			if why = append(why, h.Why); h.Risk == schemas.RiskHigh {
				grave = append(grave, h.Why)
			}
		}
	}
	on, sent := f.newTargets(line), f.sentSecrets()
	for _, what := range sent.reasons {
		add(commands.Harm{Risk: schemas.RiskHigh, Why: what})
	}
	for _, found := range f.code {
		if add(found.Harm); found.Name != "" {
			on.add(schemas.Target{Does: found.Why, Name: found.Name})
		}
	}
	for _, h := range f.downloadHarms() {
		add(h)
	}
	for i, argv := range f.Commands {
		if isOperandDot(argv) {
			continue
		}
		if h, sends := f.uploadHarm(i); sends && !sent.by[i] {
			add(h)
		}
		script, file := f.secretScript(i)
		if file != "" {
			add(script)
			on.add(on.file(script.Why, file))
		}
		for _, fault := range f.urlFaults(i) {
			add(commands.Harm{Risk: fault.Risk, Why: fault.Why})
		}
		for _, h := range f.harmsOf(i) {
			switch {
			case sent.by[i] && h.OnlyTransfers():
				on.actsOn(i, []string{f.destination(i)})
			case h.IsScript() && file != "":
			case h.IsInlineCode() && commands.LanguageOf(argv[0]) == commands.ProgramCode && len(f.code) > 0: // leave out this reason, because the harms in f.code say more
				raise(h)
			default:
				add(on.ofCommand(i, h))
			}
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
	switch {
	case f.cut:
		add(commands.Harm{Risk: schemas.RiskHigh, Why: "is too long to judge"})
	case f.tooMany:
		add(commands.Harm{Risk: schemas.RiskHigh, Why: "has too many commands to judge"})
	}
	if len(why) == 0 && !line.Harmless() {
		add(commands.Harm{Risk: schemas.RiskMedium, Why: unknownHarm})
	}
	if slices.ContainsFunc(on.all, func(t schemas.Target) bool { return t.Place == schemas.PlaceOutside }) {
		add(commands.Harm{Risk: schemas.RiskMedium, Why: schemas.OutsideProject})
	}
	milder := slices.DeleteFunc(slices.Clone(why), func(reason string) bool { return slices.Contains(grave, reason) })
	why = append(grave[:len(grave):len(grave)], milder...)
	if f.ranInput { // put reasons that only say that code runs last, because the harms in the code say more
		slices.SortStableFunc(why, func(a, b string) int { return commands.GeneralRank(a) - commands.GeneralRank(b) })
	}
	return Assessment{worst.Risk, why, grave, slices.Concat(on.where, on.all), f.unseen()}
}

// unseen describes the code that the line runs but does not contain.
func (f *Facts) unseen() (all []string) {
	downloads := false
	for i := range f.Commands {
		downloads = downloads || commands.Downloads(f.harmsOf(i))
	}
	for i, argv := range f.Commands {
		if isOperandDot(argv) {
			continue
		}
		code := f.unseenOf(i, downloads)
		if _, file := f.secretScript(i); file != "" {
			code = "the file with secrets " + file
		}
		if code != "" && !slices.Contains(all, code) && len(all) < maxTargets {
			all = append(all, code)
		}
	}
	return all
}

func (f *Facts) unseenOf(i int, downloads bool) string {
	argv := f.Commands[i]
	return commands.Unseen(argv, f.harmsOf(i), commands.Input{
		Piped: slices.Contains(f.piped, argv[0]), Downloaded: downloads, Computed: f.subst && f.inexact[i], Shown: f.shown[i],
	})
}

// harmsOf returns the harms of a command of the line.
func (f *Facts) harmsOf(i int) []commands.Harm {
	for len(f.harms) < len(f.Commands) {
		f.harms = append(f.harms, commands.Harms(f.Commands[len(f.harms)]))
	}
	return f.harms[i]
}
