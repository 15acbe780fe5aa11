package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// setupPane is nod setup at a terminal, in a Go project. The home directory has Claude Code and Copilot CLI.
type setupPane struct {
	*rig.Pane
	m             *rig.Machine
	home, project string
}

// newSetupPane starts nod setup without the service, while nod runs. The string env has further environment
// variables for nod setup, and the string past is a transcript of a past session.
func newSetupPane(t *testing.T, width, height int, env, before, past string) *setupPane {
	m := rig.NewMachine(t)
	require.NoError(t, os.WriteFile(filepath.Join(m.Dir, "settings.json"), rig.Apart(before), 0o600))
	m.StartNod()
	return startSetup(t, m, width, height, "PATH=$HOME/bin:/usr/bin:/bin "+env, past, "--no-service")
}

func startSetup(t *testing.T, m *rig.Machine, width, height int, env, past, flags string) *setupPane {
	home := t.TempDir()
	p := &setupPane{m: m, home: home, project: filepath.Join(home, "app")}
	require.NoError(t, os.MkdirAll(filepath.Join(p.project, ".git"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(p.project, "go.mod"), []byte("module app\n"), 0o600))
	if past != "" {
		require.NoError(t, os.MkdirAll(filepath.Join(home, ".claude", "projects", "app"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(home, ".claude", "projects", "app", "s1.jsonl"), []byte(past), 0o600))
	}
	testprogram.Write(t, home+"/bin/claude", "echo '2.1.329 (Claude Code)'")
	testprogram.Write(t, home+"/bin/copilot", "echo '1.0.102'")
	p.Pane = m.NewPane(t, width, height, fmt.Sprintf("cd %s; export HOME=%s XDG_CONFIG_HOME= CLAUDE_CONFIG_DIR= CODEX_HOME=; %s %s setup --wait 1m %s; echo ended with $?; cat", p.project, home, env, m.Nod, flags))
	return p
}

// The method answers types a line in reply to each question. Each pair is a part of the question's text and
// the line to type.
func (p *setupPane) answers(pairs ...string) {
	for n := 0; n < len(pairs); n += 2 {
		p.Shows(pairs[n])
		if pairs[n+1] != "" {
			p.Types("-l", pairs[n+1])
		}
		p.Types("Enter")
	}
}

func (p *setupPane) unchanged(before string) {
	p.NoFileExists(filepath.Join(p.home, ".claude", "settings.json"))
	p.NoDirExists(filepath.Join(p.home, ".copilot"))
	settings, err := os.ReadFile(filepath.Join(p.m.Dir, "settings.json"))
	p.NoError(err)
	p.Equal(string(rig.Apart(before)), string(settings))
}

func settingsInForce(t *testing.T, m *rig.Machine) schemas.Settings {
	shown, stderr, code := m.Run("settings", "show", "--json")
	require.Zero(t, code, stderr)
	var state schemas.SettingsState
	require.NoError(t, json.Unmarshal([]byte(shown), &state), shown)
	return state.Settings
}

// Parts of the questions that nod setup asks in a terminal that cannot draw.
const (
	whichAgents = "Which of the agents on this machine will ask nod?"
	whichPreset = "Which one (a number, or Enter to leave it so"
	whichRules  = "Each is one rule in settings.json."
	writeThem   = "Write these changes? [y/N]"
)

// In a terminal that cannot draw, nod setup asks line by line. It changes only what the user has chosen, seen
// and confirmed.
func TestSetupAsksLineByLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before       string
		agent        string
		preset, rule string // the preset and the rule that the person chooses
		agrees       string
		want         string // the preset that must be in force afterwards
		allow        string // the rule for the project's runner, or "" if there must be none
	}{
		"a preset and its rules":     {`{}`, "1", "3", "all", "y", "project", "Bash(go test:*) in "},
		"empty lines":                {`{}`, "1", "", "", "y", "", ""},
		"nothing at all":             {`{}`, "none", "", "", "", "", ""},
		"a change that is not meant": {`{}`, "all", "3", "all", "n", "", ""},
		"a preset is chosen already": {`{"permissions":{"preset":"readers"}}`, "none", "", "1", "y", "readers", "Bash(go test:*) in "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newSetupPane(t, 160, 300, "TERM=dumb", c.before, "")
			p.answers(whichAgents, c.agent, whichPreset, c.preset, whichRules, c.rule)
			if c.agrees != "" {
				p.Shows(writeThem)
				p.unchanged(c.before)
				p.answers(writeThem, c.agrees)
			}
			if c.agrees == "n" {
				p.Shows("nothing was changed: run nod setup again at any time")
				p.Shows("ended with 1")
				p.unchanged(c.before)
				return
			}
			p.Shows("A question is on its way")
			s := settingsInForce(t, p.m)
			p.Equal(c.want, s.Permissions.Preset)
			if c.allow != "" {
				p.Contains(s.Permissions.Allow, c.allow+p.project)
			} else {
				p.Empty(s.Permissions.Allow)
			}
			if c.agent == "1" {
				p.FileExists(filepath.Join(p.home, ".claude", "settings.json"))
				p.Contains(p.Screen(), `+  "hooks": {`, "the summary shows the change")
			} else {
				p.NoFileExists(filepath.Join(p.home, ".claude", "settings.json"))
			}
			p.NoDirExists(filepath.Join(p.home, ".copilot"))
		})
	}
}

