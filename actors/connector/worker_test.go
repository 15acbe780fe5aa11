package connector_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // many of these tests can run at the same time, because they mostly wait
	os.Exit(m.Run())
}

// pager is a carrier in memory. All workers of a test can edit its messages.
type pager struct {
	mu    sync.Mutex
	shown map[people.Ref]schemas.Prompt
	sent  chan schemas.Prompt // receives the prompt of each call of Prompt
	ended chan schemas.Prompt // receives the prompt of each call of Settle
	fail  func(schemas.Prompt) error
	desks chan people.Desk
}

func newPager() *pager {
	return &pager{shown: map[people.Ref]schemas.Prompt{}, sent: make(chan schemas.Prompt, 1000), ended: make(chan schemas.Prompt, 1000), desks: make(chan people.Desk, 10)}
}

func (p *pager) Run(ctx context.Context, desk people.Desk) error {
	p.desks <- desk
	<-ctx.Done()
	return ctx.Err()
}

func (p *pager) Prompt(_ context.Context, prompt schemas.Prompt) (people.Ref, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		if err := p.fail(prompt); err != nil {
			return "", err
		}
	}
	ref := people.Ref(fmt.Sprint("message-", len(p.shown)+1))
	p.shown[ref] = prompt
	p.sent <- prompt
	return ref, nil
}

func (p *pager) Settle(_ context.Context, ref people.Ref, prompt schemas.Prompt) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended <- prompt
	if _, ok := p.shown[ref]; !ok {
		return &people.Error{Permanent: true, Err: errors.New("no such message")}
	}
	p.shown[ref] = prompt
	return nil
}

// rig is a running nod for these tests. Its connector is pager, and its only approver is Ann.
type rig struct {
	t     *testing.T
	ctx   context.Context
	nod   *embed.Nod
	sys   *actors.System
	asker *bus.Asker
}

func newRig(t *testing.T) *rig {
	return newRigFor(t, `[{"name":"Ann","identities":[{"connector":"pager","user_id":"ann@example.org"}]}]`)
}

func newRigFor(t *testing.T, people string) *rig {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	dir := t.TempDir()
	keys, err := roles.OpenKeys(dir)
	require.NoError(t, err)
	require.NoError(t, keys.Ensure(roles.ConnectorID("pager")))
	settings := `{"permissions":{"join_identical":false,"remember_denials_seconds":0,"open_prompts":0},"approvers":{"people":` + people + `}}` // under these settings each call is a question of its own
	n, err := embed.Start(ctx, embed.Options{DataDir: dir, Settings: []byte(settings), SyncInterval: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Stop(context.Background())) })
	conn, err := n.Connect(ctx, roles.AgentID("local"))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	asker := bus.NewAsker(conn, "local")
	t.Cleanup(asker.Close)
	sys := actors.NewSystem(slog.New(slog.DiscardHandler))
	t.Cleanup(sys.Stop)
	return &rig{t, ctx, n, sys, asker}
}

func (r *rig) work(c people.Carrier) (stop func()) {
	_, stop = r.startWorker(c)
	return stop
}

func (r *rig) startWorker(c people.Carrier) (w *connector.Worker, stop func()) {
	conn, err := r.nod.Connect(r.ctx, roles.ConnectorID("pager"))
	require.NoError(r.t, err)
	w, err = connector.Work(r.ctx, r.sys, conn, "pager", c, slog.New(slog.DiscardHandler))
	require.NoError(r.t, err)
	var once sync.Once
	stop = func() {
		once.Do(func() {
			require.NoError(r.t, w.Stop(context.Background()))
			conn.Close()
		})
	}
	r.t.Cleanup(stop)
	return w, stop
}

func (r *rig) ask() *bus.OpenRequest { return r.asks("rm -rf build") }

func (r *rig) asks(command string) *bus.OpenRequest {
	asked, err := r.asker.Submit(r.ctx, schemas.Request{
		SessionID: "S", Kind: schemas.KindToolCall, Title: "Bash", ToolName: "Bash",
		ActionType: schemas.ActionCommand, ActionDetails: fmt.Appendf(nil, `{"command":%q}`, command),
	})
	require.NoError(r.t, err)
	return asked
}

func (r *rig) wait(c <-chan schemas.Prompt) schemas.Prompt { return next(r, c) }

func next[T any](r *rig, c <-chan T) (v T) {
	select {
	case v = <-c:
	case <-r.ctx.Done():
		r.t.Fatal("nothing came")
	}
	return v
}

