package codex

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// ask is one approval on its way. Whoever takes it out of sidecar.open settles
// it, once.
type ask struct {
	line   []byte // as Codex wrote it
	id     json.RawMessage
	method string
	params map[string]json.RawMessage
	raw    json.RawMessage // the params

	end context.CancelCauseFunc
}

// decision is an answer in Codex's words.
type decision string

// Codex's answers; it knows "cancel" as well, which ends the whole turn.
const (
	accept           decision = "accept"
	acceptForSession decision = "acceptForSession"
	decline          decision = "decline"
)

// intercept takes an approval to nod.
func (s *sidecar) intercept(a *ask) {
	r, err := s.request(a)
	ctx, end := context.WithCancelCause(context.Background())
	a.end = end
	s.mu.Lock()
	defer s.mu.Unlock()
	earlier := s.open[string(a.id)]
	switch {
	case s.gone:
		end(nil) // nobody could be told
	case earlier != nil: // an answer would be taken for either
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

// settle asks nod, and answers unless Codex went on meanwhile.
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
		s.fallBack(a, err, away && !s.opts.Deny) // at once: a nod that is away takes nothing back
		if agents.MayBeOpen(err) {
			s.withdraw(ctx, r)
		}
		return
	}
	s.answer(a, decisionOf(r, d))
}

// said is what a decision is in Codex's words. Only what allows r as it is
// becomes an accept.
func decisionOf(r *schemas.Request, d schemas.Decision) decision {
	switch {
	case !agents.Allows(*r, d), d.UpdatedInput != nil: // Codex cannot run another input
		return decline
	case d.OptionID == sessionOption && d.OptionKind == schemas.AllowAlways && d.By.Kind == schemas.ByHuman:
		return acceptForSession
	}
	return accept
}

// without goes on without nod: the client asks, or Codex is refused.
func (s *sidecar) fallBack(a *ask, why error, client bool) {
	if client {
		s.opts.Log.Warn("codex: the client is asked in nod's place", "reason", why)
		s.passToClient(a.line)
		return
	}
	s.opts.Log.Warn("codex: an approval was refused, because nod could not be asked", "reason", why)
	s.answer(a, decline)
}

func (s *sidecar) answer(a *ask, d decision) {
	line, err := schemas.Encode(struct {
		ID     json.RawMessage     `json:"id"`
		Result map[string]decision `json:"result"`
	}{a.id, map[string]decision{"decision": d}})
	if err != nil {
		s.opts.Log.Error("codex: an answer could not be written", "error", err)
		return
	}
	s.tellCodex(append(line, '\n'))
}

// take reports whether a is this caller's to settle.
func (s *sidecar) take(a *ask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[string(a.id)] != a {
		return false
	}
	delete(s.open, string(a.id))
	return true
}

// endWhere takes back what matches: nobody waits for it.
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
		s.opts.Log.Info("codex: a request was not withdrawn; it ends at its deadline", "error", err)
	}
}
