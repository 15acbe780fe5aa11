package test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// An id that is open for something else is not let through by what was said about
// the call under which it was sent once more.
func TestAnAnswerIsForNoOtherCallUnderAJoinersID(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	other := deploy("S", "other")
	other.ActionDetails = []byte(`{"to":"everywhere"}`)
	open := ada.Asks(other)
	shown := ada.Asks(deploy("S", "shown"))
	_, err := ada.Sends(deploy("S", "other"), false) // an id that is used
	env.refusal(err, schemas.CodeConflict)

	env.Equal("shown", env.Ann().Allows(shown).PendingID)
	env.Nil(env.stored(open.Key).Record.Decision)
	env.soon("all of it has happened", env.outboxIdle)
	env.Nil(env.stored(open.Key).Record.Decision)
}

// What was allowed once when its asker had gone lets one call through: one that
// asks the same and waits, or else the next that asks.
func TestAllowingADetachedCallOnceLetsOneThrough(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	first, second, third := ada.Asks(deploy("S", "first")), ada.Asks(deploy("S", "second")), ada.Asks(deploy("S", "third"))
	env.NoError(ada.asker.Detach(env.ctx, "S", "first", "the host waits no longer"))
	d, err := env.Ann().Says(first, "allow_once")
	env.NoError(err)
	env.Equal("third", d.PendingID)
	third.Ends(schemas.Allowed)
	second.Ends(schemas.Withdrawn)
	ada.Asks(deploy("S", "fourth"))

	// Of those that joined nobody waits either.
	first, _ = ada.Asks(deploy("T", "first")), ada.detaches(deploy("T", "second"))
	env.Ann().Allows(first)
	first.Ends(schemas.Allowed)

	first, _ = ada.Asks(deploy("U", "first")), ada.detaches(deploy("U", "second"))
	env.NoError(ada.asker.Detach(env.ctx, "U", "first", "the host waits no longer"))
	env.NotNil(env.Ann().Allows(first).Grant)
	env.Equal(schemas.Allowed, ada.Gets(deploy("U", "third")).Outcome)
	ada.Asks(deploy("U", "fourth"))
}

// A tap that comes twice while one more joins in between lets the one through.
func TestATapThatComesTwiceLetsOneThrough(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	first, second := ada.Asks(deploy("S", "first")), ada.Asks(deploy("S", "second"))
	// An engine that was killed between its two writes has let the second through.
	entry := env.stored(second.Key)
	entry.Record.NextEvent = nil
	entry.Record.Decision = &schemas.Decision{
		Type: schemas.TypeDecision, SessionID: "S", PendingID: "second", DecisionID: "cut-short", Outcome: schemas.Allowed,
		OptionID: "allow_once", OptionKind: schemas.AllowOnce, Digest: entry.Record.Digest,
		By: schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "terminal"}, DecidedAt: entry.Record.Deadline,
	}
	_, err := env.store.Records.Decide(env.ctx, entry)
	env.NoError(err)
	third := ada.Asks(deploy("S", "third"))
	env.Equal("second", env.Ann().Allows(first).PendingID)
	first.Ends(schemas.Withdrawn)
	third.Ends(schemas.Withdrawn)
}

// One says yes while another says no, on different engines, to a call that was asked
// twice: nobody is told no and the call is let through.
func TestNobodyIsToldNoAndItIsLetThrough(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { fewerPrompts(s); s.engines = 3 })
	ada := env.Agent("ada")
	for i := range 60 {
		session := fmt.Sprint("S", i)
		first, second := ada.Asks(deploy(session, "first")), ada.Asks(deploy(session, "second"))
		var yes, no error
		var let schemas.Decision
		var then bus.Entry
		var both sync.WaitGroup
		both.Go(func() { let, yes = env.Ann().Says(first, "allow_once") })
		both.Go(func() {
			_, no = env.Bob().Says(first, "reject_once")
			then, _ = env.store.Records.Get(env.ctx, second.Key) // as it is when he is told
		})
		both.Wait()
		env.True((yes == nil) != (no == nil), "yes: %v, no: %v", yes, no)
		if no == nil {
			env.NotNil(then.Record.Decision, "decided when he is told")
			first.Ends(schemas.Denied)
			second.Ends(schemas.Denied)
		} else {
			env.Equal(schemas.Allowed, let.Outcome)
			second.Ends(schemas.Allowed)
		}
	}
}

