package policy

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/schemas"
)

// riskRank orders the risks; -1 for an unknown one.
func riskRank(r schemas.Risk) int {
	return slices.Index([]schemas.Risk{schemas.RiskLow, schemas.RiskMedium, schemas.RiskHigh}, r)
}

// risk returns the worst risk of a command line and its reasons.
func (f *facts) risk(line *commandLine) (schemas.Risk, []string) {
	worst, why := schemas.RiskLow, []string(nil)
	add := func(h harm) {
		if riskRank(h.risk) > riskRank(worst) {
			worst = h.risk
		}
		if !slices.Contains(why, h.why) {
			why = append(why, h.why)
		}
	}
	for _, argv := range f.argvs {
		for _, h := range f.harms(argv) {
			add(h)
		}
	}
	if len(f.writes) > 0 {
		add(writesFiles)
	}
	for _, w := range f.piped {
		if h := f.pol.commands.entry(base(w)).harm; h == runsInlineCode || h == runsProgram {
			add(harm{schemas.RiskHigh, "runs its input as code"})
		}
	}
	for _, w := range append(f.words[:len(f.words):len(f.words)], f.writes...) {
		if p := pathname.Slashes(w); (pathname.IsAbs(p) || strings.HasPrefix(p, "~") || strings.HasPrefix(p, "../")) && p != "/dev/null" && f.location.Project != "" && !f.location.InProject(p) {
			add(harm{schemas.RiskMedium, "outside the project"})
			break
		}
	}
	if line.namesSecret() || slices.ContainsFunc(f.words, func(w string) bool { return w != "" && f.pol.secrets.MayBe(w, f.location, false) }) {
		add(harm{schemas.RiskHigh, "touches a secret or settings"})
	}
	if f.forbidden != "" {
		add(harm{schemas.RiskHigh, "changes nod itself"})
	}
	if f.subst {
		add(harm{schemas.RiskMedium, "runs a command inside another"})
	}
	if len(why) == 0 && !line.harmless() {
		add(harm{schemas.RiskMedium, "runs a command that nod does not know to be harmless"})
	}
	return worst, why
}

// harms returns the harms that one command may do.
func (f *facts) harms(argv []string) []harm {
	name := base(argv[0])
	known := f.pol.commands.entry(name)
	h := known.harm
	for n := 2; n <= 3 && n <= len(argv); n++ {
		if more := f.pol.commands.entry(name + " " + strings.Join(argv[1:n], " ")).harm; more != (harm{}) {
			h = more
		}
	}
	var out []harm
	switch gitRead := name == "git" && len(argv) > 1 && f.pol.commands.reader("git "+argv[1]) != nil; {
	case h == harm{}, gitRead && h == changesRepository: // it only reads, or is refused for another reason
	default:
		out = append(out, h)
	}
	switch {
	case h == deletes && slices.ContainsFunc(argv[1:], func(a string) bool { return strings.HasPrefix(a, "-") && strings.ContainsAny(a, "rRf") }):
		out = append(out, harm{schemas.RiskHigh, "deletes whole directories or without asking"})
	case known.inline != "" && slices.Contains(argv[1:], known.inline):
		out = append(out, runsInlineCode)
	case name == "git" && slices.ContainsFunc(argv, func(a string) bool { return a == "--force" || a == "-f" || a == "--force-with-lease" || a == "--hard" }):
		out = append(out, harm{schemas.RiskHigh, "overwrites work that others may need"})
	case name == "find" && slices.Contains(argv, "-delete"):
		out = append(out, harm{schemas.RiskHigh, "deletes files"})
	case name == "sed" && slices.ContainsFunc(argv, func(a string) bool { return strings.HasPrefix(a, "-i") || strings.HasPrefix(a, "--in-place") }):
		out = append(out, writesFiles)
	}
	return out
}
