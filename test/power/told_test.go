package power

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// facts are those states that nod has told its clients and that no later change has replaced. While a
// change is in progress, either the old or the new state may be true, so the facts contain neither.
type facts struct {
	Receipts  map[string]schemas.Receipt // the receipts, by the key of the request
	Decisions map[string]string          // the ids of people's decisions, by the key of the request
	Logged    map[string]bool            // the ids of the decisions in the log
	Granted   map[string]bool            // for each grant, by its id, whether it is in force
	Frozen    map[string]bool            // for each session, by its id, whether it is frozen
	Denied    map[string]bool            // the keys of the requests that a freeze has ended
	Settings  map[string]uint64          // the revision of the settings, under the key settingsKey
}

const settingsKey = "settings"

func noFacts() facts {
	return facts{
		map[string]schemas.Receipt{}, map[string]string{}, map[string]bool{}, map[string]bool{},
		map[string]bool{}, map[string]bool{}, map[string]uint64{},
	}
}

func (f *facts) count() int {
	return len(f.Receipts) + len(f.Decisions) + len(f.Logged) + len(f.Granted) + len(f.Frozen) + len(f.Denied) + len(f.Settings)
}

// told collects facts while nod runs.
type told struct {
	mu    sync.Mutex
	ended bool
	facts
}

func newTold() *told { return &told{facts: noFacts()} }

// The method end makes the receiver ignore all later facts.
func (w *told) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// The function tell adds a fact to one of the maps of w, unless the method end was called.
func tell[V any](w *told, m func(*facts) map[string]V, key string, v V) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		m(&w.facts)[key] = v
	}
}

// The function change makes a change to nod. If the change fails, its fact stays unknown.
func change[V any](w *told, m func(*facts) map[string]V, key string, v V, f func() error) {
	w.mu.Lock()
	if !w.ended {
		delete(m(&w.facts), key)
	}
	w.mu.Unlock()
	if f() == nil {
		tell(w, m, key, v)
	}
}

func receipts(f *facts) map[string]schemas.Receipt { return f.Receipts }
func decisions(f *facts) map[string]string         { return f.Decisions }
func logged(f *facts) map[string]bool              { return f.Logged }
func granted(f *facts) map[string]bool             { return f.Granted }
func frozen(f *facts) map[string]bool              { return f.Frozen }
func denied(f *facts) map[string]bool              { return f.Denied }
func settings(f *facts) map[string]uint64          { return f.Settings }

// snapshot returns the present facts. If the method end was called, snapshot makes the receiver accept new
// facts again.
func (w *told) snapshot() facts {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = false
	return facts{
		maps.Clone(w.Receipts), maps.Clone(w.Decisions), maps.Clone(w.Logged), maps.Clone(w.Granted),
		maps.Clone(w.Frozen), maps.Clone(w.Denied), maps.Clone(w.Settings),
	}
}

// patience is how long nod may still work after a reply, for example to write log entries.
const patience = 30 * time.Second

// lost compares the facts with the state of the nod in the directory dir. It describes each difference.
func (f facts) lost(t *testing.T, dir string) (lost []string) { return f.lostAfter(t, dir, patience) }

// lostAfter is like the method lost, for a nod that has the given time to write its log.
func (f facts) lostAfter(t *testing.T, dir string, patience time.Duration) (lost []string) {
	t.Helper()
	conn, desk := join(t, dir, roles.ID{Role: roles.OwnerStore}), join(t, dir, roles.ConnectorID("terminal"))
	defer conn.Close()
	defer desk.Close()
	store, err := bus.OpenExistingStore(t.Context(), conn)
	require.NoError(t, err)
	lost = append(f.lostRecords(t, store), f.lostState(t, connector.NewDesk(desk, "terminal"))...)
	for deadline := time.Now().Add(patience); ; {
		missing := f.lostLog(t, conn, store.Log)
		if len(missing) == 0 || len(lost) > 0 || time.Now().After(deadline) {
			return append(lost, missing...)
		}
		<-time.After(100 * time.Millisecond) // during this time, the outbox writes the missing entries
	}
}

