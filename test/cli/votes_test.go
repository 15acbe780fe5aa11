package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// votingMachine is a nod on which two people must allow each request. The user of the tests is Ann at the
// terminal, and Bob is on the web.
func votingMachine(t *testing.T) *rig.Machine {
	m := rig.NewMachine(t)
	settings := fmt.Sprintf(`{"permissions": {"confirm": [{"risk": "low", "votes": 2}]}, "approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": %q}]},
		{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}]}]}}`, rig.Me(t))
	require.NoError(t, os.WriteFile(filepath.Join(m.Dir, "settings.json"), rig.Apart(settings), 0o600))
	m.StartNod("--http", "127.0.0.1:0")
	return m
}

// bobAllows sends Bob's allow of a request, as the web inbox does.
func bobAllows(t *testing.T, m *rig.Machine, id string) (schemas.Decision, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := bus.Join(ctx, bus.Place{DataDir: m.Dir}, roles.ConnectorID(schemas.ConnectorWeb), rig.Quiet())
	require.NoError(t, err)
	defer conn.Close()
	desk := connector.NewDesk(conn, schemas.ConnectorWeb)
	p, _, err := desk.Find(ctx, "", id)
	require.NoError(t, err)
	return desk.Answer(ctx, schemas.Answer{
		SessionID: p.SessionID, PendingID: p.PendingID, Digest: p.Digest, Waiters: p.Waiters, OptionID: "allow_once", From: schemas.From{UserID: "bob"},
	})
}

// A confirmed vote survives kill -9, and still decides nothing by itself.
func TestAVoteOutlivesKillNine(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestKillNine kills nod, and test/rules tests votes")
	m := votingMachine(t)
	waiting := m.Command(rig.Ask("votes", "deploys")...)
	var out, errs bytes.Buffer
	waiting.Stdout, waiting.Stderr = &out, &errs
	require.NoError(t, waiting.Start())
	m.Shown("deploys", func(p schemas.Prompt) bool { return p.VotesNeeded == 2 })
	for range 3 {
		stdout, stderr, code := m.Run("allow", "deploys")
		require.Equal(t, 6, code, stderr)
		require.Contains(t, stdout, "Your vote is stored (1 of 2: Ann); nothing is allowed before 2 people have voted.")
		m.Kill()
		m.StartNod("--http", "127.0.0.1:0")
		m.Shown("deploys", func(p schemas.Prompt) bool { return p.Decision == nil && len(p.Votes) == 1 })
	}
	stdout, _, _ := m.Run("show", "deploys")
	require.Contains(t, stdout, "1 of 2: Ann; one denial ends it")
	require.Contains(t, stdout, "needed to allow: 2 people")
	stdout, _, _ = m.Run("pending")
	require.Contains(t, stdout, "VOTES")
	require.Contains(t, stdout, "1 of 2")
	stdout, _, _ = m.Run("approvers")
	require.Contains(t, stdout, "risk low and above: an allow takes 2 people")

	d, err := bobAllows(t, m, "deploys")
	require.NoError(t, err)
	m.Kill()
	m.StartNod("--http", "127.0.0.1:0")
	require.NoError(t, waiting.Wait(), errs.String())
	var told schemas.Decision
	require.NoError(t, json.Unmarshal(out.Bytes(), &told))
	require.Equal(t, schemas.Allowed, told.Outcome)
	require.Equal(t, d.DecisionID, told.DecisionID)
	require.Equal(t, []string{"Ann", "Bob"}, schemas.Voters(told.Votes))
	stdout, _, _ = m.Run("history")
	require.Contains(t, stdout, "Ann and Bob")
	stdout, _, _ = m.Run("log", "tail")
	require.Contains(t, stdout, "voted")
	require.Contains(t, stdout, "Ann@terminal")
}
