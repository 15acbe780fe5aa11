package hosts

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// hostCall returns a request about which the host also asks its own user, at the terminal.
func hostCall(id, to string) schemas.Request {
	r := rig.Deploy("S", id)
	r.HostAsks, r.ActionDetails = true, []byte(`{"to":"`+to+`"}`)
	return r
}

// hasRun reports to nod, as a hook does, that a call has run and how long the run took. It returns the ids of
// the requests that the report is about.
func hasRun(e *rig.Env, a *rig.Agent, to string, took time.Duration) []string {
	e.T.Helper()
	ms := int(took.Milliseconds())
	ids, err := a.Asker.HostResolved(e.Ctx, schemas.HostResolved{SessionID: "S", ToolName: "Deploy", ActionDetails: []byte(`{"to":"` + to + `"}`), RanMillis: &ms, Reason: "the call has run"})
	e.NoError(err)
	return ids
}

// aftermath returns the aftermath of a request, which is what became of the call. It leaves out the times.
func aftermath(e *rig.Env, id string) []schemas.Aftermath {
	e.T.Helper()
	p, _, err := e.Ann().Show(e.Ctx, "S", id)
	e.NoError(err)
	for _, a := range p.Aftermath {
		e.WithinDuration(time.Now(), a.At, time.Minute)
	}
	for i := range p.Aftermath {
		p.Aftermath[i].At = time.Time{}
	}
	return p.Aftermath
}

func ranAtTheTerminal(id string) []schemas.Aftermath {
	return []schemas.Aftermath{{PendingID: id, Kind: schemas.AftermathRan, Reason: "answered at the terminal"}}
}

func neverRan(id string) []schemas.Aftermath {
	return []schemas.Aftermath{{PendingID: id, Kind: schemas.AftermathNeverRan, Reason: "the agent had gone on"}}
}

// The function asked waits until the broker's clock is past the time at which the question q was stored, and
// returns the clock's present time. A call that begins at this time begins after its request was stored.
func asked(e *rig.Env, q *rig.Question) time.Time {
	e.T.Helper()
	rec := e.Stored(q.Key).Record
	e.Passed(rec.Deadline.Add(-time.Duration(rec.TimeoutSeconds) * time.Second))
	return time.Now()
}

// A user allows a call at the terminal, and an approver denies it through nod while the call runs. The denial
// stays, and the record gets one aftermath: the call ran. The log, viewers and channels show the aftermath,
// and so do the errors of later answers.
func TestADeniedCallThatRanGetsAnAftermath(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = rig.WithCarrier })
	shown, seen := env.Carrier(), env.Viewer()
	ada, ann := env.Agent("ada"), env.Ann()
	q := ada.Asks(hostCall("1", "a"))
	began := asked(env, q)
	env.Passed(began.Add(time.Second)) // a report that arrives 1 s late must still show that the call began before the denial
	ann.Denies(q)
	denied := q.Ends(schemas.Denied)

	env.Empty(hasRun(env, ada, "b", time.Since(began)), "the report is about another call")
	env.Empty(hasRun(env, env.Agent("ben"), "a", time.Since(began)), "the report is another agent's")
	env.Empty(hasRun(env, ada, "a", 0), "the call began after the denial")
	env.Empty(hasRun(env, ada, "a", time.Since(began)+time.Minute), "the call began before the request")
	env.Empty(aftermath(env, "1"))
	env.Equal([]string{"1"}, hasRun(env, ada, "a", time.Since(began)))
	env.Equal(ranAtTheTerminal("1"), aftermath(env, "1"))
	entry := env.Stored("S.1")
	env.Equal(denied, *entry.Record.Decision)
	env.Empty(hasRun(env, ada, "a", time.Since(began)), "the aftermath is stored once")
	env.Equal(entry.Revision, env.Stored("S.1").Revision)

	env.Soon("the viewer sees the aftermath", func() bool { return seen.Times("S.1", entry.Revision) > 0 })
	env.Soon("the channel shows the aftermath", func() bool { return shown.Times("S.1", entry.Revision) > 0 })
	env.Soon("the aftermath is logged", func() bool { return env.LoggedOf(schemas.LogAftermath) == 1 })
	env.Equal(1, env.LoggedOf(schemas.LogDecided))
	for _, answer := range []string{"reject_once", "allow_once"} {
		_, err := ann.Says(q, answer)
		refused := env.Refusal(err, schemas.CodeConflict)
		env.Equal("the call ran: answered at the terminal", refused.Message)
		env.Equal(schemas.Denied, refused.Decision().Outcome)
	}
}

// One of two identical calls is allowed and the other is denied. If the host then reports that a call ran,
// nod stores no aftermath, because the report does not say which call ran.
func TestAnAmbiguousReportStoresNoAftermath(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestADeniedCallThatRanGetsAnAftermath reads such reports")
	env := rig.Start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	one, two := ada.Asks(hostCall("1", "a")), ada.Asks(hostCall("2", "a"))
	began := asked(env, two)
	ann.Allows(two)
	ann.Denies(one)
	env.Empty(hasRun(env, ada, "a", time.Since(began)))
	env.Empty(aftermath(env, "1"))
	env.Empty(aftermath(env, "2"))
}

