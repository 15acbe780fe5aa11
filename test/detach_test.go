package test

import (
	"context"
	"testing"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// detaches asks and stops waiting, as a hook does whose host waits no longer.
func (a *agent) detaches(r schemas.Request) *question {
	a.t.Helper()
	q := a.Asks(r)
	a.NoError(a.asker.Detach(a.ctx, r.SessionID, r.PendingID, "the host waits no longer"))
	return q
}

// What is allowed after its asker has gone lets the same call through once, when
// it is asked again before the deadline.
func TestADetachedCallThatIsAllowedRunsOnceWhenAskedAgain(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	q := ada.detaches(deploy("S", "first"))
	shown, _, err := env.Ann().Show(env.ctx, "S", "first")
	env.NoError(err)
	env.True(shown.Detached)
	env.Equal(q.Receipt.Deadline, shown.Deadline, "detaching moves no deadline")

	edited := env.Ann().answer(q, "allow_once")
	edited.UpdatedInput = []byte(`{"to":"staging"}`)
	_, err = env.Ann().Answer(env.ctx, edited)
	env.refusal(err, schemas.CodeValidation)

	d := env.Ann().Allows(q)
	env.NotNil(d.Grant)
	env.True(d.Grant.ExpiresAt.Equal(q.Receipt.Deadline))

	other := deploy("S", "other")
	other.ActionDetails = []byte(`{"to":"staging"}`)
	env.Agent("ada").Asks(other)
	env.Agent("ben").Asks(deploy("T", "elsewhere")) // another agent, another session

	d = ada.Gets(deploy("S", "second"))
	env.Equal(schemas.Allowed, d.Outcome)
	env.Equal("approval of first by Ann", d.By.Name)
	env.Equal(schemas.Allowed, ada.Gets(deploy("S", "second")).Outcome, "the same id hears the same again")
	ada.Asks(deploy("S", "third"))

	// The first asker comes back: what was allowed is used up.
	ada.Refused(deploy("S", "first"), schemas.CodeConflict)
}

// The very request that was detached may come back for its answer itself.
func TestADetachedCallMayComeBackUnderItsOwnID(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	q := ada.detaches(deploy("S", "first"))
	env.Ann().Allows(q)
	env.Equal(schemas.Allowed, ada.Gets(deploy("S", "first")).Outcome)
	ada.Asks(deploy("S", "second"))

	// And wait again, where nobody has answered yet.
	other := deploy("S", "other")
	other.ActionDetails = []byte(`{"to":"staging"}`)
	ada.detaches(other)
	waits := ada.Asks(other)
	shown, _, err := env.Ann().Show(env.ctx, "S", "other")
	env.NoError(err)
	env.False(shown.Detached)
	env.Nil(env.Ann().Allows(waits).Grant)
	waits.Ends(schemas.Allowed)
}

// What a person allowed before its asker could say that it had stopped waiting lets
// the same call through once, as if it had been said in time.
func TestACallThatIsAllowedAsItsAskerGoesIsNotLost(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.engines = 2 })
	ada := env.Agent("ada")
	q := ada.Asks(deploy("S", "first"))
	env.Ann().Allows(q)
	d := q.Ends(schemas.Allowed)
	env.soon("it is logged", env.outboxIdle)
	for range 2 { // a lost reply is asked for again
		env.NoError(ada.asker.Detach(env.ctx, "S", "first", "the host waits no longer"))
	}
	env.soon("all of it has happened", env.outboxIdle)
	env.Equal(1, env.loggedOf(schemas.LogDecided))
	env.Equal(d.DecisionID, env.stored(q.Key).Record.Decision.DecisionID)
	env.Equal(schemas.Allowed, ada.Gets(deploy("S", "second")).Outcome)
	ada.Asks(deploy("S", "third"))
	ada.Refused(deploy("S", "first"), schemas.CodeConflict) // the second has used it

	denied := ada.Asks(deploy("T", "first"))
	env.Ann().Denies(denied)
	env.NoError(ada.asker.Detach(env.ctx, "T", "first", "the host waits no longer"))
	ada.Asks(deploy("T", "second"))
}

