package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/cmd/nod/internal/checklist"
	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

// settingsOffer is what setup can change in settings.json.
type settingsOffer struct {
	presets []*checklist.Item
	past    string                   // a sentence with the number of past sessions on which the presets were tried; may be empty
	rules   func() []*checklist.Item // the rules that are still worth offering under the chosen preset
	change  func() *setupChange      // the change of settings.json by the chosen items; nil if they change nothing
}

// settingsChoice returns the presets and rules to choose from. It offers rules for this project's builds and
// tests, rules that would have spared past questions, and the agent programs' own rules.
func (c *setupCmd) settingsChoice(e *env, past []policy.SessionCall) settingsOffer {
	s, err := e.settingsNow()
	var o *ruleOffers
	if err == nil {
		o, err = newRuleOffers(s, past)
	}
	if err != nil {
		none := func() []*checklist.Item { return nil }
		return settingsOffer{rules: none, change: func() *setupChange {
			return &setupChange{name: "settings.json", fault: err}
		}}
	}
	offer := settingsOffer{presets: o.presetItems, rules: o.rules, change: func() *setupChange { return o.change(e) }}
	if len(past) > 0 {
		offer.past = "Tried on " + schemas.Count(o.replayed[0].Sessions, "past session") + "."
	}
	return offer
}

// settingsNow returns the settings in force. If nod does not run, it returns those of settings.json.
func (e *env) settingsNow() (s *schemas.Settings, err error) {
	ctx, owner, done, err := e.owner()
	switch {
	case errors.Is(err, bus.ErrNotRunning):
		_, err = e.planSettings("", func(now *schemas.Settings) ([]member, error) { s = now; return nil, nil })
		return s, err
	case err != nil:
		return nil, err
	}
	defer done()
	state, err := owner.Settings(ctx)
	return &state.Settings, err
}

// ruleOffers are the presets and rules that setup offers.
type ruleOffers struct {
	settings    *schemas.Settings
	calls       []policy.Call
	replayed    []policy.Replayed // empty if there are no past sessions
	now         string            // the name of the preset in force
	presets     []string
	presetItems []*checklist.Item       // one item for each preset
	byPreset    map[string][]*ruleOffer // the offered rules of each preset
	imports     []*ruleOffer
}

// A ruleOffer is a rule to add, or the rules to import from one file.
type ruleOffer struct {
	*checklist.Item
	rule     *policy.Suggestion
	imported *hostRules
}

func newRuleOffers(s *schemas.Settings, past []policy.SessionCall) (o *ruleOffers, err error) {
	o = &ruleOffers{settings: s, now: cmp.Or(s.Permissions.Preset, policy.PresetReaders), byPreset: map[string][]*ruleOffer{}}
	for i := range past {
		o.calls = append(o.calls, past[i].Call)
	}
	if len(past) > 0 {
		if o.replayed, err = policy.Replay(past, s.Permissions, 0); err != nil {
			return nil, err
		}
	}
	if _, err := policy.New(s.Permissions, s.Policies...); err != nil {
		return nil, err
	}
	if mayAllow(s, schemas.RiskMedium, "") == nil {
		o.addPresets()
	}
	return o, o.addImports()
}

// addPresets adds the presets that this machine supports. The item of each preset shows the number of
// questions that it would have asked in past sessions.
func (o *ruleOffers) addPresets() {
	for _, p := range []struct{ name, allows string }{
		{policy.PresetDesign, "a short list of commands that only read"},
		{policy.PresetReaders, "commands that only read"},
		{policy.PresetProject, "also edits of the project's files"},
		{policy.PresetContained, "also builds, tests and other command lines that can lose no work: the kernel holds them to the project, without network"},
	} {
		if p.name == policy.PresetContained && p.name != o.now && !canContain() {
			continue // nod doctor says why this machine cannot contain commands
		}
		item := &checklist.Item{Text: p.name, Notes: []string{p.allows}, Detail: policy.Presets(), On: p.name == o.now}
		if item.On {
			item.Text += ", in force now"
		}
		for _, r := range o.replayed {
			if r.Preset == p.name {
				item.Notes = append(item.Notes, fmt.Sprintf("questions: up to %d in half of the sessions, up to %d in nine of ten", r.Median, r.P90))
			}
		}
		o.presets, o.presetItems = append(o.presets, p.name), append(o.presetItems, item)
	}
}

