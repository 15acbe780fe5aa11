package engine

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// An answer decides only the request that it names. This holds even if the agent has tried to send the
// answered call again under the id of another pending request, and nod has refused it.
func TestAnAnswerDecidesNoOtherRequestWithTheSameID(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	other := rig.Deploy("S", "other")
	other.ActionDetails = []byte(`{"to":"everywhere"}`)
	open := ada.Asks(other)
	shown := ada.Asks(rig.Deploy("S", "shown"))
	_, err := ada.Sends(rig.Deploy("S", "other"), false) // another request already has the id "other"
	env.Refusal(err, schemas.CodeConflict)

	env.Equal("shown", env.Ann().Allows(shown).PendingID)
	env.Nil(env.Stored(open.Key).Record.Decision)
	env.Soon("the outbox is idle", env.OutboxIdle)
	env.Nil(env.Stored(open.Key).Record.Decision)
}

// "Allow once" lets each waiting call run. Each detached call leaves an approval for the next
// identical call.
func TestAllowOnceOfADetachedCallAllowsOneLaterCall(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	first, second := ada.Asks(rig.Deploy("S", "first")), ada.Asks(rig.Deploy("S", "second"))
	env.NoError(ada.Asker.Detach(env.Ctx, "S", "first", "the host waits no longer"))
	_, err := env.Ann().SaysOf(first, "allow_once", 2)
	env.NoError(err)
	second.Ends(schemas.Allowed)
	env.Equal(schemas.Allowed, ada.Gets(rig.Deploy("S", "third")).Outcome)
	ada.Asks(rig.Deploy("S", "fourth"))
	ada.Refused(rig.Deploy("S", "first"), schemas.CodeConflict) // the third call has used the approval

	first, _ = ada.Asks(rig.Deploy("U", "first")), ada.Detaches(rig.Deploy("U", "second"))
	env.NoError(ada.Asker.Detach(env.Ctx, "U", "first", "the host waits no longer"))
	d, err := env.Ann().SaysOf(first, "allow_once", 2)
	env.NoError(err)
	env.Equal(2, d.Grant.Uses)
	env.Equal(schemas.Allowed, ada.Gets(rig.Deploy("U", "third")).Outcome)
	env.Equal(schemas.Allowed, ada.Gets(rig.Deploy("U", "second")).Outcome, "the approval of its own call")
	ada.Asks(rig.Deploy("U", "fourth"))
	ada.Refused(rig.Deploy("U", "first"), schemas.CodeConflict)

	// The agent sends a detached call again under another id, so that the new request replaces the detached
	// call. The answer allows the new request and leaves no approval.
	first = ada.Detaches(rig.Deploy("V", "first"))
	again := ada.Asks(rig.Deploy("V", "again"))
	env.Equal([]string{"first"}, listed(env, "V"))
	env.Ann().Allows(first)
	again.Ends(schemas.Allowed)
	env.Equal("the same call was made again later, and the later call gets the answer", ada.Gets(rig.Deploy("V", "first")).Message)
	ada.Asks(rig.Deploy("V", "more"))
}

// Two approvers give opposite answers at nearly the same time on different engines. Each answer is
// about the calls that the approver's prompt counted. The allow lets no other call run, and exactly
// one approver is refused.
func TestOneOfTwoOppositeAnswersIsRefused(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { fewerPrompts(s); s.Engines = 3 })
	ada := env.Agent("ada")
	for i := range rig.Times(t, 20, 60) {
		session := fmt.Sprint("S", i)
		first := ada.Asks(rig.Deploy(session, "first"))
		var second *rig.Question
		var yes, no error
		var both sync.WaitGroup
		both.Go(func() {
			asked, err := ada.Asker.Submit(env.Ctx, rig.Deploy(session, "second"))
			if err == nil {
				second = &rig.Question{OpenRequest: asked, Agent: ada}
			}
		})
		both.Go(func() { _, yes = env.Ann().SaysOf(first, "allow_once", 1) })
		both.Go(func() { _, no = env.Bob().SaysOf(first, "reject_once", 2) })
		both.Wait()
		env.NotNil(second)
		env.True((yes == nil) != (no == nil), "yes: %v, no: %v", yes, no)
		if yes == nil {
			first.Ends(schemas.Allowed)
			env.Soon("the second waits", func() bool { return slices.Equal([]string{"second"}, listed(env, session)) })
			env.Bob().Denies(second)
			second.Ends(schemas.Denied)
			continue
		}
		first.Ends(schemas.Denied)
		if ids := listed(env, session); len(ids) > 0 { // if Bob's denial was stored before the second call came, the second call is a question of its own
			env.Ann().Denies(second)
		}
		second.Ends(schemas.Denied)
	}
}

// A question takes at most 64 calls. The next identical call opens another question.
func TestAQuestionTakesAtMost64Calls(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	var all []*rig.Question
	for i := range rig.Times(t, 130, 200) {
		all = append(all, ada.Asks(rig.Deploy("S", fmt.Sprintf("q-%03d", i))))
	}
	ids := listed(env, "S")
	env.Equal([]string{"q-000", "q-064", "q-128", "q-192"}[:(len(all)+63)/64], ids)
	for _, id := range ids {
		p, _, err := env.Ann().Show(env.Ctx, "S", id)
		env.NoError(err)
		_, err = env.Ann().SaysOf(all[slices.IndexFunc(all, func(q *rig.Question) bool { return q.PendingID == id })], "reject_once", p.Waiters)
		env.NoError(err)
	}
	for _, q := range all {
		q.Ends(schemas.Denied)
	}
}

