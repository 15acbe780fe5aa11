package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

func shown(m *rig.Machine, t *testing.T, id string) (p schemas.Prompt) {
	t.Helper()
	stdout, stderr, code := m.Run("show", id, "--json")
	require.Zero(t, code, stderr)
	require.NoError(t, json.Unmarshal([]byte(stdout), &p))
	return p
}

// The function swept starts and kills another hook, and returns when nod has found that it was killed. nod
// has then also looked for all processes that were killed before.
func swept(m *rig.Machine, t *testing.T, name string) {
	h := startHook(m, t, gates()["codex PreToolUse"], name, "swept", "make swept", "1h")
	id := m.Pending(name)
	h.killed()
	m.Shown(id, func(p schemas.Prompt) bool { return p.Decision != nil })
}

// If nod mcp, nod mcp gate or nod codex-app-server is killed while it waits, nod withdraws its question.
func TestAKilledServersQuestionIsWithdrawn(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	for name, starts := range map[string]func(session string) (kill func() error){
		"mcp": func(session string) func() error {
			s := mcpOver(m, "2025-11-25", "--session", session)
			approve(t, s.client, session)
			return s.cmd.Process.Kill
		},
		"mcp without an id": func(session string) func() error {
			s := mcpOver(m, "2025-11-25", "--session", session)
			approve(t, s.client, "")
			return s.cmd.Process.Kill
		},
		"gate": func(session string) func() error {
			g := gateOver(m, "--session", session)
			g.calls(1)
			return g.cmd.Process.Kill
		},
		"codex": func(session string) func() error {
			asks := fmt.Sprintf(`{"id":1,"method":"item/commandExecution/requestApproval","params":{"threadId":%q,"turnId":"t","itemId":"i","command":"make release","cwd":"/p"}}`, session)
			c := m.Command("codex-app-server", "--", "sh", "-c", `echo '`+asks+`'; read answer`)
			pipes(t, c)
			return c.Process.Kill
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			session := "killed-" + strings.ReplaceAll(name, " ", "-")
			kill := starts(session)
			id := m.Pending(session)
			require.NoError(t, kill())
			m.Shown(id, func(p schemas.Prompt) bool { return p.Decision != nil })
			p := shown(m, t, id)
			assert.Equal(t, schemas.Withdrawn, p.Decision.Outcome)
			assert.Empty(t, p.Aftermath)
		})
	}
}

// After nod mcp was killed, an agent starts it again, and makes the identical call again. If the question is
// still pending, the call waits for it. If the question was withdrawn, a person is asked anew.
func TestAnAgentThatStartsAgainWaitsForItsQuestion(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAKilledServersQuestionIsWithdrawn kills the same processes")
	m := rig.NewMachine(t)
	m.StartNod()
	first, second := mcpOver(m, "2025-11-25", "--session", "again"), mcpOver(m, "2025-11-25", "--session", "again")
	approve(t, first.client, "toolu_1")
	require.Equal(t, "toolu_1", m.Pending("again"))
	answered := approve(t, second.client, "toolu_1")
	m.Soon(func(context.Context, *connector.Desk) bool { return strings.Count(waiting(t, m), "again.toolu_1") == 2 })
	require.NoError(t, first.cmd.Process.Kill())
	swept(m, t, "again-swept")
	require.Equal(t, "toolu_1", m.Pending("again"))
	require.NoError(t, second.cmd.Process.Kill())
	m.Shown("toolu_1", func(p schemas.Prompt) bool { return p.Decision != nil })
	require.Equal(t, schemas.Withdrawn, shown(m, t, "toolu_1").Decision.Outcome)
	require.NotContains(t, <-answered, "allow")

	third := mcpOver(m, "2025-11-25", "--session", "again")
	answered = approve(t, third.client, "toolu_1")
	id := m.Pending("again")
	require.NotEqual(t, "toolu_1", id)
	_, stderr, code := m.Run("allow", id)
	require.Zero(t, code, stderr)
	require.Equal(t, `{"behavior":"allow","updatedInput":{"command":"make release"}}`, <-answered)
}

// A person allows a call at the moment at which its gate is killed. There is exactly one decision. If the
// server got the call, no record says that the call never ran. If the server did not get the call, the allow
// is lost, and a later gate of the same session asks anew.
func TestAnAllowAtTheMomentOfTheKill(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	for n := range 6 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			session := fmt.Sprintf("moment-%d", n)
			g := gateOver(m, "--session", session)
			g.calls(1)
			id := m.Pending(session)
			m.Soon(func(ctx context.Context, d *connector.Desk) bool {
				p, _, err := d.Find(ctx, session, id)
				if err != nil {
					return false
				}
				var killed sync.WaitGroup
				killed.Go(func() {
					if n%3 > 0 { // in each third round, the gate probably gets the decision before it is killed
						_ = g.cmd.Process.Kill()
					}
				})
				_, _ = d.Answer(ctx, schemas.Answer{ // the answer fails if nod has withdrawn the question
					SessionID: session, PendingID: id, Digest: p.Digest, Waiters: p.Waiters, OptionID: "allow_once", From: schemas.From{UserID: rig.Me(t)},
				})
				killed.Wait()
				return true
			})
			_ = g.cmd.Process.Kill() // Kill fails if the gate was killed before
			heard, err := io.ReadAll(g.err)
			require.NoError(t, err)
			ran := strings.Contains(string(heard), gateCall(1))
			swept(m, t, session+"-swept")
			p := shown(m, t, id)
			require.NotNil(t, p.Decision)
			t.Log("the server got the call:", ran, "outcome:", p.Decision.Outcome)
			if ran {
				assert.Equal(t, schemas.Allowed, p.Decision.Outcome)
				assert.Empty(t, p.Aftermath)
			}
			again := gateOver(m, "--session", session)
			again.calls(1)
			require.NotEqual(t, id, m.Pending(session))
			require.Equal(t, p.Decision, shown(m, t, id).Decision)
		})
	}
}

// waiting returns the notes that nod's processes keep while they wait for a decision.
func waiting(t *testing.T, m *rig.Machine) (notes string) {
	files, err := filepath.Glob(filepath.Join(m.Dir, "waiting", "*"))
	require.NoError(t, err)
	for _, file := range files {
		note, err := os.ReadFile(file)
		if !errors.Is(err, fs.ErrNotExist) { // the file is gone if the process has just stopped waiting
			require.NoError(t, err)
		}
		notes += string(note) + "\n"
	}
	return notes
}
