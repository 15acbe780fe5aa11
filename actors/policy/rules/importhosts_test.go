package rules_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/schemas"
)

type importer func([]byte) (schemas.Permissions, []rules.NotImported, error)

// A rule of another host is imported if nod's rule allows no more than the host's rule. Any other
// rule is returned as NotImported.
func TestImportOtherHosts(t *testing.T) {
	for name, c := range map[string]struct {
		from importer
		file string
		want schemas.Permissions
		left int
	}{
		"Gemini": {rules.ImportGemini,
			`{"tools":{"allowed":["run_shell_command(npm test)","run_shell_command(git)","run_shell_command","read_file","run_shell_command(a && b)","run_shell_command(ls *)"],"core":["x"]},"allowedTools":["run_shell_command(wc)"]}`,
			schemas.Permissions{Allow: []string{"Bash(npm test:*)", "Bash(wc:*)"}}, 5},
		"Gemini, none": {rules.ImportGemini, `{}`, schemas.Permissions{}, 0},
		"Gemini's policies": {rules.ImportGeminiPolicy, `
[[rule]]
toolName = "run_shell_command"
commandPrefix = ["npm test", "wc"]
decision = "allow"
priority = 100
modes = ["default", "yolo"]
[[rule]]
commandPrefix = "git push"
decision = "ask_user"
[[rule]]
toolName = "run_shell_command"
commandPrefix = "curl"
decision = "deny"
denyMessage = "no"
[[rule]]
commandRegex = "make .*"
decision = "allow"
[[rule]]
toolName = "*"
decision = "allow"
[[rule]]
commandPrefix = "make docs"
decision = "allow"
modes = ["yolo"]
[[rule]]
commandPrefix = "make docs"
decision = "allow"
subagent = "x"
[[rule]]
toolName = ["run_shell_command", "write_file"]
commandPrefix = "make docs"
decision = "allow"
`, schemas.Permissions{Allow: []string{"Bash(npm test:*)", "Bash(wc:*)"}, Ask: []string{"Bash(git push:*)"}, Deny: []string{"Bash(curl:*)"}}, 5},
		"Gemini's policies, with one that nod cannot read": {rules.ImportGeminiPolicy, `
[[rule]]
commandPrefix = "npm"
decision = "allow"
[[rule]]
commandPrefix = "wc"
decision = "allow"
[[rule]]
commandRegex = "wc .*secret"
decision = "deny"
`, schemas.Permissions{}, 3},
		"Codex": {rules.ImportCodex, `# mine
prefix_rule(pattern=["npm", "test"], decision="allow")
prefix_rule( pattern = ["git","push"] , decision = "prompt" , ) # hm

prefix_rule(pattern=["curl"], decision="forbidden")
prefix_rule(pattern=["bash"], decision="allow")
prefix_rule(pattern=["a;b"], decision="allow")
prefix_rule(pattern=["a b"], decision="allow")
prefix_rule(pattern=[], decision="allow")
`, schemas.Permissions{Allow: []string{"Bash(npm test:*)"}, Ask: []string{"Bash(git push:*)"}, Deny: []string{"Bash(curl:*)"}}, 4},
		"Codex, with one that nod cannot read": {rules.ImportCodex, `prefix_rule(pattern=["wc"], decision="allow")
prefix_rule(pattern=["wc", ["a", "b"]], decision="forbidden")
`, schemas.Permissions{}, 2},
		"Codex, a program": {rules.ImportCodex, "for x in y:\n  prefix_rule(pattern=[\"wc\"], decision=\"allow\")\n", schemas.Permissions{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			perms, left, err := c.from([]byte(c.file))
			require.NoError(t, err)
			assert.Equal(t, c.want, perms)
			assert.Len(t, left, c.left, "%v", left)
			for _, l := range left {
				assert.NotEmpty(t, l.Why, l.Rule)
			}
			_, err = rules.Compile("imported", schemas.PolicyLayer{Permissions: schemas.Rules{Allow: perms.Allow, Ask: perms.Ask, Deny: perms.Deny}})
			require.NoError(t, err)
		})
	}
	for _, from := range []importer{rules.ImportGemini, rules.ImportGeminiPolicy} {
		_, _, err := from([]byte("{"))
		assert.ErrorContains(t, err, "Gemini CLI's")
	}
}
