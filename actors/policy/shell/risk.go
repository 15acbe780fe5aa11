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

// reasons collects the reasons for the risks of a line, and the objects of these reasons.
type reasons struct {
	facts *Facts
	sent  sentSecrets
	on    *targets
	risk  schemas.Risk // the worst risk
	all   []string
	grave []string // the elements of all whose own risk is high
}

// Risk returns the worst risk of a command line, with the reasons for all its risks.
func (f *Facts) Risk(line *Line) Assessment {
	r := &reasons{facts: f, sent: f.sentSecrets(), on: f.newTargets(line), risk: schemas.RiskLow}
	for _, what := range r.sent.reasons {
		r.add(schemas.RiskHigh, what)
	}
	r.addCode()
	for i, argv := range f.Commands {
		if !isOperandDot(argv) {
			r.addCommand(i)
		}
	}
	r.addWrites()
	r.addPiped()
	r.addOutside()
	r.addWhole(line)
	return Assessment{r.risk, r.inOrder(), r.grave, slices.Concat(r.on.where, r.on.all), f.unseen()}
}

func (r *reasons) add(risk schemas.Risk, why string) {
	r.raise(risk)
	if slices.Contains(r.all, why) {
		return
	}
	if r.all = append(r.all, why); risk == schemas.RiskHigh {
		r.grave = append(r.grave, why)
	}
}

func (r *reasons) addHarm(h commands.Harm) { r.add(h.Risk, h.Why) }

// raise raises the risk without a reason.
func (r *reasons) raise(risk schemas.Risk) { r.risk = schemas.HigherRisk(r.risk, risk) }

// addCode adds the harms of code in other languages, and of code that the line downloads.
func (r *reasons) addCode() {
	for _, found := range r.facts.code {
		if r.addHarm(found.Harm); found.Name != "" {
			r.on.add(schemas.Target{Does: found.Why, Name: found.Name})
		}
	}
	for _, h := range r.facts.downloadHarms() {
		r.addHarm(h)
	}
}

// addCommand adds the harms of the command with the index i.
func (r *reasons) addCommand(i int) {
	f := r.facts
	if h, sends := f.uploadHarm(i); sends && !r.sent.by[i] {
		r.addHarm(h)
	}
	script, file := f.secretScript(i)
	if file != "" {
		r.addHarm(script)
		r.on.add(r.on.file(script.Why, file))
	}
	for _, fault := range f.urlFaults(i) {
		r.add(fault.Risk, fault.Why)
	}
	for _, h := range f.harmsOf(i) {
		switch {
		case r.sent.by[i] && h.OnlyTransfers():
			r.on.actsOn(i, []string{f.destination(i)})
		case h.IsScript() && file != "":
		case h.IsInlineCode() && commands.LanguageOf(f.Commands[i][0]) == commands.ProgramCode && len(f.code) > 0: // leave out this reason, because the harms in f.code say more
			r.raise(h.Risk)
		default:
			r.addHarm(r.on.ofCommand(i, h))
		}
	}
}

// addWrites adds the files that the line's redirections write.
func (r *reasons) addWrites() {
	for _, w := range r.facts.Writes {
		if _, _, ok := socketOf(w); ok {
			continue
		}
		r.add(schemas.RiskMedium, "writes files")
		r.on.addFiles("writes files", w)
	}
}

// addPiped adds the commands that run the output of another command.
func (r *reasons) addPiped() {
	for _, w := range r.facts.piped {
		if commands.Entry(commands.ProgramName(w)).RunsInput() {
			r.add(schemas.RiskHigh, "runs its input as code")
		}
	}
}

// addOutside adds the words that name paths outside the project.
func (r *reasons) addOutside() {
	f := r.facts
	for _, w := range append(f.Words[:len(f.Words):len(f.Words)], f.Writes...) {
		if _, _, ok := socketOf(w); ok || f.awayOn(w) != "" {
			continue
		}
		if p := pathname.Slashes(w); (pathname.IsAbs(p) || strings.HasPrefix(p, "~") || strings.HasPrefix(p, "../")) && p != "/dev/null" && f.Location.Project != "" && !f.Location.InProject(p) {
			r.add(schemas.RiskMedium, schemas.OutsideProject)
			r.on.addFiles(schemas.OutsideProject, w)
		}
	}
}

// addWhole adds the reasons that are about the line as a whole. It must come last, because one of them is for a
// line without any other reason, and one is about the objects of the others.
func (r *reasons) addWhole(line *Line) {
	f := r.facts
	if why := f.secretReason(line, r.sent.words); why != "" {
		r.add(schemas.RiskHigh, why)
	}
	if f.Forbidden != "" {
		r.add(schemas.RiskHigh, "changes nod itself")
	}
	if f.subst {
		r.add(schemas.RiskMedium, "runs a command inside another")
	}
	switch {
	case f.cut:
		r.add(schemas.RiskHigh, "is too long to judge")
	case f.tooMany:
		r.add(schemas.RiskHigh, "has too many commands to judge")
	}
	if len(r.all) == 0 && !line.Harmless() {
		r.add(schemas.RiskMedium, unknownHarm)
	}
	if slices.ContainsFunc(r.on.all, func(t schemas.Target) bool { return t.Place == schemas.PlaceOutside }) {
		r.add(schemas.RiskMedium, schemas.OutsideProject)
	}
}

// inOrder returns the reasons in the order in which people see them. Grave reasons come first.
func (r *reasons) inOrder() []string {
	milder := slices.DeleteFunc(slices.Clone(r.all), func(why string) bool { return slices.Contains(r.grave, why) })
	all := slices.Concat(r.grave, milder)
	if r.facts.ranInput { // put reasons that only say that code runs last, because the harms in the code say more
		slices.SortStableFunc(all, func(a, b string) int { return commands.GeneralRank(a) - commands.GeneralRank(b) })
	}
	return all
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