func (r *rig) notices() <-chan schemas.Notice {
	conn, err := r.nod.Connect(r.ctx, roles.AgentID("local"))
	require.NoError(r.t, err)
	r.t.Cleanup(conn.Close)
	notices := make(chan schemas.Notice, 10)
	_, err = conn.Subscribe(schemas.NoticeSubject("local", "S"), func(m bus.Message) {
		var n schemas.Notice
		if schemas.Decode(m.Data, &n) == nil {
			notices <- n
		}
	})
	require.NoError(r.t, err)
	require.NoError(r.t, conn.Flush(r.ctx))
	return notices
}

func answerTo(p schemas.Prompt, user string) schemas.Answer {
	return schemas.Answer{SessionID: p.SessionID, PendingID: p.PendingID, Digest: p.Digest, OptionID: "allow_once", From: schemas.From{UserID: user}}
}

func TestAnAnsweredPromptShowsItsOutcome(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	r.work(p)
	asked := r.ask()
	shown := r.wait(p.sent)
	require.Equal(t, "ann@example.org", shown.Recipient)
	require.False(t, shown.Repeat)

	desk := <-p.desks
	_, err := desk.Answer(r.ctx, answerTo(shown, "mallory"))
	require.ErrorIs(t, err, &schemas.Error{Code: schemas.CodeForbidden})
	said, err := desk.Answer(r.ctx, answerTo(shown, "ann@example.org"))
	require.NoError(t, err)
	require.Equal(t, schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "pager"}, said.By)
	heard, err := asked.Await(r.ctx)
	require.NoError(t, err)
	require.Equal(t, said, heard)
	require.Equal(t, said, *r.wait(p.ended).Decision)
}

// While a channel is slow, a waiting prompt may change. When the prompt's turn comes, only the newest
// version is shown. If the request has ended by then, no version is shown.
func TestASlowChannelIsShownTheNewestVersion(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	busy, slow := make(chan struct{}), make(chan struct{})
	begins := sync.OnceFunc(func() { close(busy) })
	p.fail = func(q schemas.Prompt) error {
		if strings.Contains(string(q.Request.ActionDetails), "first") {
			begins()
			<-slow
		}
		return nil
	}
	w, _ := r.startWorker(p)
	release := sync.OnceFunc(func() { close(slow) })
	t.Cleanup(release) // stopping the worker, at the end of the test, waits for the channel
	r.asks("rm first")
	next(r, busy) // the test waits for the first prompt, because the outbox may send prompts of different requests in any order
	ended := r.asks("rm second").Receipt
	last := r.asks("rm third").Receipt
	_, err := r.asker.Withdraw(r.ctx, ended.SessionID, ended.PendingID, "changed its mind")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return w.Waits("ann@example.org", ended.SessionID, ended.PendingID) }, 20*time.Second, time.Millisecond)
	release()
	require.Contains(t, string(r.wait(p.sent).Request.ActionDetails), "first")
	require.Equal(t, last.PendingID, r.wait(p.sent).PendingID)
	require.Empty(t, p.ended)
}

// If a call ends at its host differently from nod's decision, the message with the outcome is
// changed a second time.
func TestAShownOutcomeIsUpdatedWithTheAftermath(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	r.work(p)
	asked := r.ask()
	shown := r.wait(p.sent)
	_, err := (<-p.desks).Answer(r.ctx, answerTo(shown, "ann@example.org"))
	require.NoError(t, err)
	_, err = asked.Await(r.ctx)
	require.NoError(t, err)
	require.Empty(t, r.wait(p.ended).Aftermath)

	_, err = r.asker.HostResolved(r.ctx, schemas.HostResolved{SessionID: shown.SessionID, PendingID: shown.PendingID, Reason: "gone"})
	require.NoError(t, err)
	told := r.wait(p.ended)
	require.Equal(t, schemas.Allowed, told.Decision.Outcome)
	require.Len(t, told.Aftermath, 1)
	require.Equal(t, schemas.AftermathNeverRan, told.Aftermath[0].Kind)
}

func TestAWorkerShowsTheOutcomeOfAnotherWorkersPrompt(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	stop := r.work(p)
	asked := r.ask()
	r.wait(p.sent)
	stop()
	r.work(p)
	_, err := r.asker.Withdraw(r.ctx, asked.Receipt.SessionID, asked.Receipt.PendingID, "changed its mind")
	require.NoError(t, err)
	require.Equal(t, schemas.Withdrawn, r.wait(p.ended).Decision.Outcome)
	require.Empty(t, p.sent, "shown once")
}