// nod setup reads past sessions only if the user agrees. It then shows the number of questions for each
// preset, and the rules that would have saved questions.
func TestSetupReadsPastSessionsWithConsent(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestSetupAsksLineByLine goes through the same steps")
	past := `{"type":"assistant","sessionId":"s1","cwd":"/p","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"make lint"}}]}}
{"type":"assistant","sessionId":"s1","cwd":"/p","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"make lint FIX"}}]}}
{"type":"assist`
	for name, agrees := range map[string]bool{"yes": true, "no": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newSetupPane(t, 160, 100, "TERM=dumb", `{"permissions":{"preset":"readers"}}`, past)
			p.Shows("Read them? [y/N]")
			p.NotContains(p.Screen(), whichAgents)
			p.answers("Read them? [y/N]", map[bool]string{true: "y", false: "n"}[agrees], whichAgents, "", whichPreset, "")
			p.Shows(whichRules)
			p.Shows("Bash(go test:*) in " + p.project)
			p.Within(rig.Patience, func() bool { return strings.Count(p.Screen(), "d 1 shows 1 in full") == 3 })
			screen := p.Screen()
			if !agrees {
				p.NotContains(screen, "make lint")
				p.NotContains(screen, "past session.")
				return
			}
			p.Contains(screen, "Tried on 1 past session.")
			p.Contains(screen, "questions: up to 2 in half of the sessions, up to 2 in nine of ten")
			p.Contains(screen, "1 file could not be read whole")
			p.Contains(screen, "Bash(make lint:*) in /p")
			p.Contains(screen, "would have spared 2 questions")
		})
	}
}

// If settings.json is not in force, nod setup does not change it, because the rest of the file would then
// come into force too. The agents still ask nod.
func TestSetupLeavesOtherSettingsInForce(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestSetupAsksLineByLine goes through the same steps")
	p := newSetupPane(t, 160, 300, "TERM=dumb", `{}`, "")
	p.answers(whichAgents, "1", whichPreset, "")
	p.Shows(whichRules)
	settings := filepath.Join(t.TempDir(), "team.json")
	require.NoError(t, os.WriteFile(settings, []byte(`{"permissions":{"deny":["Bash(make:*)"]}}`), 0o600))
	_, stderr, code := p.m.Run("settings", "apply", settings)
	require.Zero(t, code, stderr)
	p.Types("1", "Enter")
	p.Shows("nod runs with other settings than those of this file")
	p.answers(writeThem, "y")
	p.Shows("A question is on its way")
	require.Equal(t, []string{"Bash(make:*)"}, settingsInForce(t, p.m).Permissions.Deny)
	p.FileExists(filepath.Join(p.home, ".claude", "settings.json"))
}
