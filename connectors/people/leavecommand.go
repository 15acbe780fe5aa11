package people

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Leaver is a Desk through which a person can give a session a leave: a standing answer that
// allows its requests up to a risk for a time while the person is away.
type Leaver interface {
	// Leave stores a leave and returns its standing answer. The error is NOT_FOUND if no agent
	// has the session. If nod refuses the leave, the error is FORBIDDEN and its message is the
	// reason.
	Leave(ctx context.Context, r schemas.LeaveRequest) (schemas.StandingAnswer, error)
}

// leave carries out the command /leave, which takes two steps. The first step describes the leave and
// changes nothing. Its reply contains the text for the second step: the command with the duration, the
// risk and the session, and "yes" at the end.
func (c *Commands) leave(ctx context.Context, from schemas.From, rest string) (string, error) {
	leaver, ok := c.Desk.(Leaver)
	if !ok {
		return "Nothing changed: sessions cannot be left from this channel.", nil
	}
	r, confirmed, ok := parseLeave(rest)
	if !ok {
		return fmt.Sprintf("Nothing changed: send %s, or send %s", c.text("leave"), c.text("leave 30m medium SESSION")), nil
	}
	r.From = from
	if confirmed && r.SessionID != "" {
		return c.confirmLeave(ctx, leaver, r)
	}
	waiting, err := c.sessionsOf(ctx, from.UserID, r.SessionID)
	if err != nil {
		return c.refuse(err)
	}
	switch {
	case len(waiting) == 0 && r.SessionID == "":
		return "Nothing changed: no request waits for you. Name the session: send " + c.text("leave 30m low SESSION") + ". nod sessions lists them.", nil
	case len(waiting) > 1:
		lines := []string{"Nothing changed yet. For which session? Send one of these:"}
		for _, session := range waiting {
			r.SessionID = session
			lines = append(lines, c.leaveText(&r))
		}
		return strings.Join(lines, "\n"), nil
	case len(waiting) == 1:
		r.SessionID = waiting[0]
	}
	return "Nothing changed yet. " + LeaveTerms(&r) + "\nTo leave, send " + c.leaveText(&r) + " yes", nil
}

func (c *Commands) confirmLeave(ctx context.Context, leaver Leaver, r schemas.LeaveRequest) (string, error) {
	g, err := leaver.Leave(ctx, r)
	var e *schemas.Error
	switch {
	case errors.As(err, &e) && (e.Code == schemas.CodeForbidden || e.Code == schemas.CodeNotFound || e.Code == schemas.CodeValidation):
		return "Nothing changed: " + Line(e.Message), nil
	case err != nil:
		return c.refuse(err)
	}
	return fmt.Sprintf("Session %s goes on until %s. Requests that wait already stay pending. To end it and read its calls, send %s",
		Line(r.SessionID), g.ExpiresAt.UTC().Format("15:04 UTC"), c.text("back "+Line(r.SessionID))), nil
}

// leaveText returns the command /leave with the limits and the session of r, without the "yes"
// that confirms it.
func (c *Commands) leaveText(r *schemas.LeaveRequest) string {
	lasts := ""
	for _, part := range []struct {
		n    int
		unit string
	}{{r.ForSeconds / 3600, "h"}, {r.ForSeconds / 60 % 60, "m"}, {r.ForSeconds % 60, "s"}} {
		if part.n > 0 {
			lasts += fmt.Sprint(part.n, part.unit)
		}
	}
	return fmt.Sprintf(c.text("leave %s %s %s"), lasts, r.MaxRisk, r.SessionID)
}

// parseLeave parses the words after /leave: a duration, a risk, a session's id or its beginning, and
// "yes" as the last word. Each may occur once. ok is false if any other word occurs, or if a limit is too
// high.
func parseLeave(rest string) (r schemas.LeaveRequest, confirmed, ok bool) {
	r = schemas.LeaveRequest{MaxCalls: schemas.DefaultLeaveCalls}
	for _, word := range strings.Fields(rest) {
		d, err := time.ParseDuration(word)
		risk := schemas.Risk(strings.ToLower(word))
		fits := !confirmed // "yes" is the last word
		switch {
		case err == nil:
			fits = fits && r.ForSeconds == 0 && d >= time.Second && d <= schemas.MaxLeave
			r.ForSeconds = int(d / time.Second)
		case risk == schemas.RiskLow, risk == schemas.RiskMedium, risk == schemas.RiskHigh:
			fits = fits && r.MaxRisk == "" && risk != schemas.RiskHigh
			r.MaxRisk = risk
		case strings.EqualFold(word, "yes"):
			confirmed = true
		default:
			fits = fits && r.SessionID == "" && schemas.ValidID(word)
			r.SessionID = word
		}
		if !fits {
			return r, false, false
		}
	}
	if r.ForSeconds == 0 {
		r.ForSeconds = int(schemas.DefaultLeave / time.Second)
	}
	if r.MaxRisk == "" {
		r.MaxRisk = schemas.RiskLow
	}
	return r, confirmed, true
}

