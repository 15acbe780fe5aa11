package cli

import (
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

const suggestedRule = "Bash(go test:*) in /p"

// nod policy suggest --apply shows the change of settings.json, and adds the rules only after the person
// answers yes.
func TestSuggestedRulesAreAdded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("agents/a.jsonl", transcript)
	r := b.policy("", "suggest", "agents", "--apply")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "there is no terminal to ask on")
	require.Contains(t, b.policy("", "suggest", "agents", "--yes").Err, "--yes is for --apply")

	p := b.NewPane(t, 120, 50, "cd "+b.work+" && "+b.Nod+" policy suggest agents --apply; cat")
	p.Shows("and put it in force? [y/N]")
	require.Regexp(t, `\+ +"allow": +\["`+regexp.QuoteMeta(suggestedRule)+`"\]`, p.Screen())
	require.NotContains(t, b.settings(), suggestedRule)
	p.Types("n", "Enter")
	p.Shows("nothing was changed")
	require.NotContains(t, b.settings(), suggestedRule)

	r = b.policy("", "suggest", "agents", "--apply", "--yes")
	require.Zero(t, r.Code, r.Err)
	require.Contains(t, r.Stdout, "nod applies it at its next start")
	require.Contains(t, b.settings(), suggestedRule)
	require.Contains(t, b.policy("", "suggest", "agents", "--apply", "--yes").Stdout, "There is no rule to add.")

	b.StartNod()
	require.Contains(t, settingsInForce(t, b.Machine).Permissions.Allow, suggestedRule)
}

// nod policy suggest --apply brings the rules into force in a running nod. It refuses a settings file that is
// not in force, because the other settings of the file would come into force too.
func TestSuggestedRulesComeIntoForce(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestSuggestedRulesAreAdded adds such rules")
	b := newBench(t)
	b.write("agents/a.jsonl", transcript)
	b.StartNod()
	team := b.write("team.json", `{"permissions":{"deny":["Bash(make:*)"]}}`)
	_, stderr, code := b.Run("settings", "apply", team)
	require.Zero(t, code, stderr)
	before := b.settings()
	r := b.policy("", "suggest", "agents", "--apply", "--yes")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "nod runs with other settings than those of this file")
	require.Equal(t, before, b.settings())

	r = b.policy("", "suggest", "agents", "--apply", "--yes", "--settings", team)
	require.Zero(t, r.Code, r.Err)
	s := settingsInForce(t, b.Machine)
	require.Equal(t, []string{suggestedRule}, s.Permissions.Allow)
	require.Equal(t, []string{"Bash(make:*)"}, s.Permissions.Deny)
}

// A person can add a rule only for calls that the person may allow at the terminal under the settings.
func TestSuggestedRulesKeepToThePersonsRights(t *testing.T) {
	t.Parallel()
	u, err := user.Current()
	require.NoError(t, err)
	me := `{"name":"Me","identities":[{"connector":"terminal","user_id":"` + u.Username + `"}]`
	for name, c := range map[string]struct{ settings, want string }{
		"no approver":     {`{"approvers":{"people":[]}}`, "is no approver at the terminal"},
		"a lower risk":    {`{"approvers":{"people":[` + me + `,"max_risk":"low"}]}}`, "Me may allow calls up to risk low, and the rule is for calls of risk medium"},
		"another project": {`{"approvers":{"people":[` + me + `,"for":{"projects":["/q/**"]}}]}}`, "Me may not allow calls of every agent and host in /p"},
		"some agents":     {`{"approvers":{"people":[` + me + `,"for":{"agents":["ada"]}}]}}`, "Me may not allow calls of every agent and host in /p"},
		"a second device": {`{"approvers":{"require":"second_device","people":[` + me + `},{"name":"P","identities":[{"connector":"telegram","user_id":"1"}]}]}}`, "takes a second device"},
		"a code word":     {`{"permissions":{"confirm":[{"risk":"medium","code_word_env":"W"}]},"approvers":{"people":[` + me + `}]}}`, "takes the code word"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.write("agents/a.jsonl", transcript)
			require.NoError(t, os.WriteFile(filepath.Join(b.Dir, "settings.json"), []byte(c.settings), 0o600))
			r := b.policy("", "suggest", "agents", "--apply", "--yes")
			require.Equal(t, 1, r.Code, r.Stdout)
			require.Contains(t, r.Err, "nothing was changed")
			require.Contains(t, r.Err, c.want)
			require.Equal(t, c.settings, b.settings())
		})
	}
}

func (b *bench) settings() string {
	b.T.Helper()
	data, err := os.ReadFile(filepath.Join(b.Dir, "settings.json"))
	require.NoError(b.T, err)
	return string(data)
}