func (f facts) lostRecords(t *testing.T, store *bus.Store) (lost []string) {
	for key, r := range f.Receipts {
		entry, err := store.Records.Get(t.Context(), key)
		_, id := schemas.SplitKey(key)
		switch decision := f.Decisions[key]; {
		case err != nil:
			lost = append(lost, fmt.Sprintf("the receipt of %s: %v", key, err))
		case !entry.Record.Waiter(id).Deadline.Equal(r.Deadline):
			lost = append(lost, "the deadline of "+key)
		case decision != "" && (entry.Record.Verdict(id) == nil || entry.Record.Verdict(id).DecisionID != decision):
			lost = append(lost, "the decision of "+key)
		case f.Denied[key] && (entry.Record.Verdict(id) == nil || entry.Record.Verdict(id).Outcome != schemas.Denied):
			lost = append(lost, "the denial by a freeze of "+key)
		}
	}
	return lost
}

func (f facts) lostState(t *testing.T, desk *connector.Desk) (lost []string) {
	state, err := desk.Settings(t.Context())
	require.NoError(t, err)
	if told := f.Settings[settingsKey]; state.Revision < told {
		lost = append(lost, fmt.Sprintf("the settings of revision %d, which are at %d", told, state.Revision))
	}
	for session, want := range f.Frozen {
		if is := slices.ContainsFunc(state.Freezes, func(z schemas.Freeze) bool { return z.SessionID == session }); is != want {
			lost = append(lost, fmt.Sprintf("that %s is frozen: %t", session, want))
		}
	}
	grants, err := desk.Grants(t.Context(), "")
	require.NoError(t, err)
	for id, want := range f.Granted {
		if is := slices.ContainsFunc(grants, func(g schemas.StandingAnswer) bool { return g.GrantID == id && g.RevokedAt.IsZero() }); is != want {
			lost = append(lost, fmt.Sprintf("that the grant %s is in force: %t", id, want))
		}
	}
	return lost
}

// lostLog finds the facts that have no entry in the log. It also finds holes in the log.
func (f facts) lostLog(t *testing.T, conn *bus.Conn, log *bus.Log) (lost []string) {
	entries := map[string]bool{}
	number := uint64(0)
	require.NoError(t, conn.EachLogged(t.Context(), func(e schemas.LogEntry) error {
		number++
		key := schemas.Key(e.SessionID, e.PendingID)
		entries["asked "+key] = true
		if e.Outcome != "" {
			entries["decided "+key] = true
		}
		if e.Decision != nil {
			entries["decision "+e.Decision.DecisionID] = true
		}
		return nil
	}))
	for sequence := uint64(1); sequence <= number; sequence++ {
		if _, err := log.Read(t.Context(), sequence); err != nil {
			lost = append(lost, fmt.Sprintf("entry %d of the log: %v", sequence, err))
		}
	}
	need := func(entry string) {
		if !entries[entry] {
			lost = append(lost, "the log entry: "+entry)
		}
	}
	for key := range f.Receipts {
		need("asked " + key)
	}
	for key := range f.Decisions {
		need("decided " + key)
	}
	for id := range f.Logged {
		need("decision " + id)
	}
	return lost
}

// client is one agent with a session of its own, and the person who answers its requests.
type client struct {
	*told
	number  int
	session string
	asker   *bus.Asker
	desk    *connector.Desk
	owner   *connector.Owner
	person  schemas.From
	large   bool // true if the client's requests are so large that they fill block files within seconds
}

// The method work makes every kind of change that nod confirms, again and again until ctx ends.
func (c *client) work(ctx context.Context, round string) {
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%d", round, i)
		if d, err := c.asker.Ask(ctx, call("Lookup", c.session, "")); err == nil {
			tell(c.told, logged, d.DecisionID, true)
		}
		c.leavePending(ctx, id+"-p")
		c.decide(ctx, id+"-d")
		switch c.number {
		case 0:
			c.changeSettings(ctx)
		case 1:
			c.freezeAndThaw(ctx, id)
		case 2, 3:
			c.grantAndRevoke(ctx, id)
		}
	}
}