// mostSessions is the largest number of sessions that a reply names.
const mostSessions = 5

// sessionsOf returns the sessions that have requests for a person and whose ids begin with
// prefix, at most mostSessions. If prefix is a whole id, it returns only that session.
func (c *Commands) sessionsOf(ctx context.Context, user, prefix string) (sessions []string, err error) {
	_, _, err = FindPending(ctx, c.Desk, schemas.Query{Recipient: user}, func(p *schemas.Prompt) bool {
		if p.SessionID == prefix {
			sessions = []string{prefix}
			return true
		}
		if strings.HasPrefix(p.SessionID, prefix) && !slices.Contains(sessions, p.SessionID) {
			sessions = append(sessions, p.SessionID)
		}
		return len(sessions) == mostSessions
	})
	return sessions, err
}

// back carries out the command /back. It ends the leave of the named session. If the command names no
// session, it ends the only leave in force. The reply lists the calls that the leave has allowed.
func (c *Commands) back(ctx context.Context, from schemas.From, session string) (string, error) {
	revoker, ok := c.Desk.(Revoker)
	if !ok {
		return "Nothing changed: this channel ends no standing answers.", nil
	}
	leaves, err := c.leaves(ctx, revoker, from.UserID, session)
	if err != nil {
		return c.refuse(err)
	}
	if session == "" {
		leaves = slices.DeleteFunc(leaves, func(g schemas.StandingAnswer) bool { return !g.Live(c.Now) })
	}
	switch {
	case len(leaves) == 0 && session != "":
		return "Nothing changed: you may end no leave of session " + Line(session) + ".", nil
	case len(leaves) == 0:
		return "Nothing changed: no leave that you may end is in force. For the calls of one that has ended, send " + c.text("back SESSION"), nil
	case len(leaves) > 1:
		lines := []string{"Nothing changed yet. Which one? Send one of these:"}
		for i := range leaves[:min(len(leaves), mostSessions)] {
			lines = append(lines, c.text("back "+leaves[i].SessionID))
		}
		return strings.Join(lines, "\n"), nil
	}
	g := &leaves[0]
	if g.Live(c.Now) {
		if err := revoker.Revoke(ctx, g, from.UserID); err != nil {
			return c.refuse(err)
		}
		now, err := c.leaves(ctx, revoker, from.UserID, g.SessionID) // read the leave again, because the leave may have allowed more calls until it ended
		if err == nil && len(now) == 1 {
			g = &now[0]
		}
	}
	return leaveReport(g, c.Now), nil
}

// leaves returns the leaves of a session that a person may end, including some that have ended.
// If session is empty, it returns those of all sessions.
func (c *Commands) leaves(ctx context.Context, revoker Revoker, user, session string) ([]schemas.StandingAnswer, error) {
	all, err := revoker.GrantsFor(ctx, user)
	return slices.DeleteFunc(all, func(g schemas.StandingAnswer) bool {
		return g.Leave == nil || session != "" && g.SessionID != session
	}), err
}

// mostCalls is the largest number of calls in a report for a chat.
const mostCalls = 20

// leaveReport lists the last calls that a leave has allowed. The times are in UTC, because nod
// does not know the person's time zone.
func leaveReport(g *schemas.StandingAnswer, now time.Time) string {
	lines := []string{fmt.Sprintf("Session %s: %s allowed since %s, up to risk %s, by %s; %s", Line(g.SessionID), schemas.Count(len(g.UsedBy), "call"),
		g.CreatedAt.UTC().Format("15:04 UTC"), g.Leave.MaxRisk, Line(g.By.Name), until(g, now))}
	if earlier := len(g.UsedBy) - mostCalls; earlier > 0 {
		lines = append(lines, fmt.Sprintf("%s before these: nod back", schemas.Count(earlier, "call")))
	}
	for _, u := range g.UsedBy[max(0, len(g.UsedBy)-mostCalls):] {
		lines = append(lines, u.At.UTC().Format("15:04:05")+"  "+cut(Line(u.Title), 100))
	}
	return strings.Join(lines, "\n")
}
