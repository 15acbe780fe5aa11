package policy

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/actors/policy/shell/word"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

func (ev *evaluation) evaluateShell(in tools.Input) {
	src, why := ev.pol.commandAt(ev.call, in, ev.location)
	line, file := ev.pol.shell.Read(src, *ev.location)
	ev.line = line
	if why != "" {
		line.Refuse(why)
	}
	if len(line.LeftOut()) > 0 && !line.Harmless() {
		ev.call.Changeable, ev.location.Changeable = false, false // HardenInput changes only harmless lines
		ev.evaluateShell(in)
		return
	}
	if line.Harmless() && !ev.shellRules() {
		ev.allowHarmless(src)
		return
	}
	ev.facts = ev.pol.shell.Facts(line, file, src, ev.location)
	ev.verdict = Verdict{Effect: Ask, Why: line.Reason()}
	risk := ev.facts.Risk(line)
	ev.verdict.Risk, ev.verdict.Reasons, ev.verdict.Targets, ev.verdict.Unseen = risk.Risk, risk.Reasons, risk.Targets, risk.Unseen
	if ev.facts.Forbidden != "" {
		ev.verdict.Effect, ev.verdict.Rule, ev.verdict.Why = Deny, ownRule, ev.facts.Forbidden
		return
	}
	inLine := func(r *rules.Rule) bool { return r.CoversCommand(ev.facts) }
	if r := ev.firstRule(denyRules, false, inLine); r != nil {
		ev.decide(Deny, "deny "+r.Text)
		return
	}
	if ev.pathRule(Deny) {
		return
	}
	if r := ev.firstRule(askRules, false, inLine); r != nil {
		ev.verdict.Why = ""
		ev.decide(Ask, "ask "+r.Text)
		return
	}
	if ev.pathRule(Ask) {
		return
	}
	if line.NamesSecret() {
		ev.verdict.Rule = secretsRule
		return
	}
	if ev.facts.Incomplete {
		ev.verdict.Why = "has too many parts to compare with the rules"
		return
	}
	if line.Harmless() {
		ev.allowHarmless(src)
		return
	}
	if rule := ev.allowedParts(); rule != "" {
		ev.decide(Allow, rule)
		return
	}
	if secret := ev.facts.SecretURL(); secret != "" {
		ev.verdict.Rule, ev.verdict.Why = secretsRule, secret
		return
	}
	if why == "" {
		ev.contain(src)
	}
}

// allowHarmless sets the verdict Allow on a harmless line, and adds how the line may run contained.
func (ev *evaluation) allowHarmless(src string) {
	ev.verdict = Verdict{Effect: Allow, Risk: schemas.RiskLow, LeavesOut: ev.line.LeftOut()}
	if len(ev.verdict.LeavesOut) == 0 {
		ev.containHarmless(src)
	}
}

// mayBePowerShell reports whether the call's shell tool may run its line in PowerShell. On Windows, every
// shell tool may, except Claude Code's tool Bash, which runs the Bash of Git for Windows.
func (c *Call) mayBePowerShell() bool {
	return c.ToolName != "Bash" && (onWindows(c.Cwd) || onWindows(c.Project))
}

// onWindows reports whether a path begins with a drive letter or, like the path of a shared folder, with \\.
func onWindows(p string) bool {
	return strings.HasPrefix(p, `\\`) || len(p) > 1 && p[1] == ':' && (p[0]|0x20) >= 'a' && (p[0]|0x20) <= 'z'
}

// shellRules reports whether some deny or ask rule may cover a shell command or a path in a command.
func (ev *evaluation) shellRules() bool {
	for i := range ev.pol.layers {
		for _, list := range [][]rules.Rule{ev.pol.layers[i].Deny, ev.pol.layers[i].Ask} {
			for k := range list {
				if list[k].CoversTool(ev.tool, false) || list[k].HasPath() {
					return true
				}
			}
		}
	}
	return false
}

