package test

import (
	"context"
	"testing"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// detaches asks and then detaches, as a hook does when its host stops waiting.
func (a *agent) detaches(r schemas.Request) *question {
	a.t.Helper()
	q := a.Asks(r)
	a.NoError(a.asker.Detach(a.ctx, r.SessionID, r.PendingID, "the host waits no longer"))
	return q
}

// An approval that is given after the asker has gone lets the same call through once,
// if the agent asks again before the deadline.
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
	env.Agent("ben").Asks(deploy("T", "elsewhere")) // the approval covers neither

	d = ada.Gets(deploy("S", "second"))
	env.Equal(schemas.Allowed, d.Outcome)
	env.Equal("approval of first by Ann", d.By.Name)
	env.Equal(schemas.Allowed, ada.Gets(deploy("S", "second")).Outcome, "the same id gets the same decision again")
	ada.Asks(deploy("S", "third"))

	// The first asker comes back: another request has used the approval.
	ada.Refused(deploy("S", "first"), schemas.CodeConflict)
}

// A detached request may come back for its answer under its own id.
func TestADetachedCallMayComeBackUnderItsOwnID(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	q := ada.detaches(deploy("S", "first"))
	env.Ann().Allows(q)
	env.Equal(schemas.Allowed, ada.Gets(deploy("S", "first")).Outcome)
	ada.Asks(deploy("S", "second"))

	// If no approver has answered yet, it waits again.
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

// An approval is given after the asker stopped waiting and before its detach reaches nod:
// it lets the same call through once, like an approval after the detach.
func TestACallThatIsAllowedAsItsAskerGoesIsNotLost(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.engines = 2 })
	ada := env.Agent("ada")
	q := ada.Asks(deploy("S", "first"))
	env.Ann().Allows(q)
	d := q.Ends(schemas.Allowed)
	env.soon("the decision is logged", env.outboxIdle)
	for range 2 { // an agent repeats a call whose reply was lost
		env.NoError(ada.asker.Detach(env.ctx, "S", "first", "the host waits no longer"))
	}
	env.soon("the outbox has handled all changes", env.outboxIdle)
	env.Equal(1, env.loggedOf(schemas.LogDecided))
	env.Equal(d.DecisionID, env.stored(q.Key).Record.Decision.DecisionID)
	env.Equal(schemas.Allowed, ada.Gets(deploy("S", "second")).Outcome)
	ada.Asks(deploy("S", "third"))
	ada.Refused(deploy("S", "first"), schemas.CodeConflict) // the second request has used the approval

	denied := ada.Asks(deploy("T", "first"))
	env.Ann().Denies(denied)
	env.NoError(ada.asker.Detach(env.ctx, "T", "first", "the host waits no longer"))
	ada.Asks(deploy("T", "second"))
}

// If a detached call is asked again while it is pending, the new request joins it.
func TestAskingAgainTakesThePlaceOfADetachedCall(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.engines = 2 })
	ada := env.Agent("ada")
	first := ada.detaches(deploy("S", "first"))
	second := ada.Asks(deploy("S", "second"))
	_, err := env.Ann().Says(second, "allow_once")
	env.refusal(err, schemas.CodeConflict) // the question keeps the first request's id
	env.Ann().Allows(first)
	second.Ends(schemas.Allowed)
	ada.Asks(deploy("S", "third"))
}

// Many askers race for one approval: exactly one is let through.
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

// A detached call is not allowed later without an answer, after a denial, or by an
// approval that was revoked.
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

// A host went on: the requests about which it asked its own user as well are withdrawn,
// and no others.
func TestWhatAHostHasPassedIsWithdrawn(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	ask := func(id, task, to string) *question {
		r := deploy("S", id)
		r.TaskID, r.HostAsks, r.ActionDetails = task, true, []byte(`{"to":"`+to+`"}`)
		return ada.Asks(r)
	}
	plain := ada.Asks(deploy("S", "plain")) // the host does not ask its user about this one
	one, two := ask("one", "", "a"), ask("two", "", "a")
	sub, b := ask("sub", "helper", "b"), ask("b", "", "b")

	gone, err := ada.asker.HostResolved(env.ctx, schemas.HostResolved{SessionID: "S", ToolName: "Deploy", ActionDetails: []byte(`{"to":"a"}`), Reason: "answered at the terminal"})
	env.NoError(err)
	env.Equal([]string{"one"}, gone, "one call ran, so only the older request is withdrawn")
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

// An asker still waits for a request whose approval another request has used: it gets a
// conflict, and stops waiting.
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
	wire.cut()                                                 // the asker reconnects and asks again
	within, cancel := context.WithTimeout(env.ctx, 3*patience) // the asker may have to ask twice
	defer cancel()
	_, err = q.Await(within)
	env.refusal(err, schemas.CodeConflict)
}
