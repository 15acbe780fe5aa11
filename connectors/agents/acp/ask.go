package acp

import (
	"context"
	"errors"
	"fmt"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// ask is one permission request on its way. Whoever takes it out of
// sidecar.open answers it, once.
type ask struct {
	permission
	key   string
	line  []byte // as the agent wrote it
	ctx   context.Context
	stop  context.CancelCauseFunc
	shown bool // to the editor as well; guarded by sidecar.mu
}

// intercept takes a permission request to nod; false leaves it to the editor.
func (s *sidecar) intercept(line []byte, m message) bool {
	p, err := s.readPermission(line, m)
	if err != nil {
		s.opts.Log.Info("acp: a permission request is left to the editor", "reason", err)
		return s.refuseIfLate(m)
	}
	a := &ask{permission: p, key: m.key, line: line}
	a.ctx, a.stop = context.WithCancelCause(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return true // nobody could be told
	}
	if earlier := s.open[a.key]; earlier != nil {
		// An answer would be taken for either: both are refused.
		s.takeLocked(earlier, errReused)
		s.asks.Go(func() {
			s.tellAgent(earlier.id, earlier.refused())
			s.tellAgent(a.id, a.refused())
		})
		return true
	}
	s.open[a.key] = a
	s.asks.Go(func() { s.run(a) })
	return true
}

// run asks nod, and tells the agent unless another answer came first. What may
// then wait without being waited for is taken back.
func (s *sidecar) run(a *ask) {
	defer a.stop(nil)
	defer func() {
		if p := recover(); p != nil {
			s.opts.Log.Error("acp: internal error; a request was refused", "error", p)
			s.answer(a, a.refused())
		}
	}()
	var d schemas.Decision
	nod, w, err := s.submit(a)
	if err == nil {
		d, err = s.await(a, w)
	}
	s.conclude(a, d, err)
	if err != nil && nod != nil && agents.MayBeOpen(err) {
		s.withdraw(nod, a, err)
	}
}

// await waits for nod's decision, and shows the request to whoever else may
// answer it.
func (s *sidecar) await(a *ask, w Waiting) (schemas.Decision, error) {
	if w.Open() {
		defer s.opts.Stream.add(a.request)()
		if s.opts.Race {
			s.showInEditor(a)
		}
	}
	return w.Await(a.ctx)
}

// conclude acts on how the asking ended. Where an answer came first, or nobody
// is there to be told, nothing is left to do.
func (s *sidecar) conclude(a *ask, d schemas.Decision, err error) {
	var o outcome
	if err == nil {
		o, err = a.outcome(d)
	}
	switch {
	case a.ctx.Err() != nil:
	case err == nil:
		s.answer(a, o)
	case errors.Is(err, errAskEditor), !s.opts.Deny && (s.opts.Race || unavailable(err)):
		s.opts.Log.Warn("acp: the editor asks in nod's place", "reason", err)
		s.leaveToEditor(a)
	default:
		s.opts.Log.Warn("acp: a request was refused, because nod could not be asked", "reason", err)
		s.answer(a, a.refused())
	}
}

// unavailable reports whether nod is not there to be asked.
func unavailable(err error) bool {
	return errors.Is(err, &schemas.Error{Code: schemas.CodeUnavailable})
}

// submit hands a in, within the time that an editor can be kept waiting for its
// own prompt.
func (s *sidecar) submit(a *ask) (Nod, Waiting, error) {
	ctx, cancel := context.WithTimeoutCause(a.ctx, reachWithin, errLate)
	defer cancel()
	nod, err := s.nod.get(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to nod: %w", causeOr(ctx, err))
	}
	w, err := nod.Submit(ctx, a.request)
	if err != nil {
		return nod, nil, fmt.Errorf("ask nod: %w", causeOr(ctx, err))
	}
	return nod, w, nil
}

// errLate is why nod counts as away that has not answered.
var errLate = schemas.Errorf(schemas.CodeUnavailable, "nod did not answer within %s", schemas.Words(reachWithin))

// within is err, or why ctx ended where that is behind it.
func causeOr(ctx context.Context, err error) error {
	var own *schemas.Error
	if ctx.Err() != nil && !errors.As(err, &own) {
		return context.Cause(ctx)
	}
	return err
}

func (s *sidecar) withdraw(nod Nod, a *ask, err error) {
	if cause := context.Cause(a.ctx); cause != nil {
		err = cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), withdrawWithin)
	defer cancel()
	if err := nod.Withdraw(ctx, a.request.SessionID, a.request.PendingID, err.Error()); err != nil {
		s.opts.Log.Info("acp: a request was not withdrawn; it ends at its deadline", "error", err)
	}
}
