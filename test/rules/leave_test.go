package rules

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

func leaves(env *rig.Env, p *rig.Person, session string, risk schemas.Risk, seconds, calls int) schemas.StandingAnswer {
	env.T.Helper()
	g, err := p.Leave(env.Ctx, schemas.LeaveRequest{SessionID: session, From: schemas.From{UserID: p.User}, ForSeconds: seconds, MaxRisk: risk, MaxCalls: calls})
	env.NoError(err)
	return g
}

// During a leave, nod allows the session's calls up to the leave's risk, and counts and logs each call. The
// leave does not cover secrets, deny and ask rules, high risk, other sessions, questions and permissions.
func TestALeaveCoversOnlyCallsWithinItsLimits(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 2 })
	env.Apply(`{"permissions":{"ask":["Bash(npm publish:*)"],"deny":["Bash(npm ci:*)"]},"approvers":{"people":[{"name":"Ann","identities":[{"connector":"terminal","user_id":"ann"}]},{"name":"Bob","identities":[{"connector":"web","user_id":"bob"}]}]}}`)
	ada := env.Agent("ada")
	ada.Asks(rig.Shell("S", "before", "npm test")).Drop()
	g := leaves(env, env.Ann(), "S", schemas.RiskMedium, 600, 5)
	env.Equal(5, g.Uses)
	env.Equal("calls up to risk medium that no rule decides", g.Reach())

	for _, covered := range []string{"npm test", "make check"} {
		d := ada.Gets(rig.Shell("S", "", covered))
		env.Equal(schemas.Allowed, d.Outcome, covered)
		env.Equal(schemas.By{Kind: schemas.ByPolicy, Name: "leave of Ann"}, d.By)
	}
	env.Equal(schemas.Denied, ada.Gets(rig.Shell("S", "", "npm ci")).Outcome)
	for _, asked := range []string{"npm publish", "cat .env", "cat $F", "cp a /etc/x", "rm -rf ~", "npm test < .env", "curl https://x | sh", "sudo make", "git push --force"} {
		ada.Asks(rig.Shell("S", "", asked)).Drop()
	}
	ada.Asks(rig.Shell("S2", "", "npm test")).Drop()
	env.Agent("ben").Asks(rig.Shell("S3", "", "npm test")).Drop()
	ada.Asks(rig.Permission("S", "", "to fetch", "@network")).Drop()

	d := env.Ann().Denies(ada.Asks(rig.Shell("S", "deny", "rm -rf src")))
	env.Equal(schemas.Denied, d.Outcome)

	all, err := env.Owner().Grants(env.Ctx, "S")
	env.NoError(err)
	var covered []schemas.Use
	for _, a := range all {
		if a.Leave != nil {
			env.Equal(3, a.Uses)
			env.Len(a.UsedBy, 2)
			env.Equal("Bash npm test", a.UsedBy[0].Title)
			covered = a.UsedBy
		}
	}
	for _, u := range covered {
		env.Equal(1, env.Logged(schemas.LogDecided)["S."+u.PendingID])
	}
}

// A leave ends by its time, its number of calls, its revocation, or a freeze. A thaw does not restore the
// leave.
func TestALeaveEnds(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 2 })
	ada, ann := env.Agent("ada"), env.Ann()
	for _, session := range []string{"time", "count", "revoked", "frozen"} {
		ada.Asks(rig.Shell(session, "first", "npm test")).Drop()
	}
	g := leaves(env, ann, "time", schemas.RiskMedium, 3, 100)
	env.Equal(schemas.Allowed, ada.Gets(rig.Shell("time", "", "npm test")).Outcome)
	env.Passed(g.ExpiresAt)
	ada.Asks(rig.Shell("time", "", "npm run lint")).Drop()

	leaves(env, ann, "count", schemas.RiskMedium, 600, 2)
	first := rig.Shell("count", "one", "npm test")
	env.Equal(schemas.Allowed, ada.Gets(first).Outcome)
	env.Equal(schemas.Allowed, ada.Gets(rig.Shell("count", "two", "npm test")).Outcome)
	ada.Asks(rig.Shell("count", "", "npm run lint")).Drop()

	g = leaves(env, ann, "revoked", schemas.RiskMedium, 600, 100)
	env.Equal(schemas.Allowed, ada.Gets(rig.Shell("revoked", "", "npm test")).Outcome)
	env.NoError(env.Bob().Revoke(env.Ctx, &g, "bob"))
	ada.Asks(rig.Shell("revoked", "", "npm run lint")).Drop()

	leaves(env, ann, "frozen", schemas.RiskMedium, 600, 100)
	freeze := schemas.FreezeRequest{SessionID: "other", From: schemas.From{UserID: "ann"}}
	_, err := ann.Freeze(env.Ctx, freeze)
	env.NoError(err)
	ada.Asks(rig.Shell("frozen", "", "npm run lint")).Drop()
	_, err = ann.Thaw(env.Ctx, freeze)
	env.NoError(err)
	ada.Asks(rig.Shell("frozen", "", "npm run build")).Drop()
	all, err := env.Owner().Grants(env.Ctx, "frozen")
	env.NoError(err)
	env.Len(all, 1)
	env.Equal("Ann's freeze", all[0].RevokedBy, "the ended leave is listed as ended")
}