// A delayed engine sends an older version of a prompt after the newest one. The worker sends no
// second message, and the message with the outcome does not get its buttons back.
func TestAnOlderVersionThatComesLateChangesNothing(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	r.work(p)
	asked := r.ask()
	late := r.wait(p.sent)
	_, err := r.asker.Withdraw(r.ctx, late.SessionID, late.PendingID, "changed its mind")
	require.NoError(t, err)
	r.wait(p.ended)
	conn, err := r.nod.Connect(r.ctx, roles.ID{Role: roles.EngineStore})
	require.NoError(t, err)
	defer conn.Close()
	prompts, err := bus.OpenPrompts(r.ctx, conn, 1)
	require.NoError(t, err)
	late.Revision-- // the broker would drop a second prompt with the same revision as a duplicate
	require.NoError(t, prompts.Send(r.ctx, late))
	require.NotEqual(t, asked.PendingID, r.ask().PendingID)
	require.NotEqual(t, late.PendingID, r.wait(p.sent).PendingID, "the same lane has handled it by now")
	require.Empty(t, p.ended)
	require.NotNil(t, p.shown["message-1"].Decision)
}

func TestAnAdditionToAnOutcomeIsShown(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	r.work(p)
	asked := r.ask()
	r.wait(p.sent)
	_, err := r.asker.Withdraw(r.ctx, "S", asked.PendingID, "changed its mind")
	require.NoError(t, err)
	ended := r.wait(p.ended)
	conn, err := r.nod.Connect(r.ctx, roles.ID{Role: roles.EngineStore})
	require.NoError(t, err)
	defer conn.Close()
	prompts, err := bus.OpenPrompts(r.ctx, conn, 1)
	require.NoError(t, err)
	ended.Revision++
	ended.Decision.Message = "and more"
	require.NoError(t, prompts.Send(r.ctx, ended))
	require.Equal(t, "and more", r.wait(p.ended).Decision.Message)
	require.Empty(t, p.sent)
}

// If a request is withdrawn while its prompt is being sent, the message is changed to the
// outcome, and no button stays live.
func TestAWithdrawalDuringASendShowsTheOutcome(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	p.fail = func(shown schemas.Prompt) error {
		_, err := r.asker.Withdraw(r.ctx, shown.SessionID, shown.PendingID, "changed its mind")
		return err
	}
	r.work(p)
	r.ask()
	r.wait(p.sent)
	require.Equal(t, schemas.Withdrawn, r.wait(p.ended).Decision.Outcome)
	require.Empty(t, p.sent, "shown once")
}

func TestAnOutcomeThatCannotBeShownIsNotCalledUndeliverable(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	notices := r.notices()
	r.work(p)
	asked := r.ask()
	r.wait(p.sent)
	require.Equal(t, schemas.NoticeShown, next(r, notices).Kind)
	p.mu.Lock()
	clear(p.shown) // every further attempt to show the outcome fails permanently
	p.mu.Unlock()
	_, err := r.asker.Withdraw(r.ctx, asked.Receipt.SessionID, asked.Receipt.PendingID, "changed its mind")
	require.NoError(t, err)
	r.wait(p.ended)
	r.ask() // the same lane handles this prompt, after the outcome
	r.wait(p.sent)
	require.Equal(t, schemas.NoticeShown, next(r, notices).Kind)
}

func TestAPromptThatFailedIsSentAgain(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	tries := 0
	p.fail = func(schemas.Prompt) error {
		if tries++; tries < 3 {
			return errors.New("the connection broke")
		}
		return nil
	}
	r.work(p)
	r.ask()
	require.True(t, r.wait(p.sent).Repeat, "a prompt that may have been shown says so")
}

// If a channel asks the worker to wait, it has not shown the prompt, so the worker does not mark the
// next message as a repeat.
func TestAChannelThatAsksToWaitIsTriedAgain(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	tries := 0
	p.fail = func(schemas.Prompt) error {
		if tries++; tries < 3 {
			return &people.Error{After: 10 * time.Millisecond}
		}
		return nil
	}
	r.work(p)
	r.ask()
	require.False(t, r.wait(p.sent).Repeat)
}

func TestAPromptThatCannotBeShownIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	p.fail = func(schemas.Prompt) error {
		return &people.Error{Permanent: true, Err: errors.New("blocked by the user")}
	}
	notices := r.notices()
	r.work(p)
	r.ask()
	n := next(r, notices)
	require.Equal(t, schemas.NoticeUndeliverable, n.Kind)
	require.Contains(t, n.Text, "blocked by the user")
}

func TestARequestWithoutAWorkerIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.asker.Submit(r.ctx, schemas.Request{
		SessionID: "S", Kind: schemas.KindToolCall, Title: "Bash", ToolName: "Bash",
		ActionType: schemas.ActionCommand, ActionDetails: []byte(`{"command":"rm -rf build"}`),
	})
	require.ErrorIs(t, err, &schemas.Error{Code: schemas.CodeUndeliverable})
}