func (o *ruleOffers) preset() string {
	for i, item := range o.presetItems {
		if item.On {
			return o.presets[i]
		}
	}
	return o.now
}

func (o *ruleOffers) rules() (items []*checklist.Item) {
	for _, offer := range o.left() {
		items = append(items, offer.Item)
	}
	return items
}

// left returns the rules that are still worth offering under the chosen preset.
func (o *ruleOffers) left() []*ruleOffer {
	preset := o.preset()
	if _, known := o.byPreset[preset]; !known {
		permissions := o.settings.Permissions
		permissions.Preset = preset
		p, err := policy.New(permissions, o.settings.Policies...)
		if err != nil {
			return nil // cannot happen, because newRuleOffers has made the same policy with another preset
		}
		own := o.add(nil, "This project: "+tilde(here().Project), runnerRules(p))
		o.byPreset[preset] = o.add(own, "Your past sessions", p.Suggest(o.calls, suggestedRules))
	}
	return slices.Concat(o.byPreset[preset], o.imports)
}

// add adds suggested rules to the list. It leaves out rules that are in the list already, and rules that this
// user has no right to add.
func (o *ruleOffers) add(list []*ruleOffer, group string, suggestions []policy.Suggestion) []*ruleOffer {
	for _, suggestion := range suggestions {
		rule := suggestion.Rule.String()
		same := slices.IndexFunc(list, func(other *ruleOffer) bool { return other.Text == rule })
		if same >= 0 {
			list[same].Notes = append(list[same].Notes, spares(suggestion)...)
		}
		if same >= 0 || mayAllow(o.settings, suggestion.Risk, suggestion.Rule.Project) != nil {
			continue
		}
		notes := spares(suggestion)
		if n := len(suggestion.Also); n > 0 {
			notes = append(notes, "also: "+strings.Join(suggestion.Also, "; "))
		}
		list = append(list, &ruleOffer{rule: &suggestion, Item: &checklist.Item{
			Group: group, Text: rule, Notes: notes,
			Detail: strings.Join(slices.Concat([]string{"The rule, as a line of \"allow\" in settings.json:", "", "  " + suggestion.Rule.Quoted(), "", "Risk of the calls: " + string(suggestion.Risk)}, notes), "\n"),
		}})
	}
	return list
}

// spares returns a line with the number of past questions that a rule would have spared, or nil.
func spares(s policy.Suggestion) []string {
	if s.Spares == 0 {
		return nil
	}
	return []string{"would have spared " + schemas.Count(s.Spares, "question")}
}

// addImports adds the agent programs' own rules, for each program whose hook sees every tool call.
func (o *ruleOffers) addImports() error {
	for _, host := range hook.Hosts() {
		if install := (installCmd{Agent: host.Name}); !host.Present() || !install.seesAll() {
			continue
		}
		all, err := readHostRules(host.Name, "")
		if err != nil {
			return err
		}
		for _, r := range all {
			if len(r.rules.Allow) == 0 || len(additions(o.settings, settingsWith([]hostRules{r}))) == 0 {
				continue
			}
			var list, counts []string
			for _, l := range []struct {
				name  string
				rules []string
			}{{"allow", r.rules.Allow}, {"ask", r.rules.Ask}, {"deny", r.rules.Deny}} {
				if len(l.rules) > 0 {
					counts = append(counts, fmt.Sprintf("%d %s", len(l.rules), l.name))
					list = append(append(list, l.name+":"), l.rules...)
				}
			}
			if len(r.left) > 0 {
				counts = append(counts, fmt.Sprintf("%d cannot be taken over", len(r.left)))
			}
			o.imports = append(o.imports, &ruleOffer{imported: &r, Item: &checklist.Item{
				Group: "Rules of " + host.Agent, Text: "all in " + tilde(r.file), Detail: strings.Join(list, "\n"),
				Notes: []string{strings.Join(counts, ", ")},
			}})
		}
	}
	return nil
}

