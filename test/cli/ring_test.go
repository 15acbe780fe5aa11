package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// nod up rings its terminal once for each new request, by the bell and by two notifications. An outcome does
// not ring. The flag --no-notify turns the bell and the notifications off.
func TestNodUpRingsItsTerminal(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestTheDemoIsAnsweredFromASecondTerminal runs nod up in a terminal")
	for flag, rings := range map[string]int{"": 1, " --no-notify": 0} {
		t.Run(strings.TrimSpace("nod up"+flag), func(t *testing.T) {
			t.Parallel()
			m := rig.NewMachine(t)
			goes, out := filepath.Join(t.TempDir(), "go"), filepath.Join(t.TempDir(), "out")
			p := m.NewPane(t, 120, 60, fmt.Sprintf("echo ready; while ! test -e %s; do sleep 0.1; done; exec %s up --listen 127.0.0.1:0%s", goes, m.Nod, flag))
			p.Shows("ready")
			p.Records(out)
			require.NoError(t, os.WriteFile(goes, nil, 0o600))
			p.Shows("Stop with Ctrl-C")
			heard := func() string {
				data, _ := os.ReadFile(out) // the file does not exist before the first output
				return string(data)
			}
			for n, id := range []string{"first-request", "second-request"} {
				m.Asked(t, id, "--session", "S", "--tool", "Frobnicate", "--input", fmt.Sprintf(`{"n":%d}`, n))
				require.Eventually(t, func() bool { return strings.Contains(heard(), "nod allow "+id) }, 20*time.Second, 20*time.Millisecond, "%s", p.Screen())
				require.Equal(t, (n+1)*rings, strings.Count(heard(), "\a\x1b]9;nod: "), "%q", heard())
				require.Equal(t, (n+1)*rings, strings.Count(heard(), "\a\x1b]777;notify;nod;nod: "))
			}
			_, stderr, code := m.Run("allow", "first-request")
			require.Zero(t, code, stderr)
			require.Eventually(t, func() bool { return strings.Contains(heard(), "Allowed once") }, 20*time.Second, 20*time.Millisecond, "%s", p.Screen())
			require.Equal(t, 2*rings, strings.Count(heard(), "\x1b]777;"))
			p.Types("C-c")
			require.Eventually(t, func() bool { _, _, code := m.Run("status"); return code != 0 }, 20*time.Second, 100*time.Millisecond, "nod has ended")
		})
	}
}
