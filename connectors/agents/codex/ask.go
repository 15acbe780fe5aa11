package codex

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// ask is one approval in progress. Only the goroutine that removes it from
// sidecar.open answers it, so it is answered once.
type ask struct {
	line   []byte // as written by Codex
	id     json.RawMessage
	method string
	params map[string]json.RawMessage
	raw    json.RawMessage // the params

	end context.CancelCauseFunc
}

// decision is an answer in Codex's format.
type decision string

// The decisions that nod sends. Codex also has "cancel", which ends the whole turn.
const (
	accept           decision = "accept"
	acceptForSession decision = "acceptForSession"
	decline          decision = "decline"
)

func (s *sidecar) intercept(a *ask) {
	r, err := s.request(a)
	ctx, end := context.WithCancelCause(context.Background())
	a.end = end
	s.mu.Lock()
	defer s.mu.Unlock()
	earlier := s.open[string(a.id)]
	switch {
	case s.gone:
		end(nil) // no answer could be delivered
	case earlier != nil: // an answer would fit both requests
		delete(s.open, string(a.id))
		earlier.end(errReused)
		end(nil)
		s.asks.Go(func() {
			s.answer(earlier, decline)
			s.answer(a, decline)
		})
	case err != nil:
		end(nil)
		s.asks.Go(func() { s.fallBack(a, err, !s.opts.Deny) })
	default:
		s.open[string(a.id)] = a
		s.asks.Go(func() {
			defer end(nil)
			s.askAndAnswer(ctx, a, r)
		})
	}
}

// askAndAnswer asks nod and answers Codex, unless Codex no longer waits by then.
func (s *sidecar) askAndAnswer(ctx context.Context, a *ask, r *schemas.Request) {
	d, err := s.nod.Ask(ctx, *r)
	if !s.take(a) {
		if err != nil {
			s.withdraw(ctx, r)
		}
		return
	}
	if err != nil {
		away := errors.Is(err, &schemas.Error{Code: schemas.CodeUnavailable})
		s.fallBack(a, err, away && !s.opts.Deny) // answer before the withdrawal, which takes a while if nod is away
		if agents.MayBeOpen(err) {
			s.withdraw(ctx, r)
		}
		return
	}
	s.answer(a, decisionOf(r, d))
}

// decisionOf converts nod's decision to Codex's. Only a decision that allows r
// unedited becomes an accept.
func decisionOf(r *schemas.Request, d schemas.Decision) decision {
	switch {
	case !agents.Allows(*r, d), d.UpdatedInput != nil: // Codex cannot run another input
		return decline
	case d.OptionID == sessionOption && d.OptionKind == schemas.AllowAlways && d.By.Kind == schemas.ByHuman:
		return acceptForSession
	}
	return accept
}

// fallBack handles an approval that nod could not decide: if client is true, it passes
// the approval to the client, and else it declines it.
func (s *sidecar) fallBack(a *ask, why error, client bool) {
	if client {
		s.opts.Log.Warn("codex: nod could not decide; the client asks in nod's place", "reason", why)
		s.passToClient(a.line)
		return
	}
	s.opts.Log.Warn("codex: an approval was refused, because nod could not decide it", "reason", why)
	s.answer(a, decline)
}

func (s *sidecar) answer(a *ask, d decision) {
	line, err := schemas.Encode(struct {
		ID     json.RawMessage     `json:"id"`
		Result map[string]decision `json:"result"`
	}{a.id, map[string]decision{"decision": d}})
	if err != nil {
		s.opts.Log.Error("codex: an answer could not be encoded", "error", err)
		return
	}
	s.tellCodex(append(line, '\n'))
}

// take removes a from the open approvals and returns true: only its caller may answer a
// then. It returns false if another goroutine has taken a.
func (s *sidecar) take(a *ask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[string(a.id)] != a {
		return false
	}
	delete(s.open, string(a.id))
	return true
}

// endMatching withdraws the open approvals that match: Codex no longer waits for them.
func (s *sidecar) endMatching(why error, match func(*ask) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, a := range s.open {
		if match(a) {
			delete(s.open, id)
			a.end(why)
		}
	}
}

func (s *sidecar) endAll(why error) {
	s.mu.Lock()
	s.gone = true
	s.mu.Unlock()
	s.endMatching(why, func(*ask) bool { return true })
}

func (s *sidecar) withdraw(ctx context.Context, r *schemas.Request) {
	why := "nod could not be asked"
	if cause := context.Cause(ctx); cause != nil {
		why = cause.Error()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer cancel()
	if err := s.nod.Withdraw(ctx, r.SessionID, r.PendingID, why); err != nil {
		s.opts.Log.Info("codex: a request could not be withdrawn; it ends at its deadline", "error", err)
	}
}
