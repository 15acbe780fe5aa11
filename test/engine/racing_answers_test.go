package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// told is the reply that one party of a race got.
type told struct {
	who      string
	outcome  schemas.Outcome // the outcome that the party asked for
	option   string
	decision *schemas.Decision
	err      error
}

// The function race sends several messages about one request at the same time: an allow and a denial by each
// of two approvers, and a withdrawal by the agent. It returns the result of each message, and the decision
// that the waiting agent gets. If the request was decided before its receipt, race returns only that
// decision.
func race(env *rig.Env, q *rig.Question) []told {
	ann, bob, ada := env.Ann(), env.Bob(), env.Agent("ada")
	says := func(p *rig.Person, outcome schemas.Outcome, option string) func() told {
		return func() told {
			d, err := p.Says(q, option)
			return told{p.User + " " + option, outcome, option, &d, err}
		}
	}
	asker := func() told {
		d, err := q.Await(env.Ctx)
		return told{"asker", d.Outcome, d.OptionID, &d, err}
	}
	if q.Receipt.Revision == 0 {
		return []told{asker()}
	}
	parties := []func() told{
		asker,
		says(ann, schemas.Allowed, "allow_once"), says(ann, schemas.Denied, "reject_once"),
		says(bob, schemas.Allowed, "allow_once"), says(bob, schemas.Denied, "reject_once"),
		func() told {
			d, err := ada.Asker.Withdraw(env.Ctx, q.Receipt.SessionID, q.Receipt.PendingID, "")
			return told{"withdrawal", schemas.Withdrawn, "", &d, err}
		},
	}
	rand.Shuffle(len(parties), func(i, j int) { parties[i], parties[j] = parties[j], parties[i] })
	heard := make([]told, len(parties))
	var wg sync.WaitGroup
	for i, p := range parties {
		wg.Go(func() { heard[i] = p() })
	}
	wg.Wait()
	return heard
}

// oneOutcome requires that every party got the stored decision. A party that asked for the outcome of this
// decision gets the decision as a success, and any other party gets it in a refusal.
func oneOutcome(stored *schemas.Decision, heard []told) error {
	for _, h := range heard {
		var refused *schemas.Error
		switch {
		case h.err == nil && h.decision.DecisionID != stored.DecisionID:
			return fmt.Errorf("%s got another decision: %+v", h.who, h.decision)
		case h.err == nil && h.who != "withdrawal" && !stored.SameEffect(&schemas.Decision{Outcome: h.outcome, OptionID: h.option}):
			return fmt.Errorf("%s succeeded, but the request is %s", h.who, stored.Outcome)
		case h.err == nil:
			continue
		case !errors.As(h.err, &refused) || refused.Decision() == nil:
			return fmt.Errorf("%s did not get the decision: %w", h.who, h.err)
		case refused.Decision().DecisionID != stored.DecisionID:
			return fmt.Errorf("%s got another decision: %+v", h.who, refused.Decision())
		case stored.SameEffect(&schemas.Decision{Outcome: h.outcome, OptionID: h.option}):
			return fmt.Errorf("%s answered as the stored decision says and was refused: %w", h.who, h.err)
		}
		want := schemas.CodeConflict
		if stored.Outcome == schemas.TimedOut || stored.Outcome == schemas.Withdrawn {
			want = schemas.CodeStale
		}
		if refused.Code != want {
			return fmt.Errorf("%s got code %s, but the request is %s", h.who, refused.Code, stored.Outcome)
		}
	}
	return nil
}