// If the last route of a request for permissions fails, the request ends at once. Any other request
// stays pending, because viewers still show it.
func TestAPermissionRequestThatCannotBeShownEndsAtOnce(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	p.fail = func(schemas.Prompt) error {
		return &people.Error{Unreachable: true, Err: errors.New("switched off")}
	}
	r.work(p)
	tool := r.ask()
	asked, err := r.asker.Submit(r.ctx, schemas.Request{
		SessionID: "S", Kind: schemas.KindPermission, Title: "Permission request", ActionType: schemas.ActionOther,
		ActionDetails: []byte("{}"), Permissions: []string{"@network"}, Reason: "to fetch",
	})
	require.NoError(t, err)
	d, err := asked.Await(r.ctx)
	require.NoError(t, err)
	require.Equal(t, schemas.Cancelled, d.Outcome)
	require.Equal(t, schemas.NobodyReached, d.By.Name)
	require.Contains(t, d.Message, "switched off")
	looking, err := r.nod.Connect(r.ctx, roles.ConnectorID("terminal"))
	require.NoError(t, err)
	defer looking.Close()
	pending, err := connector.NewDesk(looking, "terminal").Pending(r.ctx, schemas.Query{})
	require.NoError(t, err)
	require.Len(t, pending, 1)
	require.Equal(t, tool.PendingID, pending[0].PendingID)
}

// If an attempt's time ends while its message is being sent, the worker still stores the message's
// handle, because no other worker knows the handle. The next attempt sends no second message.
func TestAMessageIsStoredEvenAfterItsTimeout(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	conn, err := r.nod.Connect(r.ctx, roles.ConnectorID("pager"))
	require.NoError(t, err)
	defer conn.Close()
	w, err := connector.Work(r.ctx, r.sys, conn, "pager", p, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Stop(context.Background())) }()
	r.ask()
	other := r.wait(p.sent)
	other.Recipient = "bob@example.org"

	ctx, timeUp := context.WithCancel(r.ctx)
	p.mu.Lock()
	p.fail = func(schemas.Prompt) error { timeUp(); return nil }
	p.mu.Unlock()
	delivered := w.Deliver(ctx, other)
	require.ErrorIs(t, delivered, &schemas.Error{Code: schemas.CodeNotFound}) // nod did not route the request to Bob
	require.NoError(t, w.Deliver(r.ctx, other))                               // the test delivers a prompt twice, because the queue may do so
	r.wait(p.sent)
	require.Empty(t, p.sent)
}

// unhandled is a pager that returns no handles for its messages.
type unhandled struct{ *pager }

func (h unhandled) Prompt(ctx context.Context, p schemas.Prompt) (people.Ref, error) {
	_, err := h.pager.Prompt(ctx, p)
	return "", err
}

func TestAChannelWithoutHandlesShowsTheOutcome(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	r.work(unhandled{p})
	r.ask()
	shown := r.wait(p.sent)
	said, err := (<-p.desks).Answer(r.ctx, answerTo(shown, "ann@example.org"))
	require.NoError(t, err)
	require.Equal(t, said, *r.wait(p.sent).Decision)
}

// A late renewal does not revive a released claim. A revived claim would keep every worker from
// showing the prompt.
func TestARenewalThatComesLateClaimsNothing(t *testing.T) {
	t.Parallel()
	r, p := newRig(t), newPager()
	r.work(p)
	asked := r.ask()
	conn, err := r.nod.Connect(r.ctx, roles.ConnectorID("pager"))
	require.NoError(t, err)
	defer conn.Close()
	call := func(s schemas.Shown) (stored schemas.Shown) {
		s.Type, s.Recipient, s.SessionID, s.PendingID = schemas.TypeShown, "a recipient without a worker", asked.Receipt.SessionID, asked.Receipt.PendingID
		require.NoError(t, conn.CallInto(r.ctx, schemas.ShownSubject("pager"), s, &stored))
		return stored
	}
	attempt := &schemas.Claim{Worker: "w", Try: "t"}
	claimed := call(schemas.Shown{Op: schemas.ShownClaim, Revision: asked.Receipt.Revision, Claim: attempt})
	renewed := call(schemas.Shown{Op: schemas.ShownRenew, Claim: attempt})
	require.True(t, renewed.Claim.Until.After(claimed.Claim.Until))

	renewed.Op, renewed.Claim = schemas.ShownSet, nil
	released := call(renewed)
	late := call(schemas.Shown{Op: schemas.ShownRenew, Claim: attempt})
	require.Nil(t, late.Claim)
	require.Equal(t, released.Entry, late.Entry, "nothing was written")
}
