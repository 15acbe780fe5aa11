package codex

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// ask is an approval request of Codex that has no answer yet. It gets only one answer, because only the
// goroutine that removes it from sidecar.open may answer it.
type ask struct {
	line   []byte // the whole request as Codex wrote it
	id     json.RawMessage
	method string
	params map[string]json.RawMessage
	raw    json.RawMessage // params as Codex wrote them

	end context.CancelCauseFunc
}

// decision is Codex's format of an answer to an approval request.
type decision string

// The decisions that the sidecar sends. It never sends Codex's "cancel", which ends the whole turn.
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
		end(nil) // the sidecar could not deliver an answer, because Codex or its client is gone
	case earlier != nil: // two open requests have the same id, so that Codex could not distinguish their answers
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

// askAndAnswer asks nod about an approval request and sends Codex the answer. If Codex no longer waits,
// it sends no answer.
func (s *sidecar) askAndAnswer(ctx context.Context, a *ask, r *schemas.Request) {
	unregister := s.opts.Waits.Register(r, func(err error) {
		s.opts.Log.Warn("codex: if this program is killed, a request stays open until its deadline", "id", r.PendingID, "error", err)
	})
	defer unregister()
	d, err := s.nod.Ask(ctx, *r)
	if !s.take(a) { // Codex no longer waits and gets no answer, so that the call never runs
		if err != nil || agents.Allows(*r, d) {
			s.abandon(ctx, r)
		}
		return
	}
	if err != nil {
		away := errors.Is(err, &schemas.Error{Code: schemas.CodeUnavailable})
		s.fallBack(a, err, away && !s.opts.Deny) // the answer comes first, because the withdrawal takes up to withdrawWithin if nod is unavailable
		if agents.MayBeOpen(err) {
			s.leave(ctx, r, s.nod.Withdraw)
		}
		return
	}
	unregister() // before the answer, so that nod does not claim that the call never ran if somebody kills this process later
	s.answer(a, decisionOf(r, d))
}

// decisionOf converts nod's decision about r to Codex's format. The result is decline, unless the
// decision allows r with its original input.
func decisionOf(r *schemas.Request, d schemas.Decision) decision {
	switch {
	case !agents.Allows(*r, d), d.UpdatedInput != nil: // Codex cannot run an edited input
		return decline
	case d.OptionID == sessionOption && d.OptionKind == schemas.AllowAlways && d.By.Kind == schemas.ByHuman:
		return acceptForSession
	}
	return accept
}

// fallBack handles an approval request that nod could not decide. If the parameter client is true, it
// passes the request to the client. Otherwise it declines the request.
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

// take removes an approval request from the open requests and returns true. Only the caller that gets
// true may answer the request. take returns false if another caller was first.
func (s *sidecar) take(a *ask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[string(a.id)] != a {
		return false
	}
	delete(s.open, string(a.id))
	return true
}

// endMatching withdraws the open approval requests for which the function match returns true. It sends
// Codex no answers, because Codex no longer waits for them.
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

func (s *sidecar) abandon(ctx context.Context, r *schemas.Request) { s.leave(ctx, r, s.nod.Abandon) }

// leave ends the request r by the function how, which is a method of s.nod. The reason is the cause for
// which ctx has ended.
func (s *sidecar) leave(ctx context.Context, r *schemas.Request, how func(ctx context.Context, sessionID, pendingID, reason string) error) {
	why := "nod could not be asked"
	if cause := context.Cause(ctx); cause != nil {
		why = cause.Error()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer cancel()
	if err := how(ctx, r.SessionID, r.PendingID, why); err != nil {
		s.opts.Log.Info("codex: a request could not be withdrawn; it ends at its deadline", "error", err)
	}
}
