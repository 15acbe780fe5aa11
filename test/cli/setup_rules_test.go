package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// setupPane runs nod setup at a terminal, in a Go project of a home with Claude Code in it, up to the
// question whether to install the hook.
func setupPane(t *testing.T, m *rig.Machine, before string, past string) (p *rig.Pane, project string) {
	require.NoError(t, os.WriteFile(filepath.Join(m.Dir, "settings.json"), rig.Apart(before), 0o600))
	m.StartNod()
	home := t.TempDir()
	project = filepath.Join(home, "app")
	require.NoError(t, os.MkdirAll(filepath.Join(project, ".git"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(project, "go.mod"), []byte("module app\n"), 0o600))
	if past != "" {
		require.NoError(t, os.MkdirAll(filepath.Join(home, ".claude", "projects", "app"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(home, ".claude", "projects", "app", "s1.jsonl"), []byte(past), 0o600))
	}
	testprogram.Write(t, home+"/bin/claude", "echo '2.1.329 (Claude Code)'")
	p = m.NewPane(t, 160, 70, fmt.Sprintf("cd %[3]s && HOME=%[1]s CLAUDE_CONFIG_DIR= CODEX_HOME= PATH=%[1]s/bin:$PATH %[2]s setup --no-service --wait 1m; cat", home, m.Nod, project))
	p.Shows("settings.json? [y/N]")
	p.Types("y", "Enter")
	return p, project
}

func settingsInForce(t *testing.T, m *rig.Machine) schemas.Settings {
	shown, stderr, code := m.Run("settings", "show", "--json")
	require.Zero(t, code, stderr)
	var state schemas.SettingsState
	require.NoError(t, json.Unmarshal([]byte(shown), &state), shown)
	return state.Settings
}

const whichOffers = "Which of them (numbers such as 1 3, all, or Enter for none)?"

// nod setup offers a preset and rules, and changes only the settings that the user chose and has seen.
func TestSetupOffersAPresetAndRules(t *testing.T) {
	t.Parallel()
	offered := "project"
	if level, _ := contain.Support(); level == contain.Namespaces {
		offered = "contained"
	}
	for name, c := range map[string]struct {
		before string
		keys   []string // in reply to the list
		agrees string
		preset string
		allow  string // the rule of the project's runner, if it must be in force
	}{
		"all":                        {`{}`, []string{"a", "l", "l"}, "y", offered, ""},
		"an empty line":              {`{}`, nil, "", "", ""},
		"a change that is not meant": {`{}`, []string{"1"}, "n", "", ""},
		"a preset is chosen already": {`{"permissions":{"preset":"readers"}}`, []string{"1"}, "y", "readers", "Bash(go test:*) in "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := rig.NewMachine(t)
			p, project := setupPane(t, m, c.before, "")
			p.Shows(whichOffers)
			p.Types(append(c.keys, "Enter")...)
			if c.agrees != "" {
				p.Shows("and put it in force? [y/N]")
				p.Types(c.agrees, "Enter")
			}
			p.Shows("A question is on its way")
			s := settingsInForce(t, m)
			require.Equal(t, c.preset, s.Permissions.Preset)
			if c.allow != "" {
				require.Contains(t, s.Permissions.Allow, c.allow+project)
			}
			if c.preset == "" {
				require.Empty(t, s.Permissions.Allow)
			}
		})
	}
}

// Past sessions are read only if the user agrees. They show the number of questions by preset, and the
// rules that would have spared them.
func TestSetupReadsPastSessionsWithConsent(t *testing.T) {
	t.Parallel()
	past := `{"type":"assistant","sessionId":"s1","cwd":"/p","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"make lint"}}]}}
{"type":"assistant","sessionId":"s1","cwd":"/p","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"make lint FIX"}}]}}
{"type":"assist`
	for name, agrees := range map[string]bool{"yes": true, "no": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := rig.NewMachine(t)
			p, _ := setupPane(t, m, `{"permissions":{"preset":"readers"}}`, past)
			p.Shows("Read them? [y/N]")
			p.Types(map[bool]string{true: "y", false: "n"}[agrees], "Enter")
			p.Shows(whichOffers)
			screen := p.Screen()
			if !agrees {
				require.NotContains(t, screen, "make lint")
				require.NotContains(t, screen, "past sessions, by preset")
				return
			}
			require.Contains(t, screen, "Questions in each of your 1 past sessions, by preset (readers is in force)")
			require.Contains(t, screen, "1 files could not be read whole")
			require.Contains(t, screen, "Bash(make lint:*) in /p")
			require.Contains(t, screen, "would have spared 2 of your questions")
		})
	}
}

// nod setup changes no settings.json whose settings are not in force: applying it would change more.
func TestSetupLeavesOtherSettingsInForce(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	p, _ := setupPane(t, m, `{}`, "")
	p.Shows(whichOffers)
	settings := filepath.Join(t.TempDir(), "team.json")
	require.NoError(t, os.WriteFile(settings, []byte(`{"permissions":{"deny":["Bash(make:*)"]}}`), 0o600))
	_, stderr, code := m.Run("settings", "apply", settings)
	require.Zero(t, code, stderr)
	p.Types("1", "Enter")
	p.Shows("nod runs with other settings than those of this file")
	p.Shows("A question is on its way")
	require.Equal(t, []string{"Bash(make:*)"}, settingsInForce(t, m).Permissions.Deny)
}