// A person says yes while the asker comes back, and goes, on other engines: one
// call is let through.
func TestComingBackWhileAPersonAllowsLetsOneThrough(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.engines = 3 })
	ada := env.Agent("ada")
	for i := range 60 {
		session := fmt.Sprint("S", i)
		q := ada.detaches(deploy(session, "first"))
		var all sync.WaitGroup
		all.Go(func() { _, _ = env.Ann().Says(q, "allow_once") })
		all.Go(func() { _, _ = ada.Sends(deploy(session, "first"), true) })
		all.Wait()
		rec := env.stored(q.Key).Record
		env.True(rec.Terminal())
		once := rec.Decision.Grant != nil
		env.Equal(rec.Detached, once, "an approval is left behind where nobody waited, and there alone")
	}
}

// A word about a call is for the very same one, where its approver may decide, and
// with the options that were offered.
func TestWhatIsJoinedIsTheVerySame(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
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
		r := deploy("S", id)
		change(&r)
		ada.Asks(r)
		want = append(want, id)
	}
	env.ElementsMatch(want, env.listed("S"))

	env.Ann().Allows(ada.detaches(deploy("T", "first")))
	elsewhere := deploy("T", "elsewhere")
	elsewhere.Project = "/srv/bank"
	ada.Asks(elsewhere)
}

// However often an agent asks, is denied and leaves its calls open: what is kept
// of it stays small enough to be kept, and people are heard.
func TestWhatIsKeptOfASessionIsBounded(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	var all []*question
	for i := range 80 {
		all = append(all, ada.Asks(deploy("S", fmt.Sprintf("q-%03d", i))))
	}
	shown := env.listed("S")
	env.Less(len(shown), 10)
	for _, q := range all {
		env.LessOrEqual(len(env.stored(q.Key).Record.Joiners), 64)
	}
	for _, q := range all {
		if slices.Contains(shown, q.PendingID) {
			env.Ann().Denies(q)
		}
	}
	for _, q := range all {
		q.Ends(schemas.Denied)
	}
	env.Len(env.session("S").Denials, 1, "one call was denied")

	for i := range 80 {
		r := deploy("S", fmt.Sprintf("d-%03d", i))
		r.ActionDetails = fmt.Appendf(nil, `{"to":"%d"}`, i)
		q := ada.detaches(r)
		if i < 70 {
			env.Ann().Denies(q)
		}
	}
	env.LessOrEqual(len(env.session("S").Detached), 64)
	env.LessOrEqual(len(env.session("S").Denials), 64)
}

// session is a session as it is stored.
func (e *env) session(id string) (s schemas.Session) {
	e.t.Helper()
	_, err := e.store.Sessions.Get(e.ctx, "session."+id, &s)
	e.NoError(err)
	return s
}

// The request that an approval let through finds it again, but not for ever, and not
// after it was revoked.
func TestAnApprovalThatWasUsedIsNotFoundForEver(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	for name, then := range map[string]func(*schemas.StandingAnswer){
		"long ago": func(g *schemas.StandingAnswer) { g.Once.UsedAt = g.CreatedAt.Add(-2 * time.Hour) },
		"revoked":  func(g *schemas.StandingAnswer) { g.Once.UsedAt, g.RevokedAt = g.CreatedAt, g.CreatedAt },
	} {
		session := schemas.Token(name)
		env.Ann().Allows(ada.detaches(deploy(session, "first")))
		s := env.session(session)
		s.Grants[0].Once.UsedBy = "second"
		then(&s.Grants[0])
		var now schemas.Session
		revision, err := env.store.Sessions.Get(env.ctx, "session."+session, &now)
		env.NoError(err)
		_, err = env.store.Sessions.Put(env.ctx, "session."+session, s, revision, time.Hour)
		env.NoError(err)
		ada.Asks(deploy(session, "second"))
	}
}

// What has its decision uses no approval up when it is asked about again.
func TestAskingAboutWhatIsDecidedUsesNothingUp(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	over := ada.Asks(deploy("S", "over"))
	ada.Withdraws("S", "over")
	over.Ends(schemas.Withdrawn)
	env.Ann().Allows(ada.detaches(deploy("S", "first")))
	env.Equal(schemas.Withdrawn, ada.Gets(deploy("S", "over")).Outcome)
	env.Equal(schemas.Allowed, ada.Gets(deploy("S", "second")).Outcome)
}
