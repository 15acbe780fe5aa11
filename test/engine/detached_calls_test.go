package engine

import (
	"context"
	"testing"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// A person allows a call after its agent has stopped waiting. The approval lets the agent repeat
// the same call once before the deadline.
func TestADetachedCallThatIsAllowedRunsOnceWhenAskedAgain(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	q := ada.Detaches(rig.Deploy("S", "first"))
	shown, _, err := env.Ann().Show(env.Ctx, "S", "first")
	env.NoError(err)
	env.True(shown.Detached)
	env.Equal(q.Receipt.Deadline, shown.Deadline, "detaching moves no deadline")

	edited := env.Ann().AnswerTo(q, "allow_once")
	edited.UpdatedInput = []byte(`{"to":"staging"}`)
	_, err = env.Ann().Answer(env.Ctx, edited)
	env.Refusal(err, schemas.CodeValidation)

	d := env.Ann().Allows(q)
	env.NotNil(d.Grant)
	env.True(d.Grant.ExpiresAt.Equal(q.Receipt.Deadline))

	other := rig.Deploy("S", "other")
	other.ActionDetails = []byte(`{"to":"staging"}`)
	env.Agent("ada").Asks(other)
	env.Agent("ben").Asks(rig.Deploy("T", "elsewhere")) // the approval covers neither another session nor another input

	d = ada.Gets(rig.Deploy("S", "second"))
	env.Equal(schemas.Allowed, d.Outcome)
	env.Equal("approval of first by Ann", d.By.Name)
	env.Equal(schemas.Allowed, ada.Gets(rig.Deploy("S", "second")).Outcome, "the same id gets the same decision again")
	ada.Asks(rig.Deploy("S", "third"))

	// The call "second" has used the approval, so the agent cannot send the request "first" again.
	ada.Refused(rig.Deploy("S", "first"), schemas.CodeConflict)
}

// An agent may send its detached request again, under the same id, to get its answer.
func TestADetachedCallMayBeAskedAgainUnderItsOwnID(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	q := ada.Detaches(rig.Deploy("S", "first"))
	env.Ann().Allows(q)
	env.Equal(schemas.Allowed, ada.Gets(rig.Deploy("S", "first")).Outcome)
	ada.Asks(rig.Deploy("S", "second"))

	// A detached request that its agent sends again before any answer is no longer detached.
	other := rig.Deploy("S", "other")
	other.ActionDetails = []byte(`{"to":"staging"}`)
	ada.Detaches(other)
	waits := ada.Asks(other)
	shown, _, err := env.Ann().Show(env.Ctx, "S", "other")
	env.NoError(err)
	env.False(shown.Detached)
	env.Nil(env.Ann().Allows(waits).Grant)
	waits.Ends(schemas.Allowed)
}

// A person allows a call between the moment when its agent stops waiting and the arrival of the
// agent's detach. The approval lets the same call run once, as if the detach had come first.
func TestAnAllowBeforeADetachLeavesAnApproval(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 2 })
	ada := env.Agent("ada")
	q := ada.Asks(rig.Deploy("S", "first"))
	env.Ann().Allows(q)
	d := q.Ends(schemas.Allowed)
	env.Soon("the decision is logged", env.OutboxIdle)
	for range 2 { // an agent repeats its detach if it got no reply
		env.NoError(ada.Asker.Detach(env.Ctx, "S", "first", "the host waits no longer"))
	}
	env.Soon("the outbox has handled all changes", env.OutboxIdle)
	env.Equal(1, env.LoggedOf(schemas.LogDecided))
	env.Equal(d.DecisionID, env.Stored(q.Key).Record.Decision.DecisionID)
	env.Equal(schemas.Allowed, ada.Gets(rig.Deploy("S", "second")).Outcome)
	ada.Asks(rig.Deploy("S", "third"))
	ada.Refused(rig.Deploy("S", "first"), schemas.CodeConflict) // the second request has used the approval

	denied := ada.Asks(rig.Deploy("T", "first"))
	env.Ann().Denies(denied)
	env.NoError(ada.Asker.Detach(env.Ctx, "T", "first", "the host waits no longer"))
	ada.Asks(rig.Deploy("T", "second"))
}

func TestAnIdenticalCallJoinsADetachedCall(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 2 })
	ada := env.Agent("ada")
	first := ada.Detaches(rig.Deploy("S", "first"))
	second := ada.Asks(rig.Deploy("S", "second"))
	_, err := env.Ann().Says(second, "allow_once")
	env.Refusal(err, schemas.CodeConflict) // the question keeps the first request's id
	env.Ann().Allows(first)
	second.Ends(schemas.Allowed)
	ada.Asks(rig.Deploy("S", "third"))
}