// An approver allows a detached call once while its agent sends the call again on another engine.
// The answer leaves an approval if the call is still detached; otherwise the call itself gets the
// answer. In both cases the call runs at most once.
func TestACallAskedAgainDuringItsAllowRunsOnce(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 3 })
	ada := env.Agent("ada")
	for i := range rig.Times(t, 20, 60) {
		session := fmt.Sprint("S", i)
		q := ada.Detaches(rig.Deploy(session, "first"))
		var all sync.WaitGroup
		all.Go(func() { _, _ = env.Ann().Says(q, "allow_once") })
		all.Go(func() { _, _ = ada.Sends(rig.Deploy(session, "first"), true) })
		all.Wait()
		rec := env.Stored(q.Key).Record
		env.True(rec.Terminal())
		once := rec.Decision.Grant != nil
		env.Equal(rec.Waiters[0].Detached, once, "an approval must be left exactly if no agent waited")
	}
}

// A call joins a question, or uses an approval, only if input, project, host, effect and
// options are the same.
func TestOnlyIdenticalCallsJoinAQuestion(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	var want []string
	for id, change := range map[string]func(*schemas.Request){
		"plain":   func(*schemas.Request) {},
		"project": func(r *schemas.Request) { r.Project = "/srv/bank" },
		"host":    func(r *schemas.Request) { r.Host = "prod" },
		"effect":  func(r *schemas.Request) { r.ActionType = schemas.ActionNetwork },
		"options": func(r *schemas.Request) {
			r.Options = append(schemas.DefaultOptions(), schemas.Option{OptionID: "always", Name: "Always allow", Kind: schemas.AllowAlways})
		},
	} {
		r := rig.Deploy("S", id)
		change(&r)
		ada.Asks(r)
		want = append(want, id)
	}
	env.ElementsMatch(want, listed(env, "S"))

	env.Ann().Allows(ada.Detaches(rig.Deploy("T", "first")))
	elsewhere := rig.Deploy("T", "elsewhere")
	elsewhere.Project = "/srv/bank"
	ada.Asks(elsewhere)
}

// The stored session does not grow with its denied and pending calls.
func TestAStoredSessionDoesNotGrowWithItsCalls(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	ada.Asks(rig.Deploy("S", "before"))
	before, err := schemas.Encode(session(env, "S"))
	env.NoError(err)
	n := rig.Times(t, 30, 80)
	for i := range n {
		r := rig.Deploy("S", fmt.Sprintf("d-%03d", i))
		r.ActionDetails = fmt.Appendf(nil, `{"to":"%d"}`, i)
		q := ada.Detaches(r)
		if i < n-10 {
			env.Ann().Denies(q)
		}
	}
	after, err := schemas.Encode(session(env, "S"))
	env.NoError(err)
	env.Equal(string(before), string(after))
	answers, err := env.Owner().Grants(env.Ctx, "S")
	env.NoError(err)
	env.Len(answers, n-10, "each denial is a standing answer of its own")
}

func session(e *rig.Env, id string) (s schemas.Session) {
	e.T.Helper()
	_, err := e.Store.Sessions.Get(e.Ctx, "session."+id, &s)
	e.NoError(err)
	return s
}

// changesAnswer changes a session's only standing answer in the store.
func changesAnswer(e *rig.Env, session string, change func(*schemas.StandingAnswer)) {
	e.T.Helper()
	keys, err := e.Store.Sessions.ListKeys(e.Ctx, "standing.session."+session+".*")
	e.NoError(err)
	e.Len(keys, 1)
	var page schemas.Grants
	revision, err := e.Store.Sessions.Get(e.Ctx, keys[0], &page)
	e.NoError(err)
	change(&page.Grants[0])
	_, err = e.Store.Sessions.Put(e.Ctx, keys[0], page, revision, time.Hour)
	e.NoError(err)
}

// A request has used an approval, and its agent sends the request again. The approval does not
// allow the repeated request if the use was long ago or if the approval is revoked.
func TestAUsedApprovalDoesNotAllowItsRequestForever(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	for name, then := range map[string]func(*schemas.StandingAnswer){
		"long ago": func(g *schemas.StandingAnswer) { g.UsedBy[0].At = g.CreatedAt.Add(-2 * time.Hour) },
		"revoked":  func(g *schemas.StandingAnswer) { g.RevokedAt = g.CreatedAt },
	} {
		session := schemas.SubjectToken(name)
		env.Ann().Allows(ada.Detaches(rig.Deploy(session, "first")))
		changesAnswer(env, session, func(g *schemas.StandingAnswer) {
			g.Uses, g.UsedBy = 0, []schemas.Use{{PendingID: "second", At: g.CreatedAt}}
			then(g)
		})
		ada.Asks(rig.Deploy(session, "second"))
	}
}

func TestARememberedDenialCanBeRevoked(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	env.Ann().Denies(ada.Asks(rig.Deploy("S", "first")))
	env.Equal(schemas.Denied, ada.Gets(rig.Deploy("S", "second")).Outcome)
	answers, err := env.Owner().Grants(env.Ctx, "S")
	env.NoError(err)
	env.Len(answers, 1)
	env.True(answers[0].Denies())
	env.Equal("first", answers[0].Question)
	env.NoError(env.Owner().Revoke(env.Ctx, &answers[0]))
	ada.Asks(rig.Deploy("S", "third"))
}

// A decided request that its agent sends again uses no approval of an identical call.
func TestAskingAgainAfterADecisionUsesNoApproval(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	over := ada.Asks(rig.Deploy("S", "over"))
	ada.Withdraws("S", "over")
	over.Ends(schemas.Withdrawn)
	env.Ann().Allows(ada.Detaches(rig.Deploy("S", "first")))
	env.Equal(schemas.Withdrawn, ada.Gets(rig.Deploy("S", "over")).Outcome)
	env.Equal(schemas.Allowed, ada.Gets(rig.Deploy("S", "second")).Outcome)
}