// Asked again while the first is open, the new one takes its place.
func TestAskingAgainTakesThePlaceOfADetachedCall(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.engines = 2 })
	ada := env.Agent("ada")
	first := ada.detaches(deploy("S", "first"))
	second := ada.Asks(deploy("S", "second"))
	_, err := env.Ann().Says(second, "allow_once")
	env.refusal(err, schemas.CodeConflict) // it is asked as the first
	env.Ann().Allows(first)
	second.Ends(schemas.Allowed)
	ada.Asks(deploy("S", "third"))
}

// Two askers race for one approval: one is let through.
func TestAnApprovalIsUsedByOne(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.engines = 3 })
	ada := env.Agent("ada")
	env.Ann().Allows(ada.detaches(deploy("S", "first")))
	const askers = 20
	through := make(chan bool, askers)
	for range askers {
		go func() {
			asked, err := ada.asker.Submit(env.ctx, deploy("S", ""))
			through <- err == nil && asked.Receipt.Revision == 0
		}()
	}
	n := 0
	for range askers {
		if <-through {
			n++
		}
	}
	env.Equal(1, n)
}

// What nobody answered is not allowed later, a denial leaves nothing behind, and
// a revoked approval is none.
func TestADetachedCallIsNotAllowedByItself(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	q := ada.detaches(deploy("S", "first"))
	d := env.Ann().Allows(q)
	env.NoError(env.owner().Revoke(env.ctx, d.Grant))
	second := ada.Asks(deploy("S", "second"))
	env.NoError(ada.asker.Detach(env.ctx, "S", "second", "gone"))
	env.Ann().Denies(second)
	ada.Asks(deploy("S", "third"))
}

// The host went on: what it asked its own user as well is withdrawn, and nothing
// else.
func TestWhatAHostHasPassedIsWithdrawn(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	ask := func(id, task, to string) *question {
		r := deploy("S", id)
		r.TaskID, r.HostAsks, r.ActionDetails = task, true, []byte(`{"to":"`+to+`"}`)
		return ada.Asks(r)
	}
	plain := ada.Asks(deploy("S", "plain")) // no host asks this one
	one, two := ask("one", "", "a"), ask("two", "", "a")
	sub, b := ask("sub", "helper", "b"), ask("b", "", "b")

	gone, err := ada.asker.HostResolved(env.ctx, schemas.HostResolved{SessionID: "S", ToolName: "Deploy", ActionDetails: []byte(`{"to":"a"}`), Reason: "answered at the terminal"})
	env.NoError(err)
	env.Equal([]string{"one"}, gone, "one call ran: the older one")
	env.Equal("answered at the terminal", one.Ends(schemas.Withdrawn).Message)

	gone, err = env.Agent("ben").asker.HostResolved(env.ctx, schemas.HostResolved{SessionID: "S", WholeSession: true, Reason: "not mine"})
	env.NoError(err)
	env.Empty(gone)

	gone, err = ada.asker.HostResolved(env.ctx, schemas.HostResolved{SessionID: "S", TaskID: "helper", Reason: "over"})
	env.NoError(err)
	env.Equal([]string{"sub"}, gone)
	sub.Ends(schemas.Withdrawn)

	gone, err = ada.asker.HostResolved(env.ctx, schemas.HostResolved{SessionID: "S", WholeSession: true, Reason: "over"})
	env.NoError(err)
	env.ElementsMatch([]string{"two", "b"}, gone)
	two.Ends(schemas.Withdrawn)
	b.Ends(schemas.Withdrawn)

	env.Ann().Allows(plain)
	plain.Ends(schemas.Allowed)
	env.WithinDuration(time.Now(), plain.Hears().DecidedAt, time.Minute)
}

// Whoever still waits for a call of which the approval was used by another hears
// that, and waits no longer.
func TestAnApprovalThatAnotherUsedIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	wire := env.wire()
	conn := env.dial(roles.AgentID("ada"), wire.url)
	defer conn.Close()
	asker := bus.NewAsker(conn, "ada")
	defer asker.Close()

	q, err := asker.Submit(env.ctx, shell("S", "1", "make"))
	env.NoError(err)
	env.NoError(ada.asker.Detach(env.ctx, "S", "1", "gave up"))
	ann.Allows(&question{q, ada})
	env.Equal("approval of 1 by Ann", ada.Gets(shell("S", "2", "make")).By.Name)
	wire.cut()                                                 // which has it ask again
	within, cancel := context.WithTimeout(env.ctx, 3*patience) // it may have to ask twice
	defer cancel()
	_, err = q.Await(within)
	env.refusal(err, schemas.CodeConflict)
}