// change returns the change of settings.json by the chosen items, or nil if they change nothing.
func (o *ruleOffers) change(e *env) *setupChange {
	preset := o.preset()
	if preset == o.now {
		preset = ""
	}
	s := &setupChange{name: "settings.json"}
	var effects []string
	if preset != "" {
		effects = append(effects, "the preset "+preset)
	}
	var suggestions []policy.Suggestion
	var imports []hostRules
	for _, offer := range o.left() {
		switch {
		case !offer.On:
			continue
		case offer.rule != nil:
			suggestions = append(suggestions, *offer.rule)
		default:
			imports = append(imports, *offer.imported)
		}
		s.parts = append(s.parts, offer.Text)
		if offer.imported != nil { // the summary shows what a project's file allows, because anyone may have written the file
			for _, rule := range offer.imported.rules.Allow {
				s.parts = append(s.parts, "  allows "+rule)
			}
		}
	}
	if len(suggestions) > 0 {
		effects = append(effects, schemas.Count(len(suggestions), "rule"))
	}
	if len(imports) > 0 {
		effects = append(effects, "the rules of "+schemas.Count(len(imports), "file"))
	}
	if len(effects) == 0 {
		return nil
	}
	s.effect = "settings.json: " + strings.Join(effects, ", ")
	plan := func() (hook.Change, error) { return e.planPolicy("", preset, suggestions, imports) }
	planned, err := plan()
	s.paths, s.diff, s.fault = tilde(planned.Path), planned.Diff(), err
	s.apply = func() error {
		now, err := plan()
		if err != nil || !bytes.Equal(now.Before, planned.Before) || !bytes.Equal(now.After, planned.After) {
			return cmp.Or(err, errChangedMeanwhile)
		}
		return e.writeSettings(planned)
	}
	return s
}

// canContain reports whether this machine and one of its agent programs support the preset contained.
func canContain() bool {
	level, _ := contain.Support()
	return level == contain.Namespaces && changesInputHere()
}

// suggestedRules bounds the rules from past sessions that setup offers.
const suggestedRules = 5

// changesInputHere reports whether an agent program on this machine lets a hook change a call before
// the call runs.
func changesInputHere() bool {
	for _, host := range hook.Hosts() {
		if (host.ChangesInput || host.ChangesSince != "") && host.Present() {
			return true
		}
	}
	return false
}

// runnerRules returns rules for the usual builds and tests of the project in the current directory. It
// leaves out builds and tests that run without a question.
func runnerRules(p *policy.Policy) (all []policy.Suggestion) {
	call := here()
	if home, err := os.UserHomeDir(); err != nil || call.Project == "" || sameDir(call.Project, home) {
		return nil
	}
	call.Cwd, call.ToolName, call.ActionType = call.Project, "Bash", schemas.ActionCommand
	for _, runner := range []struct {
		file  string
		lines []string
	}{
		{"go.mod", []string{"go test ./...", "go build ./...", "go vet ./..."}},
		{"package.json", []string{"npm test", "npm run build"}},
		{"Cargo.toml", []string{"cargo test", "cargo build"}},
		{"Makefile", []string{"make test"}},
		{"pyproject.toml", []string{"pytest"}},
	} {
		if _, err := os.Stat(filepath.Join(call.Project, runner.file)); err != nil {
			continue
		}
		for _, line := range runner.lines {
			input, err := schemas.Encode(map[string]string{"command": line})
			if err != nil {
				continue // cannot happen, because a constant can always be encoded
			}
			call.Input = input
			if suggestion, ok := p.SuggestLike(call); ok {
				all = append(all, suggestion)
			}
		}
	}
	return all
}
