package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nodbus/nod/test/internal/rig"
)

// In a terminal, nod setup shows checklists. After the person confirms the summary, it writes exactly what
// the person has ticked.
func TestSetupAsChecklists(t *testing.T) {
	t.Parallel()
	for name, size := range map[string][2]int{"80 columns": {80, 24}, "40 columns": {40, 24}, "120 columns": {120, 40}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newSetupPane(t, size[0], size[1], "", `{}`, "")
			p.Shows("nod setup · Agents")
			p.Shows("▸ [x] Claude Code")
			p.Types("n")
			p.Shows("▸ [ ] Claude Code")
			p.Types("Space")
			p.Shows("▸ [x] Claude Code")
			p.Types("d")
			p.Shows("+++")
			p.Types("Escape")
			p.Shows("nod setup · Agents")
			p.Types("Enter")
			p.Shows("▸ (•) readers, in force now")
			p.Types("Down", "Space")
			p.Shows("▸ (•) project")
			p.Types("Enter")
			p.Shows("▸ [ ] Bash(go test:*)")
			p.Types("Space", "Enter")
			p.Shows("nod setup · Summary")
			p.Shows("Claude Code asks nod")
			p.Shows("settings.json: the preset")
			p.Types("Enter")
			p.Shows("y writes these changes")
			p.unchanged(`{}`)
			p.Types("PageDown", "y")
			p.Shows("A question is on its way")
			p.FileExists(filepath.Join(p.home, ".claude", "settings.json"))
			p.NoDirExists(filepath.Join(p.home, ".copilot"))
			s := settingsInForce(t, p.m)
			p.Equal("project", s.Permissions.Preset)
			p.Equal([]string{"Bash(go test:*) in " + p.project}, s.Permissions.Allow)
		})
	}
}

// If a person leaves the lists, nod setup changes nothing.
func TestSetupIsLeftWithoutAChange(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestSetupAsChecklists goes through the same steps")
	for name, key := range map[string]string{"esc": "Escape", "q": "q", "ctrl-c": "C-c"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newSetupPane(t, 80, 24, "", `{}`, "")
			p.Shows("nod setup · Agents")
			p.Types("a", "Enter")
			p.Shows("nod setup · Preset")
			p.Types(key)
			p.Shows("nod: nothing was changed: run nod setup again at any time")
			p.Shows("ended with 1")
			p.unchanged(`{}`)
		})
	}
}

// With NO_COLOR, the lists and the changes have no colours.
func TestSetupWithoutColours(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestSetupAsChecklists goes through the same steps")
	p := newSetupPane(t, 80, 24, "NO_COLOR=1", `{}`, "")
	p.Shows("▸ [x] Claude Code")
	p.Types("d")
	p.Shows("+++")
	p.NotContains(p.Coloured(), "\x1b[32m")
	p.NotContains(p.Coloured(), "\x1b[31m")
}

// nod setup does not change a file that has changed after the list was shown. It still sets up the other
// agents, and names the agent that it could not change.
func TestSetupGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestSetupAsChecklists goes through the same steps")
	p := newSetupPane(t, 80, 24, "", `{}`, "")
	p.Shows("nod setup · Agents")
	p.Types("Enter")
	p.Shows("nod setup · Preset")
	settings := filepath.Join(p.home, ".claude", "settings.json")
	p.NoError(os.MkdirAll(filepath.Dir(settings), 0o755))
	p.NoError(os.WriteFile(settings, []byte("{}"), 0o600))
	p.Types("Enter", "Enter")
	p.Shows("nod setup · Summary")
	p.Types("y")
	p.Shows("Claude Code: it was changed meanwhile: run nod setup again")
	p.Shows("A question is on its way")
	p.FileExists(filepath.Join(p.home, ".copilot", "hooks", "nod.json"))
	kept, err := os.ReadFile(settings)
	p.NoError(err)
	p.Equal("{}", string(kept))
}

// On a fresh machine, nod setup writes settings.json and the file of the service, and asks its test question
// as soon as nod runs. In this test the service does not start nod, because the PATH has no systemctl.
func TestSetupBeforeNodRuns(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestSetupAsChecklists goes through the same steps")
	m := rig.NewMachine(t)
	p := startSetup(t, m, 80, 24, "PATH=$HOME/bin", "", "")
	p.Shows("nod setup · Agents")
	p.Types("Enter")
	p.Shows("▸ (•) readers, in force now")
	p.Types("Down", "Space", "Enter")
	p.Shows("nod setup · Rules")
	p.Types("Enter")
	p.Shows("▸ [x] Start nod now and at every log-in")
	p.Types("Enter")
	p.Shows("nod runs now, and from every log-in on")
	p.NoDirExists(filepath.Join(p.home, ".config"))
	p.NoDirExists(filepath.Join(m.Dir, "launcher"))
	p.Types("PageDown", "y")
	p.Shows("waiting for nod to run")
	p.FileExists(filepath.Join(p.home, ".config", "systemd", "user", "nod.service"))
	p.FileExists(filepath.Join(p.home, ".copilot", "hooks", "nod.json"))
	m.StartNod()
	p.Shows("A question is on its way")
	p.Equal("project", settingsInForce(t, m).Permissions.Preset)
}
