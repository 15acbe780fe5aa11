package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// While the log is read, a terminal shows the progress on one line, which is gone at the end. A signal
// ends the reading.
func TestReadingTheLogShowsHowFarAndCanBeStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	begins := time.Date(2026, 1, 1, 12, 0, 0, 0, time.Local)
	var stopAt string
	page := func(ctx context.Context, after string) (schemas.Page, error) {
		if after == stopAt {
			stop()
		}
		days := map[string]int{"": 2, "2": 1, "1": 0}[after]
		p := schemas.Page{Log: &schemas.LogExtent{Begins: begins, Reached: begins.AddDate(0, 0, days)}}
		if days > 0 {
			p.Next = fmt.Sprint(days)
		}
		return p, ctx.Err()
	}
	stopAt = "none"
	var said bytes.Buffer
	reached, err := readBack{&said}.each(ctx, page, func(*schemas.LoggedRequest) bool { return true })
	require.NoError(t, err)
	assert.Equal(t, begins, reached)
	assert.Equal(t, "\r\x1b[Kreading the log back to 3 Jan 2026 12:00 …\r\x1b[Kreading the log back to 2 Jan 2026 12:00 …\r\x1b[K", said.String())
	_, err = readBack{}.each(ctx, page, func(*schemas.LoggedRequest) bool { return true })
	require.NoError(t, err)

	said.Reset()
	stopAt = "2"
	_, err = readBack{&said}.each(ctx, page, func(*schemas.LoggedRequest) bool { return true })
	require.ErrorIs(t, err, context.Canceled)
	assert.Regexp(t, regexp.QuoteMeta("3 Jan 2026 12:00 …\r\x1b[K")+"$", said.String())
}

// The JSON row of a logged request has no values that the log lacks.
func TestARowOfTheLogHasNoFalseValues(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 3, 9, 30, 0, 0, time.UTC)
	bare := schemas.LoggedRequest{SessionID: "S", PendingID: "one", Agent: "ada", AskedAt: at, ReadTo: at, QuestionNotFound: true}
	whole := schemas.LoggedRequest{
		SessionID: "S", PendingID: "two", Agent: "ada", ToolName: "Bash", AskedAt: at, Redacted: 1,
		Request: json.RawMessage(`{"type":"nod.v1.request","session_id":"S","pending_id":"two","kind":"tool","title":"Make","tool_name":"Bash","action_type":"command","action_details":{"command":"make"},"created_at":"2026-01-03T09:30:00Z"}`),
		Decided: &schemas.LoggedDecision{Outcome: schemas.Allowed, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann"}, At: at},
		Run:     &schemas.RunReport{ExitCode: 2},
	}
	for want, l := range map[string]schemas.LoggedRequest{
		`{"session_id":"S","pending_id":"one","agent":"ada","created_at":"2026-01-03T09:30:00Z","read_to":"2026-01-03T09:30:00Z","question_not_found":true,"logged":true}`: bare,
		`{"type":"nod.v1.request","session_id":"S","pending_id":"two","kind":"tool","title":"Make","tool_name":"Bash","action_type":"command","action_details":{"command":"make"},
		  "created_at":"2026-01-03T09:30:00Z","agent":"ada","redacted":1,"logged":true,"run":{"report":{"exit_code":2}},
		  "decision":{"outcome":"allowed","by":{"kind":"human","name":"Ann"},"decided_at":"2026-01-03T09:30:00Z"}}`: whole,
	} {
		row, err := json.Marshal(loggedRowOf(&l))
		require.NoError(t, err)
		assert.JSONEq(t, want, string(row))
	}
}

func TestAnOutcomeIsNamedAsPeopleSeeIt(t *testing.T) {
	t.Parallel()
	var c struct {
		History historyCmd `cmd:""`
	}
	parser, err := kong.New(&c, kong.Exit(func(int) {}))
	require.NoError(t, err)
	for word, want := range map[string]schemas.Outcome{
		"allowed": schemas.Allowed, "timed_out": schemas.TimedOut, "expired": schemas.TimedOut, "dismissed": schemas.Cancelled,
	} {
		_, err := parser.Parse([]string{"history", "--outcome", word})
		require.NoError(t, err)
		assert.Equal(t, want, schemas.Outcome(c.History.Outcome))
	}
	_, err = parser.Parse([]string{"history", "--outcome", "denid"})
	require.ErrorContains(t, err, "--outcome: must be one of allowed, denied,")
}

// A decision that the log has twice is listed once. A question with a decision has no row of its own. A
// request with another content or another decision has its own row, even under the same id and time.
func TestAnIDThatIsUsedAgainHidesNoRow(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 3, 9, 30, 0, 0, time.UTC)
	row := func(digest string, outcome schemas.Outcome, decided time.Time) *schemas.LoggedRequest {
		l := &schemas.LoggedRequest{SessionID: "S", PendingID: "one", AskedAt: at, Digest: digest}
		if outcome != "" {
			l.Decided = &schemas.LoggedDecision{Outcome: outcome, At: decided}
		}
		return l
	}
	rows := listedRows{}
	assert.True(t, rows.add(row("b", schemas.Allowed, at)))
	assert.True(t, rows.add(row("a", schemas.Denied, at)))
	assert.True(t, rows.add(row("a", schemas.Denied, at.Add(1))))
	assert.True(t, rows.add(row("a", schemas.Allowed, at)))
	assert.False(t, rows.add(row("a", schemas.Allowed, at)))
	assert.False(t, rows.add(row("b", "", at)))
	assert.True(t, rows.add(row("c", "", at)))
	assert.True(t, rows.add(row("c", schemas.Allowed, at)))
}
