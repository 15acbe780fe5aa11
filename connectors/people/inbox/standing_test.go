package inbox

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
)

type standingStub struct {
	all []schemas.StandingAnswer
	err error
}

func (l *standingStub) Grants(context.Context, string) ([]schemas.StandingAnswer, error) {
	return slices.Clone(l.all), l.err
}

func (l *standingStub) Revoke(_ context.Context, g *schemas.StandingAnswer, user string) error {
	for i := range l.all {
		if l.all[i].GrantID == g.GrantID && l.err == nil {
			l.all[i].RevokedAt, l.all[i].RevokedBy = start, user
		}
	}
	return l.err
}

// standing returns a screen with three standing answers: a grant, a newer denial, and a grant that has
// ended. It also returns the stub that contains them.
func standing(t *testing.T, width, height int) (*rig, *standingStub) {
	r := newRig(t, width, height)
	by := schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "terminal"}
	l := &standingStub{all: []schemas.StandingAnswer{
		{GrantID: "rule-12345", Scope: schemas.ScopeAgent, Agent: "local", Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"make"}}}, By: by, CreatedAt: start.Add(-time.Hour)},
		{
			GrantID: "denial-12345", Effect: schemas.EffectDeny, Scope: schemas.ScopeSession, SessionID: "S", Agent: "local", By: by, Question: "q-1", Message: "not \u202enow",
			Call: &schemas.ExactCall{ToolName: "Bash", Title: "rm -rf build"}, CreatedAt: start, ExpiresAt: start.Add(10 * time.Minute),
		},
		{GrantID: "ended-12345", Scope: schemas.ScopeAgent, Agent: "local", Permissions: []string{"@network"}, By: by, CreatedAt: start, RevokedAt: start},
	}}
	r.m.o.StandingAnswers = l
	r.hears(tickMsg{})
	return r, l
}

// The list contains grants and denials, newest first. The key x ends the selected one.
func TestStandingAnswersAreListedAndEnded(t *testing.T) {
	r, l := standing(t, 120, 30)
	r.says("g standing answers")
	r.presses("g")
	r.says("Standing answers · 2", "▸ deny the same Bash call again: rm -rf build", "in session S · for another 10 minutes · by Ann", "question q-1", `"not ⟦U+202E⟧now"`,
		"  allow Bash(make)", "for agent local, in any session · until it is revoked", "x forget")
	r.saysNot("@network")
	r.presses("x")
	r.says("Forgotten: the denial of the same Bash call again: rm -rf build", "Standing answers · 1", "▸ allow Bash(make)", "x revoke")
	r.types("x") // pressed too soon after a change, so the key has no effect
	r.Zero(l.all[0].RevokedAt)
	r.presses("x")
	r.says("Revoked: Bash(make)", "Nothing is allowed or denied beyond one call.")
	r.Equal("ann", l.all[0].RevokedBy)
	r.presses("x")
	r.types("esc")
	r.says("Nothing waits for an answer.")
	r.Empty(r.said())
}

func TestTheListOfStandingAnswersScrollsAndExpires(t *testing.T) {
	r, l := standing(t, 40, 12)
	r.presses("g")
	r.says("▸ deny")
	r.presses("down")
	r.says("▸ allow Bash(make)", "until it is revoked")
	r.presses("up")
	r.says("▸ deny")
	r.at = r.at.Add(11 * time.Minute)
	r.hears(tickMsg{})
	r.says("Standing answers · 1")
	l.err = schemas.Errorf(schemas.CodeForbidden, "you may not")
	r.presses("x")
	r.says("Nothing changed: you may not", "▸ allow Bash(make)")
	r.presses("y", "n", "s")
	r.Empty(r.said())
}
