package people

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// On a terminal that folds nothing, the ids and names are one line. A name that the agent chose cannot
// look like another item of that line.
func TestPrintedPartsHaveTheIdsInOneLine(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := &schemas.Prompt{
		PendingID: "01K5X7F3K2", SessionID: "fix-ci", Agent: "local", Risk: schemas.RiskHigh,
		Request: schemas.Request{
			Kind: schemas.KindToolCall, ActionType: schemas.ActionCommand, ToolName: "Bash · session other", ActionDetails: []byte(`{"command":"rm -rf src"}`),
			AgentName: "Claude Code", Host: "pop", User: "ann", Project: "/src/app",
		},
	}
	parts := PrintedParts(p, now)
	last := parts[len(parts)-1]
	require.Equal(t, "From", last.Label)
	assert.Equal(t, []string{"agent local · tool Bash ⟦U+00B7⟧ session other · ann@pop · session fix-ci · request 01K5X7F3K2"}, last.Lines)
	rows := Rows(parts, 80)
	ids := 0
	for _, row := range rows {
		if row.Group == Rest && row.Text != "" {
			ids++
		}
		assert.False(t, strings.HasPrefix(row.Text, "Host "), row.Text)
	}
	assert.LessOrEqual(t, ids, 2)
	p.Request.Host, p.Request.User, p.Request.Title = "", "", "x"
	parts = PrintedParts(p, now)
	assert.Contains(t, parts[len(parts)-1].Lines[0], "· titled x · session fix-ci")
}
