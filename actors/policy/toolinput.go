package policy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/actors/policy/weburl"
	"github.com/nodbus/nod/schemas"
)

// inputField is a text in a tool's input, with the name of the field that has it.
type inputField struct{ name, text string }

// fieldsOf returns the texts of an input at any depth. The fields of an object are sorted by name, so the
// order is always the same. After maxInputTexts texts, fieldsOf returns only texts with a URL.
func fieldsOf(input []byte) (all []inputField) {
	var whole any
	if json.Unmarshal(input, &whole) != nil {
		return nil // nod asks about an input that is not JSON, so its texts do not matter
	}
	collectFields("", whole, &all)
	return all
}

func collectFields(name string, v any, all *[]inputField) {
	switch v := v.(type) {
	case string:
		if len(*all) < maxInputTexts || strings.Contains(v, "://") {
			*all = append(*all, inputField{name, v})
		}
	case []any:
		if words, ok := allTexts(v); ok && len(words) > 1 && tools.ContentOf(name) == tools.CommandContent {
			collectFields(name, schemas.ShellLine(words), all)
			return
		}
		for _, one := range v {
			collectFields(name, one, all)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			one := v[key]
			if line, ok := wholeCommand(key, v); ok {
				one = line
			}
			collectFields(key, one, all)
		}
	}
}

func allTexts(list []any) (texts []string, ok bool) {
	for _, one := range list {
		text, isText := one.(string)
		if !isText {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, true
}

// wholeCommand returns a command line if one field of an object has a program and another field has the
// program's arguments.
func wholeCommand(key string, object map[string]any) (line string, ok bool) {
	program, isText := object[key].(string)
	if !isText || tools.ContentOf(key) != tools.CommandContent {
		return "", false
	}
	for _, other := range []string{"args", "arguments", "argv"} {
		if list, isList := object[other].([]any); isList {
			words, ok := allTexts(list)
			return program + " " + schemas.ShellLine(words), ok
		}
	}
	return "", false
}

// The limits for judging the risk of a call of a tool that nod does not know. The number of reasons is limited
// because people read only a few. The bytes are limited because the engine checks one call after another. An
// answer for later calls has its own limits, such as maxInputBytes.
const (
	maxJudged    = 6
	maxCommands  = 8 << 10
	maxCode      = 32 << 10
	maxPath      = 4 << 10 // no file has a longer path
	maxPaths     = 8 << 10
	maxAddresses = 8 << 10
)

// inputBudget has the numbers of bytes that nod may still judge, for each kind of text.
type inputBudget struct{ commands, code, paths, addresses int }

// take reduces a budget by the bytes of a text. It returns false if the budget is too small.
func take(left *int, text string) bool {
	*left -= len(text)
	return *left >= 0
}

const tooLong = "is too long to judge"

// judgeInput judges the input of a tool that nod does not know, and raises the risk of the call accordingly.
// It never lowers a risk, and allows nothing.
func (ev *evaluation) judgeInput() {
	left := inputBudget{maxCommands, maxCode, maxPaths, maxAddresses}
	for _, f := range fieldsOf(ev.call.Input) {
		text := strings.TrimSpace(f.text)
		if strings.Contains(text, "://") && !strings.ContainsAny(text, " \t\n") {
			ev.judgeAddress(text, &left.addresses)
		}
		if len(ev.verdict.Reasons) >= maxJudged {
			continue
		}
		switch tools.ContentOf(f.name) {
		case tools.CommandContent:
			ev.judgeCode(text, &left.commands, commands.ShellCode, commands.SQLCode, commands.ProgramCode)
		case tools.CodeContent:
			ev.judgeCode(text, &left.code, commands.SQLCode, commands.ProgramCode)
		case tools.QueryContent:
			ev.judgeCode(text, &left.code, commands.SQLCode, commands.MongoCode)
		case tools.PlanContent:
			if ev.mayJudge(text, &left.code) {
				ev.addAssessment(ev.pol.judgePlan(text, *ev.location))
			}
		case tools.PathContent:
			if len(text) <= maxPath && ev.mayJudge(text, &left.paths) {
				ev.judgePath(text)
			}
		}
	}
}

// mayJudge takes a text from a budget. If the budget is too small, mayJudge returns false, and the call counts
// as one of high risk.
func (ev *evaluation) mayJudge(text string, left *int) bool {
	enough := take(left, text)
	if !enough {
		ev.raise(schemas.RiskHigh, tooLong)
	}
	return enough
}

// judgeAddress judges a text that is a URL. Beyond the limit, each URL counts as one that sends a secret.
func (ev *evaluation) judgeAddress(text string, left *int) {
	if !take(left, text[:min(len(text), weburl.MaxSearched)]) {
		ev.addFaults([]weburl.Fault{weburl.TooMany})
		return
	}
	ev.addFaults(weburl.OfWord(text, false))
}

func (ev *evaluation) judgeCode(text string, left *int, langs ...commands.Language) {
	if !ev.mayJudge(text, left) {
		return
	}
	for _, lang := range langs {
		ev.addAssessment(ev.pol.shell.Judge(lang, text, *ev.location))
	}
}

func (ev *evaluation) addAssessment(a shell.Assessment) {
	for _, why := range a.Reasons {
		ev.raise(a.Risk, why)
	}
	for _, t := range a.Targets {
		if len(ev.verdict.Targets) < maxTargets && !slices.Contains(ev.verdict.Targets, t) {
			ev.verdict.Targets = append(ev.verdict.Targets, t)
		}
	}
}

// judgePath raises the risk if a text, probably a path, names a secret or a place outside the project.
func (ev *evaluation) judgePath(text string) {
	at := strings.TrimPrefix(text, "file://")
	if at == "" || strings.Contains(at, "://") || strings.ContainsAny(at, "\n\t") {
		return
	}
	switch {
	case slices.ContainsFunc(pieces(at), func(p string) bool { return ev.pol.shell.Secrets.MayBeListed(p, ev.location, false) }):
		ev.raise(schemas.RiskHigh, touchesSecret)
		ev.addTarget(touchesSecret, at)
	case spelledAsOutside(at) && ev.location.Project != "" && !ev.location.InProject(at):
		ev.raise(schemas.RiskMedium, schemas.OutsideProject)
		ev.addTarget(schemas.OutsideProject, at)
	}
}
