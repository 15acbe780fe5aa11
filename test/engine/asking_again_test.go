package engine

import (
	"testing"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// The tests of this file send a request again under the same id.

func TestAnAutomaticDecisionOutlivesChangesOfItsRules(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	reply, err := ada.Sends(rig.Lookup("S", "1"), false)
	env.NoError(err)
	var first schemas.Decision
	env.NoError(reply.Into(&first))
	env.Equal(schemas.Allowed, first.Outcome)
	env.NothingStored() // the log has the decision, and no record has it

	for _, settings := range []string{rig.Rules("", ""), rig.Rules("", "Lookup")} {
		env.Apply(settings)
		env.Equal(first, ada.Gets(rig.Lookup("S", "1")), "asking again returns the first decision")
	}
	reply, err = ada.Sends(rig.Lookup("S", "1"), false)
	env.NoError(err)
	var again schemas.Decision
	env.NoError(reply.Into(&again))
	env.Equal(first, again, "a duplicate automatic decision")
	env.Equal(first, ada.Withdraws("S", "1"), "withdrawn too late")
}

func TestADuplicateAutomaticDecisionOfAnotherRequestIsAConflict(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	_, err := ada.Sends(rig.Lookup("S", "1"), false)
	env.NoError(err)
	other := rig.Lookup("S", "1")
	other.ActionDetails = []byte(`{"to":"staging"}`)
	for _, rejoin := range []bool{false, true} {
		_, err := ada.Sends(other, rejoin)
		env.Refusal(err, schemas.CodeConflict)
	}
	env.NothingStored()
}

func TestALaterRuleDecidesAPendingRequestInItsRecord(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	q := ada.Asks(rig.Deploy("S", "1"))
	revision := env.Apply(rig.Rules("", "Deploy"))
	d := ada.Gets(rig.Deploy("S", "1"))
	env.Equal(schemas.Denied, d.Outcome)
	env.Equal(schemas.ByPolicy, d.By.Kind)
	env.Equal(revision, d.SettingsRevision)
	env.Equal(d, *env.Stored("S.1").Record.Decision)
	env.Equal(d, q.Hears(), "the waiting asker hears the same decision")
	env.Empty(env.Armed())

	env.Apply(rig.Rules("Deploy", ""))
	env.Equal(d, ada.Gets(rig.Deploy("S", "1")), "a later rule does not change the decision")
	_, err := env.Ann().Says(q, "allow_once")
	env.Equal(d, *env.Refusal(err, schemas.CodeConflict).Decision())
}

// The first copy of a request may arrive after a repeated copy. The repeated copy reserves the
// request's id in the log, so that an automatic decision of the late first copy does not count.
func TestAskingAgainClaimsTheIDAgainstAnAutomaticDecision(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	env.Apply(rig.Rules("", ""))
	q := ada.Asks(rig.Lookup("S", "1")) // a repeated request reserves its id if nothing is stored for the id
	env.Apply(rig.Rules("Lookup", ""))
	reply, err := ada.Sends(rig.Lookup("S", "1"), false) // the first copy of the request arrives late
	env.NoError(err)
	var late schemas.Decision
	env.NoError(reply.Into(&late))
	env.Equal(*env.Stored("S.1").Record.Decision, late)
	env.Equal(late, q.Ends(schemas.Allowed))
}

// Many copies of one request, some of them marked as repeated, are sent at once. All copies get one decision.
func TestConcurrentCopiesOfARequestGetOneDecision(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	type told struct {
		decision schemas.Decision
		err      error
	}
	const n = 100
	for i := range n {
		r := rig.Lookup("S", bus.NewID())
		answers := make(chan told, 3)
		for j := range 3 {
			go func() {
				var d schemas.Decision
				reply, err := ada.Sends(r, (i+j)%3 != 0)
				if err == nil {
					err = reply.Into(&d)
				}
				answers <- told{d, err}
			}()
		}
		first := <-answers
		env.NoError(first.err)
		for range 2 {
			other := <-answers
			env.NoError(other.err)
			env.Equal(first.decision, other.decision)
		}
	}
}

func TestAWithdrawalBeforeItsRequestEndsTheRequest(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	d := ada.Withdraws("S", "1")
	env.Equal(schemas.Withdrawn, d.Outcome)
	for name, r := range map[string]schemas.Request{"asks": rig.Deploy("S", "1"), "is allowed by a rule": rig.Lookup("S", "1")} {
		for _, rejoin := range []bool{false, true} {
			reply, err := ada.Sends(r, rejoin)
			env.NoError(err, name)
			var got schemas.Decision
			env.NoError(reply.Into(&got), name)
			env.Equal(d, got, name)
		}
	}
	pending, err := env.Ann().Pending(env.Ctx, schemas.Query{})
	env.NoError(err)
	env.Empty(pending, "no approver is asked")
	env.Equal(d, ada.Withdraws("S", "1"))
	shown, _, err := env.Ann().Show(env.Ctx, "S", "1")
	env.NoError(err)
	env.Equal(d, *shown.Decision)
}

func TestTheSameIDWithOtherContentIsAConflict(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	q := ada.Asks(rig.Deploy("S", "1"))
	before := env.Stored("S.1")
	for name, change := range map[string]func(*schemas.Request){
		"details": func(r *schemas.Request) { r.ActionDetails = []byte(`{"to":"staging"}`) },
		"title":   func(r *schemas.Request) { r.Title = "Use Nothing" },
		"reason":  func(r *schemas.Request) { r.Reason = "because" },
		"options": func(r *schemas.Request) {
			r.Options = []schemas.Option{{OptionID: "allow_once", Name: "Yes", Kind: schemas.AllowOnce}}
		},
		"kind": func(r *schemas.Request) { r.Kind = schemas.KindQuestion },
	} {
		other := rig.Deploy("S", "1")
		change(&other)
		env.Contains(ada.Refused(other, schemas.CodeConflict).Message, "S.1", name)
	}
	env.Equal(before, env.Stored("S.1"))

	same := rig.Deploy("S", "1") // fields outside the digest may differ
	same.TaskID, same.AgentName, same.ActionDetails = "t2", "Another", []byte(` {"to" : "production"} `)
	env.Equal(q.Receipt, ada.Asks(same).Receipt)

	env.Ann().Allows(q)
	other := rig.Deploy("S", "1")
	other.Reason = "because"
	ada.Refused(other, schemas.CodeConflict)
}

func TestARequestWithARevisionIsNeverCreated(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	for _, r := range []schemas.Request{rig.Deploy("S", "1"), rig.Lookup("S", "2")} {
		r.Revision = 7
		ada.Refused(r, schemas.CodeNotFound)
	}
	env.NothingStored()
	q := ada.Asks(rig.Deploy("S", "3"))
	r := rig.Deploy("S", "3")
	r.Revision = q.Receipt.Revision
	env.Equal(q.Receipt, ada.Asks(r).Receipt)
}

func TestAwaitReturnsDecisionsAndCreatesNothing(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	open, decided := ada.Asks(rig.Deploy("S", "open")), ada.Asks(rig.Deploy("S", "decided"))
	d := env.Ann().Denies(decided)
	env.Agent("ben").Asks(rig.Deploy("T", "foreign"))
	var reply schemas.AwaitReply
	env.NoError(ada.Conn.CallInto(env.Ctx, schemas.AwaitSubject("ada"), schemas.Await{Type: schemas.TypeAwait, Requests: []schemas.Awaited{
		{SessionID: "S", PendingID: "open"}, {SessionID: "S", PendingID: "decided"},
		{SessionID: "T", PendingID: "foreign"}, {SessionID: "T", PendingID: "unknown"},
	}}, &reply))
	env.Len(reply.Results, 4)
	env.Equal(open.Receipt.Revision, reply.Results[0].Revision)
	env.Nil(reply.Results[0].Decision)
	env.Equal(d, *reply.Results[1].Decision)
	for _, r := range reply.Results[2:] {
		env.Equal(schemas.CodeNotFound, r.Error.Code)
		env.Zero(r.Revision)
	}
	env.Equal("no request T.foreign is known", reply.Results[2].Error.Message)
	env.Equal("no request T.unknown is known", reply.Results[3].Error.Message)
	keys := env.Kept()
	env.Len(keys, 3)
}
