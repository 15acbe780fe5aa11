package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// Escalation steps survive kill -9. A step keeps its time, and a step whose time has passed comes at the next
// start. A restart decides nothing.
func TestAnEscalationOutlivesKillNine(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestKillNine kills nod, and test/people tests escalations")
	m := rig.NewMachine(t)
	settings := fmt.Sprintf(`{"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": %q}], "time_zone": "UTC", "quiet": [{"days": ["mon"], "from": "02:00", "to": "02:01"}], "stand_in": "ops"},
		{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}]}], "groups": [{"name": "ops", "people": ["Bob"]}],
		"escalation": [
			{"risk": "low", "rules": ["Later"], "steps": [{"to": ["Ann"]}, {"to": ["ops"], "after_seconds": 86400}]},
			{"risk": "low", "steps": [{"to": ["Ann"]}, {"to": ["ops"], "after_seconds": 8}]}]}}`, rig.Me(t))
	require.NoError(t, os.WriteFile(filepath.Join(m.Dir, "settings.json"), rig.Apart(settings), 0o600))
	m.StartNod("--http", "127.0.0.1:0")
	soon := m.Asked(t, "soon", "--session", "S", "--tool", "Frobnicate", "--input", `{"n":1}`)
	m.Kill()
	m.StartNod("--http", "127.0.0.1:0")
	m.Shown("soon", func(p schemas.Prompt) bool {
		require.Nil(t, p.Decision)
		require.True(t, soon.Deadline.Equal(p.Deadline))
		return p.Next == nil
	})

	later := m.Asked(t, "later", "--session", "S", "--tool", "Later", "--input", `{"n":1}`)
	at := later.Deadline.Add(24*time.Hour - schemas.DefaultDisconnectedTimeout)
	for range 2 {
		m.Shown("later", func(p schemas.Prompt) bool {
			require.Equal(t, &schemas.NextStep{At: at, To: []string{"Bob"}}, p.Next)
			return p.Decision == nil
		})
		m.Kill()
		m.StartNod("--http", "127.0.0.1:0")
	}
	stdout, _, _ := m.Run("show", "later")
	require.Contains(t, stdout, "goes to Bob at ")
	stdout, _, _ = m.Run("pending")
	require.Contains(t, stdout, "NEXT")
	require.Contains(t, stdout, "Bob "+at.Local().Format("15:04"))
	stdout, _, _ = m.Run("approvers")
	require.Contains(t, stdout, "quiet mon 02:00 to 02:01 UTC (stand-in ops)")
	require.Contains(t, stdout, "group ops: Bob")
	require.Contains(t, stdout, "risk low and above: goes to Ann, after 8 seconds to ops")
}
