package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// A rule that nod proposes can be pasted into the settings. The pasted rule covers the same calls as a grant
// with this rule.
func TestAProposedRuleCanBePasted(t *testing.T) {
	p := preset(t, "")
	calls := []policy.Call{
		bash(t, "npm test"), bash(t, "npm test -- -u"), bash(t, "npm test < x"), bash(t, "make check"), bash(t, "mkdir -p 'a b'"), bash(t, "cd src && mkdir -p 'a b'"), bash(t, "cp a.go b.go"),
		call(t, "Edit", map[string]any{"file_path": project + "/src/a b.go"}), call(t, "Edit", map[string]any{"file_path": project + "/src/.git/hooks/x"}), call(t, "TodoWrite", map[string]any{}),
	}
	for _, c := range calls {
		for _, r := range p.Propose(c) {
			granted, pasted := p.With(r), pol(t, schemas.Permissions{Allow: []string{r.String()}})
			require.Equal(t, policy.Allow, pasted.Check(c).Effect, r.String())
			for _, other := range calls {
				assert.Equal(t, granted.Check(other).Effect, pasted.Check(other).Effect, "%s: %s", r.String(), other.Input)
				other.Cwd, other.Project = "/elsewhere", "/elsewhere"
				assert.Equal(t, granted.Check(other).Effect, pasted.Check(other).Effect, "%s elsewhere: %s", r.String(), other.Input)
			}
		}
	}
}

// A rule that names a project yields to deny rules, ask rules and secrets. In a layer for certain agents, it
// covers only calls of these agents.
func TestARuleWithAPlaceOnlyAllows(t *testing.T) {
	rule := "Bash(npm test:*) in " + project
	assert.Equal(t, policy.Deny, pol(t, schemas.Permissions{Allow: []string{rule}, Deny: []string{"Bash(npm:*)"}}).Check(bash(t, "npm test")).Effect)
	assert.Equal(t, policy.Ask, pol(t, schemas.Permissions{Allow: []string{rule}, Ask: []string{"Bash(npm:*)"}}).Check(bash(t, "npm test")).Effect)
	assert.Equal(t, policy.Ask, pol(t, schemas.Permissions{Allow: []string{rule}}).Check(bash(t, "npm test .env")).Effect)
	layered, err := policy.New(schemas.Permissions{}, schemas.PolicyLayer{Match: schemas.PolicyMatch{Agents: []string{"other"}}, Permissions: schemas.Rules{Allow: []string{rule}}})
	require.NoError(t, err)
	assert.Equal(t, policy.Ask, layered.Check(bash(t, "npm test")).Effect)
	for _, list := range []schemas.Permissions{{Ask: []string{rule}}, {Deny: []string{rule}}} {
		_, err := policy.New(list)
		assert.ErrorContains(t, err, "can only allow")
	}
}

// If nod cannot read all of a rule, or if the rule could cover no call, nod refuses the rule.
func TestARuleWithAnUnreadablePlaceIsRefused(t *testing.T) {
	for rule, want := range map[string]string{
		"Bash(npm test) in ./app":           "no full path",
		"Bash(npm test) in /app/":           "no full path",
		"Bash(npm test) in /app/../x":       "no full path",
		"Bash(npm test) at /x in /app":      "not in the project",
		"Bash(npm test) at /app or /x":      "no full path",
		"Bash(npm test) in /app or so":      "cannot read it",
		"Bash(npm test) in /my app":         "cannot read it",
		"Bash(npm *) in /app":               "cannot read it",
		"Bash in /app":                      "covers no command",
		"Edit in /app":                      "covers no file",
		"Edit(src/) in /app":                "no full path",
		"Edit(/app/a) at /app":              "only a rule for a command",
		"WebFetch in /app":                  "web address",
		"mcp__notes__add(x) in /app":        "no patterns",
		"run_shell_command(npm ci) in /app": "cannot read it",
		"run_shell_command(make) in /app":   "covers no command",
	} {
		_, err := policy.New(schemas.Permissions{Allow: []string{rule}})
		assert.ErrorContains(t, err, want, rule)
	}
}
