package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// story is a part of the load: a few related requests of one session. The scenario's seed and the story's
// number determine the story's random choices.
type story struct {
	*world
	name    string
	session string
	rng     *rand.Rand
	asks    sync.WaitGroup // the askers that still wait for a decision
}

// The method call returns a tool call that no rule decides. All calls of a group are identical.
func (s *story) call(group string) schemas.Request {
	return schemas.Request{
		SessionID: s.session, PendingID: bus.NewID(), Kind: schemas.KindToolCall, Title: "Use Frobnicate", ToolName: "Frobnicate",
		ActionType: schemas.ActionOther, ActionDetails: fmt.Appendf(nil, `{"group":%q}`, group), Options: schemas.DefaultOptions(),
	}
}

// asked is a request that an agent has sent.
type asked struct {
	request schemas.Request
	group   string
	receipt schemas.Receipt
	heard   chan struct{} // a Go channel that is closed when the asker has its decision or a permanent error
	drop    func()        // a function that ends the asker's wait
	outcome *schemas.Decision
	err     error
}

// open reports whether the request is pending according to its receipt.
func (a *asked) open() bool { return a.receipt.Revision != 0 }

// ask sends a request over one of the agent's connections, and returns when it has a receipt or a
// decision. If the request is pending, ask waits for the decision in the background.
func (s *story) ask(ctx context.Context, conn int, group string, r schemas.Request) *asked {
	s.mu.Lock()
	s.groups[r.Key()] = group
	s.mu.Unlock()
	who := fmt.Sprint("ada", conn)
	a := &asked{request: r, group: group, heard: make(chan struct{})}
	end := s.begin(event{Op: opAsk, Story: s.name, Session: r.SessionID, ID: r.PendingID, Who: who, Group: group})
	q, err := s.agents[conn].SubmitAs(ctx, r)
	if err != nil {
		a.err = err
		close(a.heard)
		end(func(e *event) { e.Err = err })
		return a
	}
	a.receipt = q.Receipt
	if !a.open() {
		d, err := q.Await(ctx) // the request is decided, so Await returns at once
		a.outcome, a.err = &d, err
		close(a.heard)
		end(func(e *event) { e.Decision, e.Err = &d, err })
		return a
	}
	end(func(e *event) { e.Pending, e.Deadline = true, q.Receipt.Deadline })
	s.hear(ctx, who, a, q)
	return a
}

// The method hear waits for the decision in the background, until the decision comes or a.drop is called.
func (s *story) hear(ctx context.Context, who string, a *asked, q *bus.OpenRequest) {
	waits, drop := context.WithCancel(ctx)
	dropped := make(chan struct{})
	a.drop = func() { drop(); <-dropped }
	end := s.begin(event{Op: opHear, Story: s.name, Session: a.request.SessionID, ID: a.request.PendingID, Who: who, Group: a.group, Deadline: q.Receipt.Deadline})
	s.asks.Go(func() {
		defer close(dropped)
		defer drop()
		d, err := q.Await(waits)
		if err != nil && waits.Err() != nil && errors.Is(err, waits.Err()) {
			q.Drop() // a.drop was called, or the scenario has ended
			end(func(e *event) { e.Err = err })
			return
		}
		a.err = err
		if err == nil {
			a.outcome = &d
		}
		end(func(e *event) { e.Decision, e.Err = a.outcome, err })
		close(a.heard)
	})
}

// allowed reports whether the asker has a decision that allows its call.
func (a *asked) allowed() bool {
	select {
	case <-a.heard:
		return a.outcome != nil && a.outcome.Outcome == schemas.Allowed
	default:
		return false
	}
}

// The method answers makes an approver answer a request, even if nod has not shown the request to the
// approver.
func (s *story) answers(ctx context.Context, p *person, a schemas.Answer, group string) (schemas.Decision, error) {
	a.From = schemas.From{UserID: p.userID}
	end := s.begin(event{
		Op: opAnswer, Story: s.name, Session: a.SessionID, ID: a.PendingID, Who: p.name, Group: group,
		Option: a.OptionID, Scope: a.Scope, Waiters: max(a.Waiters, 1),
	})
	d, err := p.desk.Answer(ctx, a)
	end(func(e *event) {
		if e.Err = err; err == nil {
			e.Decision = &d
		}
	})
	return d, err
}

// reply returns an answer to a prompt. The answer covers all calls that the prompt counted.
func reply(p *schemas.Prompt, option string) schemas.Answer {
	return schemas.Answer{SessionID: p.SessionID, PendingID: p.PendingID, Digest: p.Digest, OptionID: option, Waiters: p.Waiters}
}

// The method blind returns the answer of an approver who has seen no prompt. The answer is made from the
// request's receipt.
func (a *asked) blind(option string) schemas.Answer {
	return schemas.Answer{SessionID: a.request.SessionID, PendingID: a.request.PendingID, Digest: a.receipt.Digest, OptionID: option, Waiters: 1}
}

func (s *story) withdraws(ctx context.Context, conn int, a *asked) {
	end := s.begin(event{Op: opWithdraw, Story: s.name, Session: a.request.SessionID, ID: a.request.PendingID, Who: fmt.Sprint("ada", conn), Group: a.group})
	d, err := s.agents[conn].Withdraw(ctx, a.request.SessionID, a.request.PendingID, "changed my mind")
	end(func(e *event) {
		if e.Err = err; err == nil {
			e.Decision = &d
		}
	})
}

// The method detaches makes the agent stop waiting for a call, whose request stays pending.
func (s *story) detaches(ctx context.Context, conn int, a *asked) {
	if a.drop(); a.allowed() {
		return // if the call was allowed before its agent stopped waiting, nod does not detach it
	}
	end := s.begin(event{Op: opDetach, Story: s.name, Session: a.request.SessionID, ID: a.request.PendingID, Who: fmt.Sprint("ada", conn), Group: a.group})
	err := s.agents[conn].Detach(ctx, a.request.SessionID, a.request.PendingID, "nobody answered in time")
	end(func(e *event) { e.Err = err })
}

// The method shows makes an approver read a request from nod.
func (s *story) shows(ctx context.Context, p *person, a *asked) {
	end := s.begin(event{Op: opShow, Story: s.name, Session: a.request.SessionID, ID: a.request.PendingID, Who: p.name, Group: a.group})
	prompt, _, err := p.desk.Show(ctx, a.request.SessionID, a.request.PendingID)
	end(func(e *event) {
		if e.Err = err; err == nil {
			e.Decision, e.Pending = prompt.Decision, prompt.Decision == nil
		}
	})
}

func (s *story) someone() *person { return s.people[s.rng.IntN(2)] }

// option returns reject_once in one of four cases, and otherwise allow_once.
func (s *story) option() string {
	if s.rng.IntN(4) == 0 {
		return "reject_once"
	}
	return "allow_once"
}

// The method thinks waits for a random time, at most d.
func (s *story) thinks(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(time.Duration(s.rng.Int64N(int64(d) + 1)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// The function about returns a filter for the prompts of one request.
func about(r *schemas.Request) func(*schemas.Prompt) bool {
	return func(p *schemas.Prompt) bool { return p.SessionID == r.SessionID && p.PendingID == r.PendingID }
}

func (s *story) grouped(group string) func(*schemas.Prompt) bool {
	return func(p *schemas.Prompt) bool { return p.SessionID == s.session && s.groupOf(p.Key()) == group }
}
