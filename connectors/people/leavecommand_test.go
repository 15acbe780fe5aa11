package people_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// leaver is a Desk that accepts leaves. If the error refuses is set, Leave returns this error.
type leaver struct {
	pages
	asked   []schemas.LeaveRequest
	refuses error
	leaves  []schemas.StandingAnswer
	revoked []string
}

func (l *leaver) Leave(_ context.Context, r schemas.LeaveRequest) (schemas.StandingAnswer, error) {
	l.asked = append(l.asked, r)
	return schemas.StandingAnswer{ExpiresAt: noon.Add(time.Duration(r.ForSeconds) * time.Second)}, l.refuses
}

func (l *leaver) GrantsFor(context.Context, string) ([]schemas.StandingAnswer, error) {
	return append([]schemas.StandingAnswer{{GrantID: "other", SessionID: "fix-ci", CreatedAt: noon}}, l.leaves...), nil
}

func (l *leaver) Revoke(_ context.Context, g *schemas.StandingAnswer, user string) error {
	l.revoked = append(l.revoked, g.SessionID+" by "+user)
	for i := range l.leaves {
		if l.leaves[i].SessionID == g.SessionID {
			l.leaves[i].RevokedAt, l.leaves[i].RevokedBy = noon, "Ann"
		}
	}
	return nil
}

func waitIn(sessions ...string) pages {
	var page []schemas.Prompt
	for i, s := range sessions {
		page = append(page, schemas.Prompt{SessionID: s, PendingID: fmt.Sprint("p", i)})
	}
	return pages{of: [][]schemas.Prompt{page}}
}

func say(t *testing.T, desk people.Desk, text string) string {
	t.Helper()
	c := people.Commands{Desk: desk, Channel: "telegram", Now: noon}
	reply, known, err := c.Run(t.Context(), schemas.From{UserID: "4711"}, text)
	require.NoError(t, err)
	require.True(t, known)
	return reply
}

// The first step of a leave changes nothing, and its reply contains the text of the second step.
// Only that text, with a session and "yes" at its end, starts the leave.
func TestALeaveFromAChatTakesTwoSteps(t *testing.T) {
	desk := &leaver{pages: waitIn("fix-ci-1", "fix-ci-1", "deploy")}
	for _, c := range []struct{ text, reply string }{
		{"/leave", "/leave 30m low fix-ci-1\n/leave 30m low deploy"},
		{"/leave yes", "Nothing changed yet."},
		{"/leave 2h medium dep", "To leave, send /leave 2h medium deploy yes"},
		{"/leave medium fix 90s", "To leave, send /leave 1m30s medium fix-ci-1 yes"},
		{"/leave elsewhere", "To leave, send /leave 30m low elsewhere yes"},
	} {
		assert.Contains(t, say(t, desk, c.text), c.reply, c.text)
		assert.Contains(t, say(t, desk, c.text), "Nothing changed yet.", c.text)
	}
	for _, text := range []string{"/leave high", "/leave 9h", "/leave 0s", "/leave 1h 2h", "/leave a b", "/leave yes deploy", "/leave yes yes", "/leave dep*loy", "/leave low medium", "/leave -5m"} {
		assert.Equal(t, "Nothing changed: send /leave, or send /leave 30m medium SESSION", say(t, desk, text), text)
	}
	require.Empty(t, desk.asked)
	assert.Contains(t, say(t, &leaver{}, "/leave"), "no request waits for you")

	reply := say(t, desk, "/leave 2h medium deploy yes")
	require.Equal(t, "Session deploy goes on until 14:00 UTC. Requests that wait already stay pending. To end it and read its calls, send /back deploy", reply)
	require.Equal(t, []schemas.LeaveRequest{{
		SessionID: "deploy", From: schemas.From{UserID: "4711"}, ForSeconds: 7200, MaxRisk: schemas.RiskMedium, MaxCalls: schemas.DefaultLeaveCalls,
	}}, desk.asked)
	desk.refuses = schemas.Errorf(schemas.CodeForbidden, "Ann may decide requests up to risk low")
	require.Equal(t, "Nothing changed: Ann may decide requests up to risk low", say(t, desk, "/leave medium deploy yes"))
}

// If it is unknown whether a leave was stored, the channel delivers the text again.
func TestALeaveWithAnUnknownResultIsRepeated(t *testing.T) {
	desk := &leaver{refuses: schemas.Errorf(schemas.CodeUnavailable, "ask again")}
	c := people.Commands{Desk: desk, Channel: "telegram", Now: noon}
	_, known, err := c.Run(t.Context(), schemas.From{UserID: "4711"}, "/leave deploy yes")
	require.True(t, known)
	require.Error(t, err)
}

// The command /back ends the leave of the named session, or the only leave in force, and lists the last
// calls of the leave.
func TestBackEndsALeaveAndListsItsCalls(t *testing.T) {
	leave := func(session string, calls int) schemas.StandingAnswer {
		g := schemas.StandingAnswer{
			GrantID: "leave-" + session, SessionID: session, Leave: &schemas.Leave{MaxRisk: schemas.RiskLow}, By: schemas.By{Name: "Ann"},
			Limited: true, Uses: 5, CreatedAt: noon.Add(-time.Hour), ExpiresAt: noon.Add(time.Hour),
		}
		for i := range calls {
			g.UsedBy = append(g.UsedBy, schemas.Use{At: noon.Add(-time.Minute), Title: fmt.Sprint("call ", i, "\u202e")})
		}
		return g
	}
	none := "Nothing changed: no leave that you may end is in force. For the calls of one that has ended, send /back SESSION"
	require.Equal(t, none, say(t, &leaver{}, "/back"))
	ended := leave("old", 1)
	ended.ExpiresAt = noon
	desk := &leaver{leaves: []schemas.StandingAnswer{leave("fix-ci", 22), ended}}
	reply := say(t, desk, "/back")
	require.Equal(t, []string{"fix-ci by 4711"}, desk.revoked)
	lines := strings.Split(reply, "\n")
	require.Equal(t, "Session fix-ci: 22 calls allowed since 11:00 UTC, up to risk low, by Ann; revoked by Ann", lines[0])
	require.Equal(t, "2 calls before these: nod back", lines[1])
	require.Len(t, lines, 22)
	require.True(t, strings.HasPrefix(lines[2], "11:59:00  call 2"), lines[2])
	require.NotContains(t, reply, "\u202e")

	require.Equal(t, none, say(t, desk, "/back"))
	require.Contains(t, say(t, desk, "/back old"), "Session old: 1 call allowed since 11:00 UTC, up to risk low, by Ann; ended")
	require.Len(t, desk.revoked, 1)
	require.Equal(t, "Nothing changed: you may end no leave of session other.", say(t, desk, "/back other"))
	desk.leaves = append(desk.leaves, leave("a", 0), leave("b", 0))
	require.Equal(t, "Nothing changed yet. Which one? Send one of these:\n/back a\n/back b", say(t, desk, "/back"))
	require.Len(t, desk.revoked, 1)
}