// One approval allows exactly one of many identical requests that are sent at once.
func TestAnApprovalAllowsOneOfManyCalls(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 3 })
	ada := env.Agent("ada")
	env.Ann().Allows(ada.Detaches(rig.Deploy("S", "first")))
	const askers = 20
	through := make(chan bool, askers)
	for range askers {
		go func() {
			asked, err := ada.Asker.Submit(env.Ctx, rig.Deploy("S", ""))
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

// If a person denies a detached call or revokes its approval, no approval is left. A person must decide about
// the next identical call.
func TestADeniedOrRevokedDetachedCallLeavesNoApproval(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	q := ada.Detaches(rig.Deploy("S", "first"))
	d := env.Ann().Allows(q)
	env.NoError(env.Owner().Revoke(env.Ctx, d.Grant))
	second := ada.Asks(rig.Deploy("S", "second"))
	env.NoError(ada.Asker.Detach(env.Ctx, "S", "second", "gone"))
	env.Ann().Denies(second)
	ada.Asks(rig.Deploy("S", "third"))
}

// A host reports that it no longer needs a decision, for example because its own user has answered. Of the
// requests that match the report, nod withdraws only those about which the host has asked its own user.
func TestAHostThatGoesOnWithdrawsItsRequests(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	ask := func(id, task, to string) *rig.Question {
		r := rig.Deploy("S", id)
		r.TaskID, r.HostAsks, r.ActionDetails = task, true, []byte(`{"to":"`+to+`"}`)
		return ada.Asks(r)
	}
	plain := ada.Asks(rig.Deploy("S", "plain")) // the host does not ask its user about this call
	one, two := ask("one", "", "a"), ask("two", "", "a")
	sub, b := ask("sub", "helper", "b"), ask("b", "", "b")

	gone, err := ada.Asker.HostResolved(env.Ctx, schemas.HostResolved{SessionID: "S", ToolName: "Deploy", ActionDetails: []byte(`{"to":"a"}`), Reason: "answered at the terminal"})
	env.NoError(err)
	env.Equal([]string{"one"}, gone, "one call ran, so only the older request is withdrawn")
	env.Equal("answered at the terminal", one.Ends(schemas.Withdrawn).Message)

	gone, err = env.Agent("ben").Asker.HostResolved(env.Ctx, schemas.HostResolved{SessionID: "S", WholeSession: true, Reason: "not mine"})
	env.NoError(err)
	env.Empty(gone)

	gone, err = ada.Asker.HostResolved(env.Ctx, schemas.HostResolved{SessionID: "S", TaskID: "helper", Reason: "over"})
	env.NoError(err)
	env.Equal([]string{"sub"}, gone)
	sub.Ends(schemas.Withdrawn)

	gone, err = ada.Asker.HostResolved(env.Ctx, schemas.HostResolved{SessionID: "S", WholeSession: true, Reason: "over"})
	env.NoError(err)
	env.ElementsMatch([]string{"two", "b"}, gone)
	two.Ends(schemas.Withdrawn)
	b.Ends(schemas.Withdrawn)

	env.Ann().Allows(plain)
	plain.Ends(schemas.Allowed)
	env.WithinDuration(time.Now(), plain.Hears().DecidedAt, time.Minute)
}

// A request was detached, and its agent still waits for it. If another request uses the approval, the agent
// gets CONFLICT and stops waiting.
func TestAWaitEndsIfAnotherCallUsesTheApproval(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	wire := env.Wire()
	conn := env.Dial(roles.AgentID("ada"), wire.URL)
	defer conn.Close()
	asker := bus.NewAsker(conn, "ada")
	defer asker.Close()

	q, err := asker.Submit(env.Ctx, rig.Shell("S", "1", "make"))
	env.NoError(err)
	env.NoError(ada.Asker.Detach(env.Ctx, "S", "1", "gave up"))
	ann.Allows(&rig.Question{OpenRequest: q, Agent: ada})
	env.Equal("approval of 1 by Ann", ada.Gets(rig.Shell("S", "2", "make")).By.Name)
	wire.Cut()                                                     // after the cut, the asker reconnects and asks again
	within, cancel := context.WithTimeout(env.Ctx, 3*rig.Patience) // there is time for the asker to ask twice
	defer cancel()
	_, err = q.Await(within)
	env.Refusal(err, schemas.CodeConflict)
}