// If a call runs while its request is pending, nod withdraws the request and stores the aftermath that the
// call ran. If the host reports only that it no longer waits for an answer, nod withdraws the request and
// stores no aftermath.
func TestACallThatRanWhilePendingIsWithdrawn(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	q, other := ada.Asks(hostCall("1", "a")), ada.Asks(hostCall("2", "b"))
	env.Equal([]string{"1"}, hasRun(env, ada, "a", 0))
	env.Equal("the call has run", q.Ends(schemas.Withdrawn).Message)
	env.Equal(ranAtTheTerminal("1"), aftermath(env, "1"))
	_, err := ann.Says(q, "reject_once")
	env.Equal("the call ran: answered at the terminal", env.Refusal(err, schemas.CodeConflict).Message)

	gone, err := ada.Asker.HostResolved(env.Ctx, schemas.HostResolved{SessionID: "S", Reason: "over"})
	env.NoError(err)
	env.Equal([]string{"2"}, gone)
	other.Ends(schemas.Withdrawn)
	env.Empty(aftermath(env, "2"))
}

// A hook is killed while it waits. nod withdraws its request if the request is pending, and stores the
// aftermath that the call never ran if the request was allowed. A denied request does not change.
func TestAnAllowedCallThatNeverRanGetsAnAftermath(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestADeniedCallThatRanGetsAnAftermath reads such reports")
	env := rig.Start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	gone := func(agent *rig.Agent, id string) []string {
		ids, err := agent.Asker.HostResolved(env.Ctx, schemas.HostResolved{SessionID: "S", PendingID: id, Reason: "the hook was killed"})
		env.NoError(err)
		return ids
	}
	waits, allowed, denied := ada.Asks(rig.Deploy("S", "1")), ada.Asks(rig.Deploy("S", "2")), ada.Asks(rig.Deploy("S", "3"))
	ann.Allows(allowed)
	ann.Denies(denied)
	for _, id := range []string{"1", "2"} {
		env.Empty(gone(env.Agent("ben"), id), "the request is another agent's")
		env.Equal([]string{id}, gone(ada, id))
	}
	env.Empty(gone(ada, "3"))
	env.Empty(gone(ada, "4"), "there is no such request")
	env.Equal("the hook was killed", waits.Ends(schemas.Withdrawn).Message)
	env.Empty(aftermath(env, "1"))
	env.Equal(neverRan("2"), aftermath(env, "2"))
	env.Empty(aftermath(env, "3"))
	env.Equal(schemas.Allowed, env.Stored("S.2").Record.Decision.Outcome)
	_, err := ann.Says(allowed, "allow_once")
	env.Equal("the call never ran: the agent had gone on", env.Refusal(err, schemas.CodeConflict).Message)
}

// When the turn of an agent program ends, nod withdraws the pending requests of this program, but not those
// of other programs in the same session.
func TestTheEndOfATurnWithdrawsItsProgramsRequests(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	ask := func(id, program string) *rig.Question {
		r := rig.Deploy("S", id)
		r.AgentName = program
		return ada.Asks(r)
	}
	ended, other := ask("1", "Codex"), ask("2", "")
	gone, err := ada.Asker.HostResolved(env.Ctx, schemas.HostResolved{SessionID: "S", AgentName: "Codex", Reason: "the turn was interrupted"})
	env.NoError(err)
	env.Equal([]string{"1"}, gone)
	ended.Ends(schemas.Withdrawn)
	env.Ann().Allows(other)
}

func (h *hookRun) killed() {
	h.t.Helper()
	require.NoError(h.t, h.cmd.Process.Kill())
	_ = h.cmd.Wait() // Wait fails, because the process was killed
}

// If a hook of any host is killed while it waits, nod withdraws its request. If the request is allowed before
// the hook gets the decision, nod stores the aftermath that the call never ran.
func TestAKilledHooksRequestIsWithdrawn(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	for name, g := range usualGates() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := strings.ReplaceAll(name, " ", "-")
			h := startHook(m, t, g, s, "1", "make 1", "1h")
			id := m.Pending(s)
			h.killed()
			m.Shown(id, func(p schemas.Prompt) bool { return p.Decision != nil })
			assert.Equal(t, schemas.Withdrawn, shown(m, t, id).Decision.Outcome)
			assert.Equal(t, "the agent's hook was stopped", shown(m, t, id).Decision.Message)
			assert.Empty(t, shown(m, t, id).Aftermath)

			h = startHook(m, t, g, s, "2", "make 2", "1h")
			id = m.Pending(s)
			require.NoError(t, h.cmd.Process.Signal(syscall.SIGSTOP)) // a suspended hook does not receive the decision
			_, stderr, code := m.Run("allow", id)
			require.Zero(t, code, stderr)
			h.killed()
			m.Shown(id, func(p schemas.Prompt) bool { return len(p.Aftermath) > 0 })
			assert.Equal(t, schemas.Allowed, shown(m, t, id).Decision.Outcome)
			assert.Equal(t, schemas.AftermathNeverRan, shown(m, t, id).Aftermath[0].Kind)
		})
	}
}
