package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/nodbus/nod/schemas"
)

// reach is the group of calls that a standing answer covered until its revocation.
type reach struct {
	story *story
	group string
}

// covered returns a shell command that the story's standing answer covers.
func (s *story) covered() schemas.Request {
	r := s.call(s.name)
	r.ToolName, r.Title, r.ActionType, r.Project = "Bash", "Use Bash", schemas.ActionCommand, "/app"
	r.ActionDetails = fmt.Appendf(nil, `{"command":"npm run %s","cwd":"/app"}`, s.name)
	return r
}

// In the story "standing", an approver allows a command with a standing answer, and the agent asks for the
// command a few times. The approver then revokes the standing answer. Later calls must wait for an approver.
func (s *story) standing(ctx context.Context) {
	a := s.ask(ctx, s.rng.IntN(askers), s.name, s.covered())
	who := s.someone()
	p, err := who.finds(ctx, about(&a.request))
	if err != nil {
		return
	}
	answer := reply(&p, "allow_once")
	answer.Scope = schemas.ScopeSession
	d, err := s.answers(ctx, who, answer, s.name)
	if err != nil || d.Grant == nil {
		return // there is no standing answer, or the approver cannot revoke it, because its id is unknown
	}
	s.probes(ctx, 1+s.rng.IntN(3), s.name)
	s.thinks(ctx, 500*time.Millisecond)
	if s.revokes(ctx, who, d.Grant) != nil {
		return
	}
	s.mu.Lock()
	s.revoked = append(s.revoked, &reach{s, s.name})
	s.mu.Unlock()
	s.probes(ctx, askers, s.name)
	s.thinks(ctx, 3*time.Second)
	s.probes(ctx, askers, s.name)
}

func (s *story) revokes(ctx context.Context, who *person, g *schemas.StandingAnswer) error {
	end := s.begin(event{Op: opRevoke, Story: s.name, Session: s.session, Who: who.name, Group: s.name, Grant: g.GrantID})
	err := who.desk.Revoke(ctx, g, who.userID)
	end(func(e *event) { e.Err = err })
	return err
}

// The method probes asks for n calls that the story's standing answer covers, over one connection after
// another. It withdraws the calls that are pending.
func (s *story) probes(ctx context.Context, n int, group string) {
	var calls []*asked
	for i := range n {
		calls = append(calls, s.ask(ctx, i%askers, group, s.covered()))
	}
	for i, a := range calls {
		if a.open() {
			s.withdraws(ctx, i%askers, a)
		}
	}
}

// afterFault runs when a fault ends. A server that has come back may lack revocations. afterFault
// therefore asks for calls that the last three revoked standing answers covered.
func (w *world) afterFault(ctx context.Context) {
	w.mu.Lock()
	last := w.revoked[max(0, len(w.revoked)-3):]
	w.mu.Unlock()
	for _, r := range last {
		r.story.probes(ctx, askers, r.group)
	}
}

// In the story "freeze", Ann freezes a session with pending calls, the agent asks for another call, and Carl
// thaws the session. Bob then tries to allow the calls that were pending.
func (s *story) freeze(ctx context.Context) {
	var calls []*asked
	for i := range 3 {
		calls = append(calls, s.ask(ctx, i%askers, fmt.Sprint(s.name, "-", i), s.call(fmt.Sprint(s.name, "-", i))))
	}
	s.thinks(ctx, 500*time.Millisecond)
	if s.changesFreeze(ctx, s.ann(), opFreeze) != nil {
		_ = s.changesFreeze(ctx, s.carl(), opThaw) // the freeze may be in force although the call returned an error
	} else {
		calls = append(calls, s.ask(ctx, s.rng.IntN(askers), s.name+"-frozen", s.call(s.name+"-frozen")))
		s.thinks(ctx, time.Second)
		if err := s.changesFreeze(ctx, s.carl(), opThaw); err != nil {
			return
		}
	}
	for _, a := range calls {
		if a.open() {
			_, _ = s.answers(ctx, s.bob(), a.blind("allow_once"), a.group)
		}
	}
}

func (s *story) changesFreeze(ctx context.Context, who *person, what op) error {
	end := s.begin(event{Op: what, Story: s.name, Session: s.session, Who: who.name, Group: s.name})
	b := schemas.FreezeRequest{SessionID: s.session, Reason: "a look first", From: schemas.From{UserID: who.userID}}
	change := who.desk.Freeze
	if what == opThaw {
		change = who.desk.Thaw
	}
	frozen, err := change(ctx, b)
	end(func(e *event) { e.Err, e.Lags = err, len(frozen.Laggards) > 0 })
	return err
}
