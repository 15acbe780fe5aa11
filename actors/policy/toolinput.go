package policy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/actors/policy/weburl"
	"github.com/nodbus/nod/schemas"
)

// inputField is a text in the input of a tool, with the name of the field that holds it.
type inputField struct{ name, text string }

// fieldsOf returns the texts of an input at any depth, in the order of their fields' names. If the input has
// more than maxInputTexts, the rest is missing.
func fieldsOf(input []byte) (all []inputField) {
	var whole any
	if json.Unmarshal(input, &whole) != nil {
		return nil // nod asks about such an input in any case
	}
	collectFields("", whole, &all)
	return all
}

func collectFields(name string, v any, all *[]inputField) {
	switch v := v.(type) {
	case string:
		if len(*all) < maxInputTexts {
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

// wholeCommand returns the command line of a program in one field whose words are in another field of the same
// object.
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

// maxJudged limits the reasons that the input of a tool adds to a verdict. People read only a few.
const maxJudged = 6

// judgeInput raises the risk of a call of a tool that nod does not know by what its input holds. It never lowers
// a risk, and allows nothing.
func (ev *evaluation) judgeInput() {
	for _, f := range fieldsOf(ev.call.Input) {
		text := strings.TrimSpace(f.text)
		if strings.Contains(text, "://") && !strings.ContainsAny(text, " \t\n") {
			ev.addFaults(weburl.OfWord(text, false))
		}
		if len(ev.verdict.Reasons) >= maxJudged {
			continue
		}
		switch tools.ContentOf(f.name) {
		case tools.CommandContent:
			ev.judgeCode(text, commands.ShellCode, commands.SQLCode, commands.ProgramCode)
		case tools.CodeContent:
			ev.judgeCode(text, commands.SQLCode, commands.ProgramCode)
		case tools.QueryContent:
			ev.judgeCode(text, commands.SQLCode, commands.MongoCode)
		case tools.PathContent:
			ev.judgePath(text)
		case tools.PlanContent:
			ev.addAssessment(ev.pol.judgePlan(text, *ev.location))
		}
	}
}

func (ev *evaluation) judgeCode(text string, langs ...commands.Language) {
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

// judgePath raises the risk if a text that is probably a path names a secret, or a place outside the project.
func (ev *evaluation) judgePath(text string) {
	at := strings.TrimPrefix(text, "file://")
	if at == "" || strings.Contains(at, "://") || strings.ContainsAny(at, "\n\t") {
		return
	}
	slashed := pathname.Slashes(at)
	switch leads := pathname.IsAbs(slashed) || strings.HasPrefix(at, "~") || strings.Contains("/"+slashed+"/", "/../"); {
	case slices.ContainsFunc(pieces(at), func(p string) bool { return ev.pol.shell.Secrets.MayBeListed(p, ev.location, false) }):
		ev.raise(schemas.RiskHigh, touchesSecret)
		ev.addTarget(touchesSecret, at)
	case leads && ev.location.Project != "" && !ev.location.InProject(at):
		ev.raise(schemas.RiskMedium, schemas.OutsideProject)
		ev.addTarget(schemas.OutsideProject, at)
	}
}
