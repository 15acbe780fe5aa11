package policy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/nodbus/nod/schemas"
)

// unread is why a rule is left out that says more than nod can take over.
const onlyPrefixRules = "nod takes over rules about the beginning of a shell command alone"

// plainPrefix are what a rule about the beginning of a command may consist of.
var plainPrefix = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+(?: [A-Za-z0-9_./:=@%+,-]+)*$`)

// cautious is what is taken over where rules that restrict were all read: an allow
// may have been bounded by one that was not.
func (in *ruleImport) dropDoubtfulAllows() (schemas.Permissions, []NotImported, error) {
	if slices.ContainsFunc(in.left, func(n NotImported) bool { return n.List != allowList }) {
		for _, rule := range in.rules.Allow {
			in.leaveOut(allowList, rule, "it stands beside rules that nod does not read, which may forbid it")
		}
		in.rules.Allow = nil
	}
	return in.rules, in.left, nil
}

// takePrefix takes over what a host says of commands that begin so. text is the
// rule as the host has it.
func (in *ruleImport) takePrefix(list, prefix, text string) {
	if !plainPrefix.MatchString(prefix) {
		in.leaveOut(list, text, onlyPrefixRules)
		return
	}
	in.takeRules(list, "Bash("+prefix+":*)")
}

// ImportGemini takes over which shell commands a settings.json of Gemini CLI's
// allows, word by word where Gemini CLI goes by letters. The rest is named. It fails
// where settings is no such file.
func ImportGemini(settings []byte) (schemas.Permissions, []NotImported, error) {
	var file struct {
		Tools struct {
			Allowed []string `json:"allowed"`
		} `json:"tools"`
		Before []string `json:"allowedTools"` // the setting's former name
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

// geminiFields are those of a rule of Gemini CLI's that can be taken over. Any other
// one is a condition that nod's rule would not have.
var geminiFields = []string{"toolName", "commandPrefix", "decision", "priority", "denyMessage", "modes"}

// ImportGeminiPolicy does the same for a file of Gemini CLI's policies. Where it
// has a rule that asks or denies and cannot be taken over, none that allows is.
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

// geminiRead reports whether a rule is about the shell, whenever it is used.
func geminiReadable(r map[string]any) bool {
	for field := range r {
		if !slices.Contains(geminiFields, field) {
			return false
		}
	}
	tool := r["toolName"] // mostly left out beside a prefix
	modes := r["modes"]   // where Gemini CLI asks, at least
	return (tool == nil || slices.Equal(textList(tool), []string{"run_shell_command"})) && (modes == nil || slices.Contains(textList(modes), "default"))
}

// words is a text or several; nothing else is one.
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

// codexRule is one as Codex writes it when its user allows a command from then on.
// What is written otherwise, in a file that may be a program, is left out.
var codexRule = regexp.MustCompile(`^prefix_rule\(\s*pattern\s*=\s*(\[[^\[\]]*\])\s*,\s*decision\s*=\s*"(allow|prompt|forbidden)"\s*,?\s*\)\s*(?:#.*)?$`)

// ImportCodex takes over a file of Codex's rules as Codex writes them, a line each.
// Any other line is named, and none that allows is taken over beside it.
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