func (c *client) submit(ctx context.Context, r schemas.Request) (key string, receipt schemas.Receipt, err error) {
	q, err := c.asker.Submit(ctx, r)
	if err != nil {
		return "", schemas.Receipt{}, err
	}
	q.Drop()
	tell(c.told, receipts, q.Key, q.Receipt)
	return q.Key, q.Receipt, nil
}

func (c *client) leavePending(ctx context.Context, id string) {
	r := call("Deploy", c.session, id)
	if c.large {
		r.ActionDetails = fmt.Appendf(nil, `{"to":%q}`, strings.Repeat("production ", 18<<10))
	}
	_, _, _ = c.submit(ctx, r) // submit fails once the power is cut
}

func (c *client) decide(ctx context.Context, id string) {
	if d, key, err := c.answer(ctx, call("Deploy", c.session, id), ""); err == nil {
		tell(c.told, decisions, key, d.DecisionID)
	}
}

func (c *client) answer(ctx context.Context, r schemas.Request, scope schemas.Scope) (d schemas.Decision, key string, err error) {
	key, receipt, err := c.submit(ctx, r)
	if err != nil {
		return d, key, err
	}
	d, err = c.desk.Answer(ctx, schemas.Answer{
		SessionID: r.SessionID, PendingID: r.PendingID, Digest: receipt.Digest, OptionID: "allow_once", Scope: scope, From: c.person,
	})
	return d, key, err
}

// grantAndRevoke makes a grant. It revokes every second grant.
func (c *client) grantAndRevoke(ctx context.Context, id string) {
	r := call("Bash", c.session, id)
	r.ActionType, r.Project = schemas.ActionCommand, "/app"
	r.ActionDetails = fmt.Appendf(nil, `{"command":"go test ./%s","cwd":"/app"}`, id)
	d, key, err := c.answer(ctx, r, schemas.ScopeSession)
	if err != nil || d.Grant == nil {
		return
	}
	tell(c.told, decisions, key, d.DecisionID)
	tell(c.told, granted, d.Grant.GrantID, true)
	if c.number == 3 {
		change(c.told, granted, d.Grant.GrantID, false, func() error { return c.desk.Revoke(ctx, d.Grant, c.person.UserID) })
	}
}

// freezeAndThaw freezes a session with a pending request, and sometimes thaws it.
func (c *client) freezeAndThaw(ctx context.Context, id string) {
	session := "F" + id
	key, _, err := c.submit(ctx, call("Deploy", session, id))
	if err != nil {
		return
	}
	b := schemas.FreezeRequest{SessionID: session, From: c.person}
	var state schemas.FreezeState
	change(c.told, frozen, session, true, func() error {
		state, err = c.desk.Freeze(ctx, b)
		return err
	})
	if err == nil && !state.Unfinished {
		tell(c.told, denied, key, true)
	}
	if strings.HasSuffix(id, "0") { // the session stays frozen, so that the checks after the power cut find a freeze
		return
	}
	change(c.told, frozen, session, false, func() error {
		_, err := c.desk.Thaw(ctx, b)
		return err
	})
}

func (c *client) changeSettings(ctx context.Context) {
	var state schemas.SettingsState
	var err error
	w := c.told
	w.mu.Lock()
	before := w.Settings[settingsKey]
	w.mu.Unlock()
	if state, err = c.owner.ApplySettings(ctx, settingsWith(c.person.UserID, fmt.Sprint("Marker", before+1))); err == nil {
		tell(w, settings, settingsKey, state.Revision)
	}
}

// settingsWith returns settings with the given user as approver. Their rules allow Lookup and one more tool.
func settingsWith(user, tool string) []byte {
	return fmt.Appendf(nil, `{"permissions":{"allow":["Lookup",%q],"join_identical":false,"remember_denials_seconds":0},
		"approvers":{"people":[{"name":"Ann","identities":[{"connector":"terminal","user_id":%q}]}]}}`, tool, user)
}
