package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"
	"reflect"
	"strings"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// errUnchanged is the error of a change to which the user did not agree.
var errUnchanged = errors.New("nothing was changed")

// addPolicy adds suggested rules to the allow rules of settings.json, and applies the file. Before
// that, it prints the change and, unless yes is set, asks the user.
func (e *env) addPolicy(path string, suggestions []policy.Suggestion, yes bool) error {
	if !yes && !e.interactive() {
		return fmt.Errorf("%w: there is no terminal to ask on; --yes adds the rules without asking", errUnchanged)
	}
	planned, err := e.planPolicy(path, "", suggestions, nil)
	if err != nil {
		return err
	}
	if !planned.Changed() {
		fmt.Fprintf(e.stdout, "%s has this already.\n", planned.Path)
		return nil
	}
	fmt.Fprintln(e.stdout)
	for line := range strings.Lines(planned.Diff()) {
		fmt.Fprintln(e.stdout, people.Line(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")))
	}
	fmt.Fprintln(e.stdout)
	if !yes && !e.agree("Change "+planned.Path+", and put it in force?") {
		return errUnchanged
	}
	return e.writeSettings(planned)
}

// planPolicy returns the change of settings.json that adds suggested and imported rules and, unless
// preset is empty, sets a preset. It refuses rules for calls that this user may not allow. It also
// refuses a file whose settings are not in force, because applying the file would change more than the
// rules.
func (e *env) planPolicy(path, preset string, suggestions []policy.Suggestion, imported []hostRules) (hook.Change, error) {
	return e.planSettings(path, func(s *schemas.Settings) (members []member, err error) {
		if preset != "" {
			if err := mayAllow(s, schemas.RiskMedium, ""); err != nil {
				return nil, fmt.Errorf("%w: the preset %s: %w", errUnchanged, preset, err)
			}
			members = append(members, member{"/permissions/preset", preset})
		}
		more := settingsWith(imported)
		for _, suggestion := range suggestions {
			if err := mayAllow(s, suggestion.Risk, suggestion.Rule.Project); err != nil {
				return nil, fmt.Errorf("%w: %s: %w", errUnchanged, suggestion.Rule.Quoted(), err)
			}
			more.Permissions.Allow = union(more.Permissions.Allow, []string{suggestion.Rule.String()})
		}
		return append(members, additions(s, more)...), e.inForce(s)
	})
}

// mayAllow returns an error if this user may not add, at the terminal, a lasting allow for calls of
// this risk in a project. An empty project means every project. A rule in the settings allows the calls
// of all agents and hosts, so that an approver for only some agents or hosts may not add one.
func mayAllow(s *schemas.Settings, risk schemas.Risk, project string) error {
	u, err := user.Current()
	if err != nil {
		return fmt.Errorf("find this user's name: %w", err)
	}
	who, ok := s.Approver(schemas.ConnectorTerminal, schemas.From{UserID: u.Username})
	switch {
	case !ok:
		return fmt.Errorf("%s is no approver at the terminal: see nod approvers", u.Username)
	case !who.UpTo(risk):
		return fmt.Errorf("%s may allow calls up to risk %s, and the rule is for calls of risk %s", who.Name, who.MaxRisk, risk)
	case !rules.Matches(who.For, "", project, ""):
		return fmt.Errorf("%s may not allow calls of every agent and host in %s", who.Name, cmp.Or(project, "every project"))
	}
	for _, c := range s.Confirms() {
		if c.Wants(risk) && (c.CodeWord() || !c.Accepts(schemas.ConnectorTerminal)) {
			return fmt.Errorf("allowing calls of risk %s takes %s: allow such a call from now on at the next question about it", risk, c.String())
		}
	}
	return nil
}

// inForce returns an error if a running nod uses other settings than those in settings.json.
func (e *env) inForce(s *schemas.Settings) error {
	ctx, owner, done, err := e.owner()
	if errors.Is(err, bus.ErrNotRunning) {
		return nil
	}
	if err != nil {
		return err
	}
	defer done()
	state, err := owner.Settings(ctx)
	if err != nil {
		return err
	}
	same, err := equalJSON(s, state.Settings)
	if err != nil {
		return err
	}
	if !same {
		return fmt.Errorf("%w: nod runs with other settings than those of this file: apply it first (nod settings apply), or name the file of the running settings with --settings", errUnchanged)
	}
	return nil
}

// equalJSON reports whether two JSON values differ only in spaces and in the order of members.
func equalJSON(a, b any) (bool, error) {
	var trees [2]any
	for i, v := range []any{a, b} {
		raw, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(raw, &trees[i])
		}
		if err != nil {
			return false, fmt.Errorf("compare settings: %w", err)
		}
	}
	return reflect.DeepEqual(trees[0], trees[1]), nil
}
