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

// CheckPlan returns the verdict on an agent's plan. nod always asks about a plan. The reasons say which harm
// the plan's commands and words announce.
func (p *Policy) CheckPlan(c Call, plan string) Verdict {
	a := p.judgePlan(plan, c.location())
	return Verdict{
		Effect: Ask, Risk: schemas.HigherRisk(schemas.RiskMedium, a.Risk),
		Reasons: append(a.Reasons, "the agent may then act on its plan"), Targets: a.Targets,
	}
}

// judgePlan returns the harms of high risk that a plan announces. Their reasons begin with "plans to".
func (p *Policy) judgePlan(plan string, loc pathname.Location) shell.Assessment {
	out := shell.Assessment{Risk: schemas.RiskLow}
	add := func(why string) string {
		why = planned(why)
		if out.Risk = schemas.RiskHigh; !slices.Contains(out.Reasons, why) {
			out.Reasons = append(out.Reasons, why)
		}
		return why
	}
	read := readPlan(plan)
	for _, one := range read.code {
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
	for _, line := range read.prose {
		for i := range planWords {
			for _, at := range planWords[i].expr().FindAllStringIndex(line, maxPlanWords) {
				if said := line[max(0, at[0]-beforeAct):at[1]]; !denied.MatchString(said) && len(out.Reasons) < maxJudged {
					add(planWords[i].why)
				}
			}
		}
	}
	if len(plan) > maxPlan {
		out.Reasons = append(out.Reasons, "is too long to judge all of it")
	}
	return out
}

// planWords match announcements of grave acts in a plan's sentences, each with its reason.
var planWords = []struct {
	expr lazyregexp.Regexp
	why  string
}{
	{lazyregexp.New(`(?i)force[- ]?push`), "overwrites work that others may need"},
	{lazyregexp.New(`(?i)(?:drop|truncate|wipe|empty|delet)\w* (?:of )?(?:the |all |old |this )*(?:\w+ )?(?:tables?|databases?|schemas?|columns?|buckets?|clusters?|volumes?)\b`), "deletes a whole table or database"},
	{lazyregexp.New(`(?i)(?:publish|release)\w* (?:\S+ ){0,4}(?:to|on) (?:npm|pypi|crates\.io|rubygems|maven|docker ?hub|the registry)\b`), "publishes"},
	{lazyregexp.New(`(?i)(?:deploy|migrat|releas|roll)\w* (?:\S+ ){0,4}(?:to|on|in|against) (?:the )?prod(?:uction)?\b|\bagainst (?:the )?prod(?:uction)?\b`), "changes production"},
}

// denied matches words with which a plan says that it does not do something.
var denied = lazyregexp.New(`(?i)(?:\b(?:do not|don['’]t|never|without|avoid|no|not|instead of)\b[^,;:]{0,12})$|\b(?:do not|don['’]t|never|without|avoid|no|not|instead of)\b (?:\w+ )?(?:force|drop|truncat|wipe|empty|delet|publish|releas|deploy|migrat|roll|run|use|call|against)`)

type planPart struct {
	lang commands.Language
	text string
}

// planText is a plan, split into its commands and its sentences.
type planText struct {
	code  []planPart
	prose []string // lines of the plan without the words in backquotes
}

// The limits for reading a plan, in bytes or in the number of commands and matches.
const (
	maxPlan      = 16 << 10
	maxPlanLine  = 1 << 10 // the length of one command in a sentence
	maxPlanCode  = 200
	maxPlanWords = 20 // the number of matches of one expression in a line
	beforeAct    = 24 // the number of bytes before an act in which nod looks for a denial
)

var (
	prompt = lazyregexp.New(`^[ \t]*[$>#] `)
	// proseCommand matches a command in a sentence, for programs whose names are rarely used as English words.
	proseCommand = lazyregexp.New(`\b(?:git|npm|pnpm|yarn|kubectl|helm|terraform|tofu|docker|psql|mysql|curl|wget|scp|rsync|sudo|aws|gcloud|gh|rm|dropdb|redis-cli|cargo|twine|dd|mkfs) [-\w./:~@"'=*|$ ]+`)
	joints       = strings.NewReplacer(", ", "\n", "; ", "\n", ". ", "\n", " and ", "\n", " then ", "\n", " to ", "\n", " so ", "\n", " for ", "\n")
)

// readPlan finds the commands of a plan: in blocks of code, between backquotes and in sentences. A block in a
// programming language does not count, because it is text that the agent would write.
func readPlan(plan string) (out planText) {
	inBlock, name, block := false, "", strings.Builder{}
	add := func(text string, langs ...commands.Language) {
		if !inBlock {
			text = text[:min(len(text), maxPlanLine)]
		}
		for _, lang := range langs {
			if part := (planPart{lang, text}); len(out.code) < maxPlanCode && !slices.Contains(out.code, part) {
				out.code = append(out.code, part)
			}
		}
	}
	for line := range strings.SplitSeq(plan[:min(len(plan), maxPlan)]+"\n```", "\n") {
		switch fence := isFence(line); {
		case fence && !inBlock:
			inBlock, name = true, strings.ToLower(strings.TrimSpace(strings.Trim(strings.TrimSpace(line), "`~ ")))
		case fence:
			add(block.String(), languagesOfBlock(name)...)
			inBlock = false
			block.Reset()
		case inBlock:
			block.WriteString(prompt.ReplaceAllString(line, "") + "\n")
		default:
			out.sentence(line, add)
		}
	}
	return out
}

// isFence reports whether a line of a plan begins or ends a block of code.
func isFence(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~")
}

// languagesOfBlock returns the languages in which nod reads a block of code that a plan marks with this name.
func languagesOfBlock(name string) []commands.Language {
	switch name {
	case "", "sh", "bash", "shell", "zsh", "console", "shell-session", "terminal", "text":
		return []commands.Language{commands.ShellCode, commands.SQLCode}
	case "sql", "postgres", "postgresql", "mysql", "psql":
		return []commands.Language{commands.SQLCode}
	}
	return nil
}

// sentence adds the commands of a line to the plan's code, and the line's other words to its prose.
func (p *planText) sentence(line string, add func(text string, langs ...commands.Language)) {
	parts := strings.Split(line, "`")
	words := parts[0]
	for i := 1; i < len(parts); i += 2 {
		if i+1 < len(parts) {
			if !denied.MatchString(words) {
				add(parts[i], commands.ShellCode, commands.SQLCode)
			}
			words = parts[i+1]
			parts[0] += " " + words
		}
	}
	for part := range strings.SplitSeq(joints.Replace(parts[0]), "\n") {
		if command := proseCommand.FindString(part); command != "" && !denied.MatchString(part[:strings.Index(part, command)]) {
			add(strings.TrimSpace(command), commands.ShellCode)
		}
	}
	if low := strings.ToLower(line); len(p.prose) < maxPlanCode && slices.ContainsFunc(planHints, func(hint string) bool { return strings.Contains(low, hint) }) {
		p.prose = append(p.prose, parts[0])
	}
}

// planHints are cheap to find: each line that planWords match contains one of them.
var planHints = []string{"force", "drop", "truncat", "wip", "empt", "delet", "publish", "releas", "prod"}

// planned turns a reason such as "deletes files" into "plans to delete files".
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
