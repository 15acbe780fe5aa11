package people_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

func TestSessionsTellWhatTheyDo(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	prompt := func(session string, age time.Duration, kind schemas.Kind, risk schemas.Risk, decided bool) schemas.Prompt {
		p := schemas.Prompt{SessionID: session, PendingID: session + age.String(), Risk: risk, Request: schemas.Request{Kind: kind, CreatedAt: now.Add(-age), Title: age.String()}}
		if decided {
			p.Decision = &schemas.Decision{}
		}
		return p
	}
	tally := people.NewSessionTally(now)
	page := []schemas.Prompt{
		prompt("idle", 6*time.Minute, schemas.KindToolCall, schemas.RiskHigh, true),
		prompt("working", time.Minute, schemas.KindToolCall, schemas.RiskLow, true),
		prompt("working", 2*time.Hour, schemas.KindToolCall, schemas.RiskLow, true),
		prompt("asking", 7*time.Minute, schemas.KindQuestion, schemas.RiskLow, false),
		prompt("waiting", 8*time.Minute, schemas.KindToolCall, schemas.RiskLow, false),
		prompt("waiting", 9*time.Minute, schemas.KindQuestion, "newer than this version", false),
		prompt("waiting", 10*time.Minute, schemas.KindToolCall, schemas.RiskMedium, false),
	}
	require.NoError(t, tally.Add(page))
	require.NoError(t, tally.Add(page[3:]), "a request on two pages counts once")
	sessions := tally.Sessions()
	states := map[string]people.SessionState{}
	for _, s := range sessions {
		states[s.ID] = s.State
		switch s.ID {
		case "waiting":
			require.Equal(t, 3, s.Waiting)
			require.Equal(t, schemas.Risk("newer than this version"), s.Risk, "an unknown risk counts as high")
		case "working":
			require.Equal(t, 1, s.ThisHour)
			require.Equal(t, 2, s.Asked)
		}
	}
	require.Equal(t, map[string]people.SessionState{
		"idle": people.SessionIdle, "working": people.SessionWorking, "asking": people.SessionAsking, "waiting": people.SessionWaiting,
	}, states)
}

func TestDifferenceShowsEachChangedField(t *testing.T) {
	text := func(original, edited string) string {
		return people.Layout(people.Difference([]byte(original), []byte(edited)), 0)
	}
	require.Empty(t, text(`{"command":"make","cwd":"/app"}`, `{"cwd":"/app", "command":"make"}`))
	for _, c := range []struct{ original, edited, shown string }{
		{`{"command":"make","cwd":"/app"}`, `{"command":"make -n","cwd":"/app"}`, "command\n  │ - make\n  │ + make -n"},
		{`{"command":"make","cwd":"/app"}`, `{"command":"make"}`, "cwd\n  │ - /app"},
		{`{"command":"make"}`, `{"command":"make","n":[1]}`, "n (JSON)\n  │ + ["},
		{`{"command":"make"}`, `{"command":["make"]}`, "command (JSON)\n  │ - \"make\""},
		{`{"command":"make"}`, `["make"]`, "The input (JSON)"},
		{`{"command":"make","command":"rm"}`, `{"command":"make"}`, "The input (JSON)"},
		{`{"command":"make"}`, `{"command":"make\u202e"}`, "⟦U+202E"},
	} {
		require.Contains(t, strings.ReplaceAll(text(c.original, c.edited), "  command", "command"), strings.TrimPrefix(c.shown, "  "), c.edited)
	}
}
