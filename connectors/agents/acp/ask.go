package acp

import (
	"context"
	"errors"
	"fmt"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// ask is a permission request of the agent that has no answer yet. It gets only one answer, because
// only the goroutine that removes it from sidecar.open may answer it.
type ask struct {
	permission
	key   string
	line  []byte // the request as the agent wrote it
	ctx   context.Context
	stop  context.CancelCauseFunc
	shown bool // the editor also shows the request; guarded by sidecar.mu
}

// intercept starts to ask nod about a permission request, and returns true. If it returns false, it has
// not asked, and the caller must pass the request to the editor.
func (s *sidecar) intercept(line []byte, m message) bool {
	p, err := s.readPermission(line, m)
	if errors.Is(err, errOver) {
		s.opts.Log.Info("acp: a permission request was refused", "reason", err)
		s.asks.Go(func() { s.tellAgent(m.id, cancelled) })
		return true
	}
	if err != nil {
		s.opts.Log.Info("acp: a permission request is left to the editor", "reason", err)
		return s.refuseIfLate(m)
	}
	a := &ask{permission: p, key: m.key, line: line}
	a.ctx, a.stop = context.WithCancelCause(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return true // the sidecar could not deliver an answer, because the agent or the editor is gone
	}
	if earlier := s.open[a.key]; earlier != nil {
		// The sidecar refuses both of two open requests with the same id, because the agent could take
		// the answer to one for the answer to the other.
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

// run asks nod and answers the agent, unless the agent got another answer first. After an error it
// withdraws the request if nod may have stored it.
func (s *sidecar) run(a *ask) {
	defer a.stop(nil)
	defer func() {
		if p := recover(); p != nil {
			s.opts.Log.Error("acp: internal error; a request was refused", "error", p)
			s.answer(a, a.refused())
		}
	}()
	unregister := s.registerWait(a)
	defer unregister()
	var d schemas.Decision
	nod, w, err := s.submit(a)
	if err == nil {
		d, err = s.await(a, w)
	}
	if err == nil {
		unregister() // before the answer: if this process is killed later, nod does not claim that the call never ran
	}
	told := s.conclude(a, d, err)
	switch neverRuns := !told && a.neverRuns(); {
	case nod == nil:
	case err == nil && neverRuns && agents.Allows(a.request, d), err != nil && neverRuns && agents.MayBeOpen(err):
		s.leave(nod.Abandon, a, err)
	case err != nil && agents.MayBeOpen(err):
		s.leave(nod.Withdraw, a, err)
	}
}

// registerWait records that this process waits for the request a. The function unregister ends the record.
func (s *sidecar) registerWait(a *ask) (unregister func()) {
	return s.opts.Waits.Register(&a.request, func(err error) {
		s.opts.Log.Warn("acp: if this program is killed, a request stays open until its deadline", "reason", err)
	})
}

// neverRuns reports whether the call certainly never runs if nod's decision does not reach the agent.
// It returns false if the editor has answered or may still answer the request.
func (a *ask) neverRuns() bool {
	cause := context.Cause(a.ctx)
	return cause != nil && !errors.Is(cause, errInEditor)
}

// await waits for nod's decision. If a person must decide, it sends the request to the stream's
// subscribers. With Options.Race, it also shows the request in the editor, and the first answer counts.
func (s *sidecar) await(a *ask, w Waiting) (schemas.Decision, error) {
	if w.Open() {
		defer s.opts.Stream.add(a.request)()
		if s.opts.Race {
			s.showInEditor(a)
		}
	}
	return w.Await(a.ctx)
}

// conclude answers the agent with decision d. If err is not nil, nod could not decide, and conclude
// passes the request to the editor or refuses it. If the agent already has an answer, or can no longer
// get one, conclude does nothing. It reports whether the agent got an answer.
func (s *sidecar) conclude(a *ask, d schemas.Decision, err error) bool {
	var o outcome
	if err == nil {
		o, err = a.outcome(d)
	}
	switch {
	case a.ctx.Err() != nil:
	case err == nil:
		return s.answer(a, o)
	case errors.Is(err, errAskEditor), !s.opts.Deny && (s.opts.Race || unavailable(err)):
		s.opts.Log.Warn("acp: nod could not decide; the editor asks its user in nod's place", "reason", err)
		s.leaveToEditor(a)
	default:
		s.opts.Log.Warn("acp: a request was refused, because nod could not decide it", "reason", err)
		return s.answer(a, a.refused())
	}
	return false
}

func unavailable(err error) bool {
	return errors.Is(err, &schemas.Error{Code: schemas.CodeUnavailable})
}

// submit connects to nod and sends the request. It gives up after reachWithin, because the editor asks
// its own user only after that.
func (s *sidecar) submit(a *ask) (Nod, Waiting, error) {
	ctx, cancel := context.WithTimeoutCause(a.ctx, reachWithin, errLate)
	defer cancel()
	nod, err := s.nod.get(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to nod: %w", causeOr(ctx, err))
	}
	s.tellNotices(nod, a)
	w, err := nod.Submit(ctx, a.request)
	if err != nil {
		return nod, nil, fmt.Errorf("ask nod: %w", causeOr(ctx, err))
	}
	return nod, w, nil
}

// errLate means that nod did not reply within reachWithin.
var errLate = schemas.Errorf(schemas.CodeUnavailable, "nod did not answer within %s", schemas.FormatDuration(reachWithin))

// causeOr returns the cause for which ctx has ended. It returns err instead if ctx has not ended, or if
// err is a *schemas.Error.
func causeOr(ctx context.Context, err error) error {
	var own *schemas.Error
	if ctx.Err() != nil && !errors.As(err, &own) {
		return context.Cause(ctx)
	}
	return err
}

// leave ends the request of a by the function how, which is Nod.Withdraw or Nod.Abandon. The reason is
// the cause for which a's context ended or, if the context has not ended, err.
func (s *sidecar) leave(how func(ctx context.Context, sessionID, pendingID, reason string) error, a *ask, err error) {
	if cause := context.Cause(a.ctx); cause != nil {
		err = cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), withdrawWithin)
	defer cancel()
	if err := how(ctx, a.request.SessionID, a.request.PendingID, err.Error()); err != nil {
		s.opts.Log.Info("acp: a request could not be withdrawn; it ends at its deadline", "error", err)
	}
}
