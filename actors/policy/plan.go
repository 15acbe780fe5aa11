package policy

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// CheckPlan returns the verdict on an agent's plan. A plan only announces, so nod always asks; the reasons say
// what the plan's commands and words show.
func (p *Policy) CheckPlan(c Call, plan string) Verdict {
	a := p.judgePlan(plan, c.location())
	v := Verdict{Effect: Ask, Risk: schemas.RiskMedium, Reasons: append(a.Reasons, "the agent may then act on its plan"), Targets: a.Targets}
	if a.Risk == schemas.RiskHigh {
		v.Risk = schemas.RiskHigh
	}
	return v
}

// maxPlanCode limits the commands of a plan that nod judges.
const maxPlanCode = 200

// judgePlan returns the harms of high risk in a plan, in words for what is only planned.
func (p *Policy) judgePlan(plan string, loc pathname.Location) shell.Assessment {
	out := shell.Assessment{Risk: schemas.RiskLow}
	add := func(why string) string {
		why = planned(why)
		if out.Risk = schemas.RiskHigh; !slices.Contains(out.Reasons, why) {
			out.Reasons = append(out.Reasons, why)
		}
		return why
	}
	code := planCode(plan)
	for _, one := range code[:min(len(code), maxPlanCode)] {
		a := p.shell.Judge(one.lang, one.text, loc)
		for _, why := range a.Grave {
			if len(out.Reasons) >= maxJudged || strings.HasPrefix(why, "may ") {
				continue
			}
			does := add(why)
			for _, t := range a.Targets {
				if t.Does == why && len(out.Targets) < maxTargets {
					t.Does = does
					out.Targets = append(out.Targets, t)
				}
			}
		}
	}
	for i := range planWords {
		for _, at := range planWords[i].expr.FindAllString(plan, -1) {
			if !denied.MatchString(at) && len(out.Reasons) < maxJudged {
				add(planWords[i].why)
			}
		}
	}
	return out
}

// planWords are sentences of a plan about acts that a command would show. The match has the words before the
// act, which may deny it.
var planWords = []struct {
	expr lazyregexp.Regexp
	why  string
}{
	{lazyregexp.New(`(?i)[^\n.]{0,24}\bforce[- ]?push`), "overwrites work that others may need"},
	{lazyregexp.New(`(?i)[^\n.]{0,24}\b(?:drop|truncate|wipe|empty|delet)\w* (?:of )?(?:the |all |old |this )*(?:\w+ )?(?:tables?|databases?|schemas?|columns?|buckets?|clusters?|volumes?)\b`), "deletes a whole table or database"},
	{lazyregexp.New(`(?i)[^\n.]{0,24}\b(?:publish|release)\w* (?:\S+ ){0,4}(?:to|on) (?:npm|pypi|crates\.io|rubygems|maven|docker ?hub|the registry)\b`), "publishes"},
	{lazyregexp.New(`(?i)[^\n.]{0,24}\b(?:deploy|migrat|releas|roll)\w* (?:\S+ ){0,4}(?:to|on|in|against) (?:the )?prod(?:uction)?\b|[^\n.]{0,24}\bagainst (?:the )?prod(?:uction)?\b`), "changes production"},
}

// denied matches the words by which a plan says that it leaves something out.
var denied = lazyregexp.New(`(?i)(?:\b(?:do not|don['’]t|never|without|avoid|no|not|instead of)\b[^,;:]{0,12})$|\b(?:do not|don['’]t|never|without|avoid|no|not|instead of)\b (?:\w+ )?(?:force|drop|truncat|wipe|empty|delet|publish|releas|deploy|migrat|roll|run|use|call|against)`)

type planPart struct {
	lang commands.Language
	text string
}

// fence matches a block of code, with the name of its language.
var fence = lazyregexp.New("(?s)(?:^|\n)[ \t]*(?:```|~~~)[ \t]*([\\w+-]*)[^\n]*\n(.*?)(?:\n[ \t]*(?:```|~~~)|$)")

var (
	span   = lazyregexp.New("([^\n`]{0,24})`([^`\n]+)`")
	prompt = lazyregexp.New(`(?m)^[ \t]*[$>#] `)
	// proseCommand matches a command in a sentence, for programs whose names are no English words.
	proseCommand = lazyregexp.New(`\b(?:git|npm|pnpm|yarn|kubectl|helm|terraform|tofu|docker|psql|mysql|curl|wget|scp|rsync|sudo|aws|gcloud|gh|rm|dropdb|redis-cli|cargo|twine|dd|mkfs) [-\w./:~@"'=*|$ ]+`)
	joints       = lazyregexp.New(`[,;.]\s|\s(?:and|then|to|so|for|in order)\s`)
)

// planCode returns the commands of a plan: its blocks of code, the words in backquotes, and commands in
// sentences. Blocks in a programming language are text that the agent would write, and do not count.
func planCode(plan string) (all []planPart) {
	rest := plan
	for _, m := range fence.FindAllStringSubmatch(plan, maxPlanCode) {
		rest = strings.Replace(rest, m[0], "\n", 1)
		text := prompt.ReplaceAllString(m[2], "")
		switch strings.ToLower(m[1]) {
		case "", "sh", "bash", "shell", "zsh", "console", "shell-session", "terminal", "text":
			all = append(all, planPart{commands.ShellCode, text}, planPart{commands.SQLCode, text})
		case "sql", "postgres", "postgresql", "mysql", "psql":
			all = append(all, planPart{commands.SQLCode, text})
		}
	}
	for _, m := range span.FindAllStringSubmatch(rest, maxPlanCode) {
		if denied.MatchString(m[1]) {
			rest = strings.Replace(rest, m[0], "", 1)
			continue
		}
		rest = strings.Replace(rest, m[0], m[1], 1)
		all = append(all, planPart{commands.ShellCode, m[2]}, planPart{commands.SQLCode, m[2]})
	}
	for line := range strings.SplitSeq(rest, "\n") {
		for _, part := range joined(line) {
			if command := proseCommand.FindString(part); command != "" && !denied.MatchString(strings.TrimSpace(part[:strings.Index(part, command)])) {
				all = append(all, planPart{commands.ShellCode, strings.TrimSpace(command)})
			}
		}
	}
	return all
}

// joined splits a sentence into its parts.
func joined(line string) []string { return strings.Split(joints.ReplaceAllString(line, "\n"), "\n") }

// planned turns a reason, such as "deletes files", into one for what is only planned.
func planned(why string) string {
	verb, rest, _ := strings.Cut(why, " ")
	switch {
	case strings.HasSuffix(verb, "ies"):
		verb = strings.TrimSuffix(verb, "ies") + "y"
	case strings.HasSuffix(verb, "shes"), strings.HasSuffix(verb, "ches"):
		verb = strings.TrimSuffix(verb, "es")
	default:
		verb = strings.TrimSuffix(verb, "s")
	}
	return strings.TrimSpace("plans to " + strings.Replace(verb+" "+rest, "or stops ", "or stop ", 1))
}