// Two engines get hundreds of requests. For each request, four answers, a withdrawal and the
// deadline come at nearly the same moment. Every party gets the one stored decision.
func TestRacingAnswersMakeOneDecision(t *testing.T) {
	t.Parallel()
	const sessions = 20
	requests, atOnce := 250, 100
	switch {
	case *rig.Long:
		requests = 1000
	case testing.Short():
		requests, atOnce = 150, 30
		t.Log("-short: 150 requests; the winners are not checked, since under the race detector the clock may win every race")
	default:
		t.Log("250 requests; -long runs 1000")
	}
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 2 })
	ada := env.Agent("ada")
	var mu sync.Mutex
	published := map[string]map[string]bool{} // the ids of the decisions that the agent got, by the key of the record
	stop, err := ada.Conn.Subscribe("nod.v1.decision.ada.>", func(m bus.Message) {
		var d schemas.Decision
		if schemas.Decode(m.Data, &d) != nil {
			d.DecisionID = "malformed"
		}
		mu.Lock()
		defer mu.Unlock()
		key := schemas.Key(d.SessionID, d.PendingID)
		if published[key] == nil {
			published[key] = map[string]bool{}
		}
		published[key][d.DecisionID] = true
	})
	env.NoError(err)
	defer stop()
	ahead, err := env.Store.BrokerTime(env.Ctx)
	env.NoError(err)

	outcomes := map[schemas.Outcome]int{}
	by := map[schemas.ByKind]int{}
	races := func(timeout time.Duration) {
		for i := range sessions {
			env.Timeout(fmt.Sprint("S", i), timeout)
		}
		var wg sync.WaitGroup
		room := make(chan struct{}, atOnce)
		for i := range requests {
			room <- struct{}{}
			wg.Go(func() {
				defer func() { <-room }()
				asked, err := ada.Asker.Submit(env.Ctx, rig.Deploy(fmt.Sprint("S", i%sessions), bus.NewID()))
				if err != nil {
					t.Error(err)
					return
				}
				q := &rig.Question{OpenRequest: asked, Agent: ada}
				// Most answers and withdrawals are sent shortly before or after the deadline. For
				// every fourth request they are sent well before the deadline, because on a slow
				// machine all requests might time out otherwise.
				meet := rand.N(200*time.Millisecond) - 160*time.Millisecond
				if i%4 == 0 {
					meet = -rand.N(timeout)
				}
				if q.Receipt.Revision != 0 { // revision 0 means that the request was decided before its receipt, so there is no race
					<-time.After(time.Until(q.Receipt.Deadline) - ahead + meet)
				}
				heard := race(env, q)
				entry, err := env.Store.Records.Get(env.Ctx, q.Key)
				if err != nil || entry.Record.Decision == nil {
					t.Errorf("%s has no outcome: %v", q.Key, err)
					return
				}
				stored := entry.Record.Decision
				if err := oneOutcome(stored, heard); err != nil {
					t.Errorf("%s, %s by %s: %v", q.Key, stored.Outcome, stored.By.Kind, err)
				}
				mu.Lock()
				defer mu.Unlock()
				outcomes[stored.Outcome]++
				by[stored.By.Kind]++
			})
		}
		wg.Wait()
		t.Log(outcomes, by)
	}
	rounds := 0
	for timeout := time.Second; ; timeout *= 4 {
		races(timeout)
		rounds++
		if testing.Short() || t.Failed() || allOutcomes(outcomes) {
			break
		}
		env.Less(timeout, 16*time.Second, "not every outcome occurred, so the races were not real")
		t.Log("this machine is so slow that not every outcome occurred: once more, with longer timeouts")
	}
	// The outbox may send a decision again. The request still has one decision.
	env.Soon("the agent got a decision for each request, and the outbox is idle", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(published) == rounds*requests && env.OutboxIdle()
	})
	mu.Lock()
	defer mu.Unlock()
	for key, ids := range published {
		env.Len(ids, 1, key)
	}
}

// allOutcomes reports whether each possible outcome has won a race.
func allOutcomes(outcomes map[schemas.Outcome]int) bool {
	for _, o := range []schemas.Outcome{schemas.Allowed, schemas.Denied, schemas.Withdrawn, schemas.TimedOut} {
		if outcomes[o] == 0 {
			return false
		}
	}
	return true
}