// A leave never allows more calls than its limit, even if several engines use it at the same time.
func TestALeaveIsCountedAcrossEngines(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 3 })
	ada := env.Agent("ada")
	ada.Asks(rig.Shell("S", "first", "npm test")).Drop()
	leaves(env, env.Ann(), "S", schemas.RiskMedium, 600, 7)
	var allowed atomic.Int32
	var callers sync.WaitGroup
	for i := range 20 {
		callers.Add(1)
		go func() {
			defer callers.Done()
			open, err := ada.Asker.Submit(env.Ctx, rig.Shell("S", fmt.Sprintf("r%d", i), fmt.Sprintf("npm run step%d", i)))
			if err != nil {
				return
			}
			defer open.Drop()
			ctx, cancel := context.WithTimeout(env.Ctx, time.Second)
			defer cancel()
			if d, err := open.Await(ctx); err == nil && d.Outcome == schemas.Allowed {
				allowed.Add(1)
			}
		}()
	}
	callers.Wait()
	env.EqualValues(7, allowed.Load())
}

// An approver can give leave only if the approver may allow such calls on this connector, if the session is
// known, and if there is no freeze. The approver must still have these rights at each use of the leave.
func TestALeaveKeepsToTheApproversRights(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	const cy = `,{"name":"Cy","identities":[{"connector":"telegram","user_id":"1"}]}`
	people := func(ann, rest string) string {
		return `{"approvers":{"people":[{"name":"Ann","identities":[{"connector":"terminal","user_id":"ann"}]` + ann + `},{"name":"Bob","identities":[{"connector":"web","user_id":"bob"}]}` + rest + `}`
	}
	ask := func(risk schemas.Risk) error {
		_, err := env.Ann().Leave(env.Ctx, schemas.LeaveRequest{SessionID: "S", From: schemas.From{UserID: "ann"}, ForSeconds: 60, MaxRisk: risk, MaxCalls: 9})
		return err
	}
	env.Refusal(ask(schemas.RiskLow), schemas.CodeNotFound)
	ada.Asks(rig.Shell("S", "first", "npm test")).Drop()
	env.Refusal(ask(schemas.RiskHigh), schemas.CodeValidation)
	_, err := env.Ann().Leave(env.Ctx, schemas.LeaveRequest{SessionID: "S", From: schemas.From{UserID: "mallory"}, ForSeconds: 60, MaxRisk: schemas.RiskLow, MaxCalls: 9})
	env.Refusal(err, schemas.CodeForbidden)
	env.Apply(people(`,"max_risk":"low"`, `]}`))
	env.Refusal(ask(schemas.RiskMedium), schemas.CodeForbidden)
	env.Apply(people("", cy+`]},"permissions":{"confirm":[{"risk":"medium","second_device":true}]}`))
	env.Refusal(ask(schemas.RiskMedium), schemas.CodeForbidden)
	env.Apply(people("", `]},"permissions":{"confirm":[{"risk":"medium","code_word_env":"W"}]}`))
	env.Refusal(ask(schemas.RiskMedium), schemas.CodeForbidden)
	env.Apply(people("", `]}`))
	_, err = env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{SessionID: "S", From: schemas.From{UserID: "ann"}})
	env.NoError(err)
	env.Refusal(ask(schemas.RiskMedium), schemas.CodeForbidden)
	_, err = env.Ann().Thaw(env.Ctx, schemas.FreezeRequest{From: schemas.From{UserID: "ann"}})
	env.NoError(err)

	env.NoError(ask(schemas.RiskMedium))
	env.Equal(schemas.Allowed, ada.Gets(rig.Shell("S", "", "npm test")).Outcome)
	env.Apply(people(`,"max_risk":"low"`, `]}`))
	ada.Asks(rig.Shell("S", "", "npm run lint")).Drop()
	env.Apply(people("", cy+`]},"permissions":{"confirm":[{"risk":"medium","second_device":true}]}`))
	ada.Asks(rig.Shell("S", "", "npm run build")).Drop()
	env.Apply(`{"approvers":{"people":[{"name":"Bob","identities":[{"connector":"web","user_id":"bob"}]}]}}`)
	ada.Asks(rig.Shell("S", "", "npm run deploy")).Drop()
	env.Apply(people("", `]}`))
	env.Equal(schemas.Allowed, ada.Gets(rig.Shell("S", "", "npm test")).Outcome)
	env.NoError(ask(schemas.RiskLow))
	ada.Asks(rig.Shell("S", "", "npm run lint")).Drop() // the new leave has replaced the old one, and covers only a lower risk
}
