package people

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// StandingText describes a standing answer in sanitised sentences. All channels show the same
// sentences, in different layouts. A field that does not apply is empty.
type StandingText struct {
	ID      string // a prefix of the standing answer's id; nod revoke accepts the prefix
	Effect  string // the effect, "allow" or "deny"
	Covers  string // what the standing answer covers: the exact rules or permissions, or the single call
	Where   string // such as "in session S" or "for agent local, in any session"
	Uses    string // such as "for 1 more call"
	Until   string // such as "until it is revoked", "for another 8 minutes" or "revoked by Ann"
	By      string // the approver who gave the standing answer
	When    string
	From    string // the question that the approver answered, such as "question r-1"
	Message string // the message that the approver added; may be empty
	Undo    string // the verb for ending the standing answer: "revoke" or "forget"; empty if it has ended
}

// shortGrant is the length of the id prefix that people see.
const shortGrant = 8

// DescribeStanding describes g. now is the broker's time.
func DescribeStanding(g *schemas.StandingAnswer, now time.Time) StandingText {
	s := StandingText{
		ID: Line(g.GrantID[:min(shortGrant, len(g.GrantID))]), Effect: string(schemas.EffectAllow), Covers: covers(g),
		Where: "in session " + Line(g.SessionID), Uses: uses(g), Until: until(g, now),
		By: cut(Line(deciderName(g.By)), maxQuoted), When: g.CreatedAt.UTC().Format("2006-01-02 15:04 UTC"), Message: quoted(g.Message),
	}
	if g.Scope == schemas.ScopeAgent {
		s.Where = "for agent " + Line(g.Agent) + ", in any session"
	}
	if g.Question != "" {
		s.From = "question " + Line(g.Question)
	}
	if g.Live(now) {
		s.Undo = "revoke"
	}
	if g.Effect == schemas.EffectDeny {
		s.Effect = string(schemas.EffectDeny)
		if s.Undo != "" {
			s.Undo = "forget"
		}
	}
	return s
}

// String returns all fields of s in one line.
func (s StandingText) String() string {
	items := lines(s.Effect+" "+s.Covers, s.Where, s.Uses, s.Until, "by "+s.By+", "+s.When, s.From, s.Message)
	return strings.Join(append([]string{s.ID}, items...), "  ")
}

// forOneCall reports whether g applies only to repetitions of one call, instead of all calls that
// match a rule.
func forOneCall(g *schemas.StandingAnswer) bool { return g.Call != nil }

func covers(g *schemas.StandingAnswer) string {
	switch {
	case g.Call == nil:
		return Line(g.Reach())
	case g.Call.Title == "":
		return "the same " + Line(g.Call.ToolName) + " call again"
	}
	return "the same " + Line(g.Call.ToolName) + " call again: " + Line(g.Call.Title)
}

// LeaveTerms tells a person who is about to give a leave what the leave lets the session do.
func LeaveTerms(r *schemas.LeaveRequest) string {
	return fmt.Sprintf("For %s, nod allows calls of session %s up to risk %s that no rule decides, %s at most. It still asks about secrets, about commands that it cannot read whole, about files outside the project, about everything of higher risk, and about calls that a rule asks about; rules that deny still deny. A freeze ends it.",
		schemas.FormatDuration(time.Duration(r.ForSeconds)*time.Second), Line(r.SessionID), r.MaxRisk, schemas.Count(r.MaxCalls, "call"))
}

// LeaveSummary tells a person who is back what a leave has allowed. It returns one line about the leave,
// and one line for each call that the leave allowed.
func LeaveSummary(g *schemas.StandingAnswer, now time.Time) []string {
	lines := []string{fmt.Sprintf("session %s: %s allowed since %s, up to risk %s; %s", Line(g.SessionID), schemas.Count(len(g.UsedBy), "call"), g.CreatedAt.Local().Format("15:04"), g.Leave.MaxRisk, until(g, now))}
	for _, u := range g.UsedBy {
		lines = append(lines, fmt.Sprintf("  %s  %s", u.At.Local().Format("15:04:05"), Line(u.Title)))
	}
	return lines
}

func uses(g *schemas.StandingAnswer) string {
	if !g.Limited || g.Uses < 1 {
		return ""
	}
	return "for " + schemas.Count(g.Uses, "more call")
}

func until(g *schemas.StandingAnswer, now time.Time) string {
	switch {
	case !g.RevokedAt.IsZero() && g.RevokedBy != "":
		return "revoked by " + Line(g.RevokedBy)
	case !g.RevokedAt.IsZero():
		return "revoked"
	case g.Limited && g.Uses < 1 && len(g.UsedBy) > 0 && g.Leave == nil:
		return "used by " + Line(g.UsedBy[len(g.UsedBy)-1].PendingID)
	case g.Limited && g.Uses < 1:
		return "used up"
	case !g.Live(now):
		return "ended"
	case g.ExpiresAt.IsZero():
		return "until it is revoked"
	}
	return "for another " + schemas.FormatRoughly(g.ExpiresAt.Sub(now))
}

// SortNewestFirst sorts standing answers by creation time, newest first.
func SortNewestFirst(all []schemas.StandingAnswer) {
	slices.SortStableFunc(all, func(a, b schemas.StandingAnswer) int { return b.CreatedAt.Compare(a.CreatedAt) })
}

// ScopeAndTerm returns the scope and the duration of a standing answer as the end of a
// sentence, such as ", in this session, for 30 minutes".
func ScopeAndTerm(g *schemas.StandingAnswer) string {
	where := ", for this agent"
	if g.Scope != schemas.ScopeAgent {
		where = ", in this session"
	}
	if g.ExpiresAt.IsZero() {
		return where + ", until it is revoked"
	}
	return where + ", for " + schemas.FormatDuration(g.ExpiresAt.Sub(g.CreatedAt))
}

// UndoHint returns a line with the command that ends the standing answer of d. If d created no standing
// answer, it returns "".
func UndoHint(d *schemas.Decision) string {
	g := d.Grant
	if g == nil {
		return ""
	}
	id := Line(g.GrantID[:min(shortGrant, len(g.GrantID))])
	switch {
	case g.Effect == schemas.EffectDeny && g.ExpiresAt.IsZero():
		return fmt.Sprintf("The same call is denied from now on as well. To be asked again: nod revoke %s", id)
	case g.Effect == schemas.EffectDeny:
		return fmt.Sprintf("The same call is denied for %s as well. To be asked again: nod revoke %s", schemas.FormatDuration(g.ExpiresAt.Sub(d.DecidedAt)), id)
	}
	return "To end this standing answer: nod revoke " + id
}