// pathRule applies the rules about files with this effect, Deny or Ask, to every word of the line, and reports
// whether a rule decided. For example, a rule that denies a file to the Read tool also denies the file to cat.
func (ev *evaluation) pathRule(effect Effect) bool {
	for i := range ev.pol.layers {
		l := &ev.pol.layers[i]
		files := l.Deny
		if effect == Ask {
			files = l.Ask
		}
		if !ev.layerApplies(l, true) {
			continue
		}
		for k := range files {
			if r := &files[k]; r.HasPath() && r.CoversPathIn(ev.facts, ev.line) {
				ev.verdict.Why = ""
				return ev.decide(effect, string(effect)+" "+r.Text)
			}
		}
	}
	return false
}

// allowedParts returns the last of the rules that allow the line, or "" if the rules do not allow it. Each
// simple command must be harmless or covered by one rule, and the line must do nothing besides.
func (ev *evaluation) allowedParts() string {
	if !ev.mayAllow() || ev.line.Comments || ev.line.Untracked || ev.line.Why != "" || len(ev.line.Parts) == 0 {
		return ""
	}
	untold := ev.inUntoldDirectory()
	if !untold && !ev.line.StandsInProject() {
		return ""
	}
	found := ""
	for i := range ev.line.Parts {
		p := &ev.line.Parts[i]
		if p.Why == "" {
			continue
		}
		if p.UnknownWords || p.Secret || ev.namesSecret(p) {
			return ""
		}
		rule := ev.allowsPart(p, untold)
		if rule == "" {
			return ""
		}
		found = rule
	}
	return found
}

// namesSecret reports whether a command that a rule may allow has a word that may mean a secret.
func (ev *evaluation) namesSecret(p *shell.Part) bool {
	argv, plain := p.Argv()
	if !plain || commands.RunnerName(argv) == 0 {
		return ev.line.AnySecret(p.Words[1:], false)
	}
	return ev.line.AnySecret(word.Literals(commands.WithoutTexts(argv)[1:]), false) || ev.line.AnySecret(p.Words[1:], true)
}

// mayAllow reports whether some rule or remembered rule could allow a command.
func (ev *evaluation) mayAllow() bool {
	return len(ev.pol.answers) > 0 || slices.ContainsFunc(ev.pol.layers, func(l rules.Layer) bool { return len(l.Allow) > 0 })
}

// inUntoldDirectory reports whether the directory of the line is unknown because the agent does not tell it
// and the line does not set it.
func (ev *evaluation) inUntoldDirectory() bool {
	return ev.location.Lost && ev.line.Lost && len(ev.line.Dirs) == 0
}

// allowsPart returns the rule that allows a part of the line, or "". If untold is true, the line's directory
// is unknown, so only a rule for commands in any directory can allow the part.
func (ev *evaluation) allowsPart(p *shell.Part, untold bool) string {
	argv := make([]string, len(p.Words))
	for i, w := range p.Words {
		if w.Glob {
			return "" // the shell would expand this word, and a rule covers only literal words
		}
		argv[i] = w.Text
	}
	exact := commands.SendsSecretURL(argv) != ""
	covers := func(r *rules.Rule) bool {
		if exact && !r.NamesCommand(argv) {
			return false
		}
		if r.Placed != nil {
			return !p.HasInput && (r.Placed.Elsewhere || !untold) && coversArgv(r.Placed, ev, argv)
		}
		return !untold && r.CoversArgv(argv, true, &ev.line.Location)
	}
	if r := ev.firstRule(allowRules, true, covers); r != nil {
		return "allow " + r.Text
	}
	if p.HasInput {
		return "" // a remembered rule covers no command that reads input, because the input may be code
	}
	g, which := ev.pol.rememberedCommand(argv, func(g *schemas.RememberedRule) bool {
		return (g.Elsewhere || !untold) && !(exact && g.Prefix) && coversArgv(g, ev, argv)
	})
	if g == nil {
		return ""
	}
	ev.verdict.Remembered = append(ev.verdict.Remembered, which)
	return "always " + g.String()
}
