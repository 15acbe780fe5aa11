package rules

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

// NotImported is a rule that was not imported, and the reason.
type NotImported struct {
	List string `json:"list"`
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// ImportClaudeCode imports the rules of a Claude Code settings file. It returns as NotImported the rules
// that nod cannot parse, and the allow rules that would allow too much in nod. The error means that the
// argument is not a settings file.
func ImportClaudeCode(settings []byte) (schemas.Permissions, []NotImported, error) {
	var file struct {
		Permissions struct {
			Allow, Ask, Deny      []string
			DefaultMode           string   `json:"defaultMode"`
			AdditionalDirectories []string `json:"additionalDirectories"`
		} `json:"permissions"`
	}
	var in ruleImport
	if err := json.Unmarshal(settings, &file); err != nil {
		return in.rules, nil, fmt.Errorf("read Claude Code's settings: %w", err)
	}
	in.takeRules(denyList, file.Permissions.Deny...)
	in.takeRules(askList, file.Permissions.Ask...)
	in.takeRules(allowList, file.Permissions.Allow...)
	if m := file.Permissions.DefaultMode; m != "" && m != "default" {
		in.leaveOut("defaultMode", m, "nod has presets instead: see nod policy presets")
	}
	for _, d := range file.Permissions.AdditionalDirectories {
		in.leaveOut("additionalDirectories", d, "nod asks for edits outside the project: write a rule such as Edit(/"+d+"/**)")
	}
	return in.rules, in.left, nil
}

const (
	allowList = "allow"
	askList   = "ask"
	denyList  = "deny"
)

type ruleImport struct {
	rules schemas.Permissions
	left  []NotImported
}

func (in *ruleImport) leaveOut(list, rule, why string) {
	in.left = append(in.left, NotImported{list, rule, why})
}

// takeRules imports the rules that nod can parse. It does not import allow rules that would allow too much.
func (in *ruleImport) takeRules(list string, rules ...string) {
	into := map[string]*[]string{allowList: &in.rules.Allow, askList: &in.rules.Ask, denyList: &in.rules.Deny}[list]
	for _, text := range rules {
		text = strings.TrimSpace(text)
		why := ""
		r, err := Parse(text)
		if err != nil {
			why = strings.TrimPrefix(err.Error(), fmt.Sprintf("%q: ", text))
		} else if r.Placed != nil {
			why = "only nod has rules with a place, so the host never applied it"
		} else if list == allowList {
			why = unbounded(&r)
		}
		if why != "" {
			in.leaveOut(list, text, why)
			continue
		}
		*into = append(*into, text)
	}
}

// unbounded returns the reason why an allow rule would allow too much in nod. If there is no
// reason, it returns "".
func unbounded(r *Rule) string {
	if _, pattern, _ := strings.Cut(r.Text, "("); tools.Named(r.tool).Kind != tools.Shell {
		if r.root == 'p' && strings.HasPrefix(pattern, "/") {
			return "in Claude Code this path starts at the directory of the settings file, in nod at every project: write it as //abs/path or ./path"
		}
		return ""
	}
	if r.argv == nil {
		return "it allows every command"
	}
	switch c := commands.Entry(commands.ProgramName(r.argv[0])); {
	case r.prefix && len(r.argv) == 1 && c.RunsAnything():
		return "it allows running any other command"
	case commands.ProgramName(r.argv[0]) == "nod":
		return shell.OwnCommandDenied
	}
	return ""
}
