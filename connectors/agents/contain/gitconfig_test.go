package contain

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGitSettingsLoseTheirLogins(t *testing.T) {
	in := `[user]
	name = Ann
[credential "https://x"]
	helper = !echo hunter2
	username = hunter2
[core]
	hooksPath = hooks
[http "https://x"] extraHeader = "Authorization: hunter2"
	proxy = http://me:hunter2@proxy:8080
	cookieFile = hunter2
[remote "origin"]
	url = https://hunter2:hunter2@example.com/a.git
[url "https://hunter2@example.com/"]
	insteadOf = gh:
[sendemail]
	smtpPass = hunter2 \
  more hunter2
	smtpUser = ann
`
	out := withoutLogins(in)
	assert.NotContains(t, out, "hunter2")
	for _, kept := range []string{"name = Ann", "hooksPath = hooks", "url = https://example.com/a.git", "proxy = http://proxy:8080", "smtpUser = ann", "insteadOf = gh:"} {
		assert.Contains(t, out, kept)
	}
	clean := "[core]\n\tbare = false\n"
	assert.Equal(t, clean, withoutLogins(clean))
}

func TestSettingsThatRunProgramsAreFound(t *testing.T) {
	for config, want := range map[string]bool{
		"[core]\n\tfsmonitor = x":                true,
		"[core] fsmonitor = x":                   true,
		"[alias]\n\tx = !y":                      true,
		"[filter \"a\"]\n\tclean = x":            true,
		"[diff.a]\n\ttextconv = x":               true,
		"[core]\n\tsshCommand = x":               true,
		"[merge \"a\"]\n\tdri\\\nver = x":        true,
		"[core]\n\tbare = true":                  false,
		"[remote \"a\"]\n\turl = x":              false,
		"# [core]\n# fsmonitor = x\n; [alias] a": false,
	} {
		found := false
		for _, s := range parseGitConfig(config) {
			found = found || s.runsProgram()
		}
		assert.Equal(t, want, found, config)
	}
}
