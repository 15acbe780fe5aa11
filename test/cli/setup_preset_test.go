package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// nod setup offers the preset contained if the settings name no preset, and only a yes chooses it.
func TestSetupOffersThePresetContained(t *testing.T) {
	t.Parallel()
	if level, err := contain.Support(); level != contain.Namespaces {
		t.Skipf("left out: this machine cannot contain commands: %v", err)
	}
	const question = "Use the preset contained? [y/N]"
	for name, c := range map[string]struct {
		before, key, after string
		asks               bool
	}{
		"yes":                        {`{}`, "y", "contained", true},
		"an empty line":              {`{}`, "", "", true},
		"another word":               {`{}`, "x", "", true},
		"a preset is chosen already": {`{"permissions":{"preset":"readers"}}`, "", "readers", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := rig.NewMachine(t)
			m.StartNod()
			home, settings := t.TempDir(), t.TempDir()+"/settings.json"
			require.NoError(t, os.WriteFile(settings, rig.Apart(c.before), 0o600))
			_, stderr, code := m.Run("settings", "apply", settings)
			require.Zero(t, code, stderr)
			testprogram.Write(t, home+"/bin/claude", "echo '2.1.329 (Claude Code)'")

			p := m.NewPane(t, 160, 50, fmt.Sprintf("HOME=%[1]s CLAUDE_CONFIG_DIR= PATH=%[1]s/bin:$PATH %[2]s setup --no-service --wait 1m; cat", home, m.Nod))
			p.Shows("settings.json? [y/N]")
			p.Types("y", "Enter")
			if c.asks {
				p.Shows(question)
				p.Types(strings.Fields(c.key + " Enter")...)
			}
			p.Shows("A question is on its way")
			if !c.asks {
				require.NotContains(t, p.Screen(), question)
			}
			shown, stderr, code := m.Run("settings", "show", "--json")
			require.Zero(t, code, stderr)
			var state schemas.SettingsState
			require.NoError(t, json.Unmarshal([]byte(shown), &state), shown)
			require.Equal(t, c.after, state.Settings.Permissions.Preset)
		})
	}
}
