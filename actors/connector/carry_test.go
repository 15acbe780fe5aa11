package connector_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// stuck is a carrier. Its chat with Ann does not reply before the test closes the Go channel freed.
type stuck struct {
	*pager
	entered chan struct{}
	freed   chan struct{}
}

func (s stuck) Prompt(ctx context.Context, p schemas.Prompt) (people.Ref, error) {
	if p.Recipient == "ann" {
		s.entered <- struct{}{}
		<-s.freed
	}
	return s.pager.Prompt(ctx, p)
}

func TestOneSlowChatDelaysNoOther(t *testing.T) {
	t.Parallel()
	r := newRigFor(t, `[{"name":"Ann","identities":[{"connector":"pager","user_id":"ann"}]},{"name":"Bob","identities":[{"connector":"pager","user_id":"bob"}]}]`)
	p := stuck{newPager(), make(chan struct{}, 1000), make(chan struct{})}
	r.work(p)
	defer close(p.freed)
	r.ask()
	next(r, p.entered) // the worker has called the carrier, and the call does not return yet
	require.Equal(t, "bob", r.wait(p.sent).Recipient)
	for range 10 {
		r.ask()
		require.Equal(t, "bob", r.wait(p.sent).Recipient)
	}
	require.Empty(t, p.entered, "Ann's first prompt is still on its way")
}

// reviser is a pager that can also change its messages. The first change of a message adds the
// message's buttons.
type reviser struct {
	*pager
	revised chan schemas.Prompt
	before  func(schemas.Prompt) error
}

func newReviser(before func(schemas.Prompt) error) reviser {
	return reviser{newPager(), make(chan schemas.Prompt, 100), before}
}

func (v reviser) Revise(_ context.Context, ref people.Ref, p schemas.Prompt) error {
	if err := v.before(p); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shown[ref] = p
	v.revised <- p
	return nil
}

func TestAShownPromptIsChangedOnceItsAgentHasDetached(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := newReviser(func(schemas.Prompt) error { return nil })
	r.work(p)
	asked := r.ask()
	require.False(t, r.wait(p.sent).Detached)
	require.False(t, r.wait(p.revised).Detached)
	require.NoError(t, r.asker.Detach(r.ctx, "S", asked.PendingID, "the host waits no longer"))
	changed := r.wait(p.revised)
	require.True(t, changed.Detached)
	require.Equal(t, "ann@example.org", changed.Recipient)
	require.Empty(t, p.sent, "it is shown once")
	_, err := (<-p.desks).Answer(r.ctx, answerTo(changed, "ann@example.org"))
	require.NoError(t, err)
	require.Equal(t, schemas.Allowed, r.wait(p.ended).Decision.Outcome)
}

// A question may be decided while its message is changed or while its buttons are added. In both
// cases the message loses its buttons.
func TestADecisionDuringAChangeRemovesTheButtons(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]bool{"the choices are added": false, "it is changed later": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := newReviser(nil)
			p.before = func(shown schemas.Prompt) error {
				if shown.Detached != later {
					return nil
				}
				_, err := (<-p.desks).Answer(r.ctx, answerTo(shown, "ann@example.org"))
				return err
			}
			r.work(p)
			asked := r.ask()
			r.wait(p.revised)
			if later {
				require.NoError(t, r.asker.Detach(r.ctx, "S", asked.PendingID, "the host waits no longer"))
				r.wait(p.revised)
			}
			require.Equal(t, schemas.Allowed, r.wait(p.ended).Decision.Outcome)
		})
	}
}

func TestAFailedChangeIsNotReportedAsUndeliverable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := newReviser(func(shown schemas.Prompt) error {
		if shown.Detached {
			return &people.Error{Unreachable: true}
		}
		return nil
	})
	notices := r.notices()
	r.work(p)
	asked := r.ask()
	r.wait(p.sent)
	require.Equal(t, schemas.NoticeShown, next(r, notices).Kind)
	require.NoError(t, r.asker.Detach(r.ctx, "S", asked.PendingID, "the host waits no longer"))
	r.asks("make") // this request's prompt waits in the same lane, behind the prompt of the detached request
	require.Equal(t, schemas.NoticeShown, next(r, notices).Kind)
}
