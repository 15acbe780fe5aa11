package people

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/schemas"
)

// The description of a standing answer is one line. Every kind of standing answer has the same fields in
// the same order.
func TestStandingAnswersAreDescribedInOneLine(t *testing.T) {
	rules := []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"npm", "test"}, Project: "/p"}}
	given := func(change func(*schemas.StandingAnswer)) *schemas.StandingAnswer {
		g := &schemas.StandingAnswer{
			GrantID: "grant-1234567", Scope: schemas.ScopeSession, SessionID: "S", Agent: "local", By: human("Ann", "web"),
			Question: "r-1", CreatedAt: at1421,
		}
		change(g)
		return g
	}
	call := &schemas.ExactCall{ToolName: "Bash", Title: "rm -rf build"}
	in10 := at1421.Add(10 * time.Minute)
	for want, g := range map[string]*schemas.StandingAnswer{
		"grant-12  allow Bash(npm test) in /p  in session S  until it is revoked  by Ann, 2026-01-18 14:21 UTC  question r-1": given(func(g *schemas.StandingAnswer) { g.Rules = rules }),
		"grant-12  allow @network and @read:/x  for agent local, in any session  for another 10 minutes  by Ann, 2026-01-18 14:21 UTC  question r-1": given(func(g *schemas.StandingAnswer) {
			g.Scope, g.Effect, g.Permissions, g.ExpiresAt = schemas.ScopeAgent, schemas.EffectAllow, []string{"@network", "@read:/x"}, in10
		}),
		"grant-12  allow the same Bash call again: rm -rf build  in session S  for 1 more call  for another 10 minutes  by Ann, 2026-01-18 14:21 UTC  question r-1": given(func(g *schemas.StandingAnswer) {
			g.Call, g.Limited, g.Uses, g.ExpiresAt = call, true, 1, in10
		}),
		"grant-12  allow the same Bash call again: rm -rf build  in session S  used up  by Ann, 2026-01-18 14:21 UTC  question r-1": given(func(g *schemas.StandingAnswer) {
			g.Call, g.Limited = call, true
		}),
		`grant-12  deny the same Bash call again: rm -rf build  in session S  for another 10 minutes  by Ann, 2026-01-18 14:21 UTC  question r-1  "use make clean"`: given(func(g *schemas.StandingAnswer) {
			g.Effect, g.Call, g.Message, g.ExpiresAt = schemas.EffectDeny, call, "use make clean", in10
		}),
		"grant-12  deny the same Bash call again  in session S  revoked by Bob  by Ann, 2026-01-18 14:21 UTC  question r-1": given(func(g *schemas.StandingAnswer) {
			g.Effect, g.Call, g.RevokedAt, g.RevokedBy = schemas.EffectDeny, &schemas.ExactCall{ToolName: "Bash"}, at1421, "Bob"
		}),
		"grant-12  allow Bash(npm test) in /p  in session S  ended  by Ann, 2026-01-18 14:21 UTC  question r-1": given(func(g *schemas.StandingAnswer) { g.Rules, g.ExpiresAt = rules, at1421 }),
	} {
		assert.Equal(t, want, DescribeStanding(g, at1421.Add(time.Second)).String())
	}
}

func TestTheUndoOfAStandingAnswer(t *testing.T) {
	now := at1421
	for want, change := range map[string]func(*schemas.StandingAnswer){
		"revoke": func(*schemas.StandingAnswer) {},
		"forget": func(g *schemas.StandingAnswer) { g.Effect = schemas.EffectDeny },
		"":       func(g *schemas.StandingAnswer) { g.Effect, g.RevokedAt = schemas.EffectDeny, now },
	} {
		g := &schemas.StandingAnswer{GrantID: "grant-1234567"}
		change(g)
		assert.Equal(t, want, DescribeStanding(g, now).Undo)
	}
}

// The text about a denial that also applies to later calls contains the command that ends the denial.
func TestADenialOfLaterCallsNamesItsUndo(t *testing.T) {
	d := decided(schemas.Denied, schemas.RejectOnce, human("Bob", "web"), "")
	assert.Empty(t, UndoHint(d))
	d.Grant = &schemas.StandingAnswer{GrantID: "grant-1234567", Effect: schemas.EffectDeny, CreatedAt: at1421, ExpiresAt: at1421.Add(10 * time.Minute)}
	assert.Equal(t, "The same call is denied for 10 minutes as well. To be asked again: nod revoke grant-12", UndoHint(d))
	assert.Equal(t, "⛔ Denied · Bob · 14:21 UTC · web", Outcome(d, &schemas.Prompt{}), "nothing is allowed from now on")
	d.Grant.ExpiresAt = time.Time{}
	assert.True(t, strings.HasPrefix(UndoHint(d), "The same call is denied from now on as well."))
}
