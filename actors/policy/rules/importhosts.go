package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// onlyPrefixRules is the reason not to import a rule that is about something else than the beginning of a
// shell command.
const onlyPrefixRules = "nod imports only rules about the beginning of a shell command"

// plainPrefix matches the beginning of a command that has only plain words, with single spaces
// between the words.
var plainPrefix = lazyregexp.New(`^[A-Za-z0-9_./:=@%+,-]+(?: [A-Za-z0-9_./:=@%+,-]+)*$`)

// dropDoubtfulAllows removes all allow rules if an ask or deny rule was not imported, because this rule may
// be an exception to an allow rule. It returns the remaining rules, and all rules that are not imported.
func (in *ruleImport) dropDoubtfulAllows() (schemas.Permissions, []NotImported, error) {
	if slices.ContainsFunc(in.left, func(n NotImported) bool { return n.List != allowList }) {
		for _, rule := range in.rules.Allow {
			in.leaveOut(allowList, rule, "other rules, which nod cannot read, may forbid it")
		}
		in.rules.Allow = nil
	}
	return in.rules, in.left, nil
}

// takePrefix imports a host's rule for commands that begin with prefix. The argument text is the
// rule in the host's file.
func (in *ruleImport) takePrefix(list, prefix, text string) {
	if !plainPrefix.MatchString(prefix) {
		in.leaveOut(list, text, onlyPrefixRules)
		return
	}
	in.takeRules(list, "Bash("+prefix+":*)")
}

// ImportGemini imports the shell commands that a settings.json of Gemini CLI allows, and returns the other
// allowed tools as NotImported. The imported rules allow no more than Gemini CLI does, because Gemini CLI
// compares the beginning of the text letter by letter, and nod compares whole words. The error means that
// the argument is not a settings file.
func ImportGemini(settings []byte) (schemas.Permissions, []NotImported, error) {
	var file struct {
		Tools struct {
			Allowed []string `json:"allowed"`
		} `json:"tools"`
		Before []string `json:"allowedTools"` // the former name of tools.allowed
	}
	var in ruleImport
	if err := json.Unmarshal(settings, &file); err != nil {
		return in.rules, nil, fmt.Errorf("read Gemini CLI's settings: %w", err)
	}
	for _, text := range append(file.Tools.Allowed, file.Before...) {
		prefix, shell := strings.CutPrefix(text, "run_shell_command(")
		prefix, ends := strings.CutSuffix(prefix, ")")
		if !shell || !ends {
			in.leaveOut(allowList, text, onlyPrefixRules)
			continue
		}
		in.takePrefix(allowList, prefix, text)
	}
	return in.rules, in.left, nil
}

// geminiFields are the fields of a Gemini CLI rule that nod understands. nod does not import a rule with
// another field, because nod's rules cannot express the restriction in that field.
var geminiFields = []string{"toolName", "commandPrefix", "decision", "priority", "denyMessage", "modes"}

// ImportGeminiPolicy imports a policy file of Gemini CLI. It imports allow rules only if it can
// import every ask and deny rule.
func ImportGeminiPolicy(policies []byte) (schemas.Permissions, []NotImported, error) {
	var file struct {
		Rules []map[string]any `toml:"rule"`
	}
	var in ruleImport
	if _, err := toml.Decode(string(policies), &file); err != nil {
		return in.rules, nil, fmt.Errorf("read Gemini CLI's policies: %w", err)
	}
	for _, r := range file.Rules {
		decision, _ := r["decision"].(string)
		list := map[string]string{"allow": allowList, "ask_user": askList, "deny": denyList}[decision]
		text := fmt.Sprintf("%v %v", r["toolName"], r["commandPrefix"])
		prefixes := textList(r["commandPrefix"])
		if list == "" || len(prefixes) == 0 || !geminiReadable(r) {
			in.leaveOut(decision, text, onlyPrefixRules)
			continue
		}
		for _, prefix := range prefixes {
			in.takePrefix(list, prefix, text)
		}
	}
	return in.dropDoubtfulAllows()
}

// geminiReadable reports whether a rule is for the shell, and restricts only the command's prefix.
func geminiReadable(r map[string]any) bool {
	for field := range r {
		if !slices.Contains(geminiFields, field) {
			return false
		}
	}
	tool := r["toolName"] // a rule with a commandPrefix usually has no toolName
	modes := r["modes"]   // a rule with modes must include "default", the mode in which Gemini CLI asks its user
	return (tool == nil || slices.Equal(textList(tool), []string{"run_shell_command"})) && (modes == nil || slices.Contains(textList(modes), "default"))
}

// textList returns a string or a list of strings as a list. For any other value it returns nil.
func textList(v any) (all []string) {
	several, ok := v.([]any)
	if !ok {
		several = []any{v}
	}
	for _, one := range several {
		text, ok := one.(string)
		if !ok {
			return nil
		}
		all = append(all, text)
	}
	return all
}

// codexRule matches a rule in the form in which Codex itself writes rules. A rules file is a program
// and may contain rules in other forms, which nod does not import.
var codexRule = lazyregexp.New(`^prefix_rule\(\s*pattern\s*=\s*(\[[^\[\]]*\])\s*,\s*decision\s*=\s*"(allow|prompt|forbidden)"\s*,?\s*\)\s*(?:#.*)?$`)

// ImportCodex imports the rules in a Codex rules file. Each rule must be on one line, in the form in
// which Codex itself writes rules. It returns every other line as NotImported, except blank lines and
// comments. It imports allow rules only if nod can read all lines and import every ask and deny rule.
func ImportCodex(rules []byte) (schemas.Permissions, []NotImported, error) {
	var in ruleImport
	for line := range strings.Lines(string(rules)) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		found := codexRule.FindStringSubmatch(line)
		var argv []string
		if found == nil || json.Unmarshal([]byte(found[1]), &argv) != nil {
			in.leaveOut("rules", line, "nod reads rules as Codex writes them: prefix_rule(pattern=[\"…\"], decision=\"…\")")
			continue
		}
		list := map[string]string{"allow": allowList, "prompt": askList, "forbidden": denyList}[found[2]]
		if slices.ContainsFunc(argv, func(word string) bool { return strings.Contains(word, " ") }) {
			in.leaveOut(list, line, onlyPrefixRules)
			continue
		}
		in.takePrefix(list, strings.Join(argv, " "), line)
	}
	return in.dropDoubtfulAllows()
}
