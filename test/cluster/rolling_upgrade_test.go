package cluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// rolling is a cluster under load, whose two engines are replaced with other versions of nod.
type rolling struct {
	*cluster
	ctx     context.Context
	engines [2]*exec.Cmd
	asker   *bus.Asker
	desk    *connector.Desk
	store   *bus.Store

	mu    sync.Mutex
	told  map[string]schemas.Decision // the decisions that agents got, by the key of the request
	waits map[string]schemas.Receipt  // the requests that have no answer yet, by the key of the request
}

func startRolling(t *testing.T, first string) *rolling {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	r := &rolling{cluster: newCluster(t), ctx: ctx, told: map[string]schemas.Decision{}, waits: map[string]schemas.Receipt{}}
	for slot := range r.engines {
		r.runs(slot, first)
	}
	r.applies(strings.Replace(rig.Everybody, `"ann"`, `"`+rig.Me(t)+`"`, 1))
	r.asker = bus.NewAsker(r.connect(ctx, r.urls, roles.AgentID("local")), "local")
	t.Cleanup(r.asker.Close)
	r.desk = connector.NewDesk(r.connect(ctx, r.urls, roles.ConnectorID(schemas.ConnectorTerminal)), schemas.ConnectorTerminal)
	var err error
	r.store, err = bus.OpenExistingStore(ctx, r.connect(ctx, r.urls, roles.ID{Role: roles.EngineStore}))
	require.NoError(t, err)
	return r
}

// The method runs stops the engine of a slot, if the slot has one, and starts an engine of another version in
// its place.
func (r *rolling) runs(slot int, program string) {
	if e := r.engines[slot]; e != nil {
		r.drain(e)
	}
	r.nod = program
	p, up := r.engine(3)
	r.nod = rig.Binary
	require.Contains(r.t, <-up, "an engine is up")
	r.engines[slot] = p
}

func (r *rolling) running() {
	for _, e := range r.engines {
		require.NoError(r.t, e.Process.Signal(syscall.Signal(0)), "an engine has ended")
	}
}

func (r *rolling) submit(q schemas.Request) *bus.OpenRequest {
	open, err := r.asker.Submit(r.ctx, q)
	if assert.NoError(r.t, err) {
		assert.NotZero(r.t, open.Receipt.Revision, "%s was decided at once", open.Key)
	}
	return open
}

// leaves sends a request and notes it as one without an answer.
func (r *rolling) leaves(id string) *bus.OpenRequest {
	open := r.submit(rig.Deploy("wait", id))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits[open.Key] = open.Receipt
	return open
}

// The method says answers a request, with retries until the answer is stored or the context ends. It returns
// the last error.
func (r *rolling) says(ctx context.Context, open *bus.OpenRequest, option string, scope schemas.Scope) error {
	_, err := r.desk.Answer(ctx, schemas.Answer{
		SessionID: open.Receipt.SessionID, PendingID: open.PendingID, Digest: open.Receipt.Digest, OptionID: option, Scope: scope,
		From: schemas.From{UserID: rig.Me(r.t)},
	})
	return err
}

// saysSoon is like the method says, but gives up after 20 s.
func (r *rolling) saysSoon(open *bus.OpenRequest, option string) error {
	ctx, cancel := context.WithTimeout(r.ctx, 20*time.Second)
	defer cancel()
	return r.says(ctx, open, option, "")
}

// isLater reports whether an answer failed because no reachable engine knows the conditions of the record.
func isLater(err error) bool {
	return errors.Is(err, &schemas.Error{Code: schemas.CodeUnavailable}) && strings.Contains(err.Error(), "conditions of a later version")
}

// The method hears waits for a decision, notes it and returns it.
func (r *rolling) hears(open *bus.OpenRequest) schemas.Decision {
	d, err := open.Await(r.ctx)
	assert.NoError(r.t, err, open.Key)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waits, open.Key)
	r.told[open.Key] = d
	return d
}

// The method load sends requests and answers them until the Go channel over is closed.
func (r *rolling) load(over <-chan struct{}) (wait func()) {
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				default:
				}
				option, outcome := "allow_once", schemas.Allowed
				if i%2 == 1 {
					option, outcome = "reject_once", schemas.Denied
				}
				open := r.submit(rig.Deploy("load", fmt.Sprintf("%d-%d", n, i)))
				err := r.saysSoon(open, option)
				if isLater(err) { // the only engine that could allow the request has stopped
					outcome = schemas.Denied
					err = r.saysSoon(open, "reject_once")
				}
				if !assert.NoError(r.t, err, open.Key) {
					return
				}
				assert.Equal(r.t, outcome, r.hears(open).Outcome, open.Key)
			}
		})
	}
	return all.Wait
}

// commands runs nod ask of one version, and nod allow of another version for the same request.
func (r *rolling) commands(id, agent, person string) {
	r.nod = agent
	decided := r.asks(id)
	r.nod = person
	r.allows(id)
	r.nod = rig.Binary
	d := <-decided
	assert.Equal(r.t, schemas.Allowed, d.Outcome, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[schemas.Key("cluster", id)] = d
}

// The method keeps requires that the grant, the freeze and the waiting requests are unchanged.
func (r *rolling) keeps() {
	d, err := r.asker.Ask(r.ctx, rig.Shell("granted", "", "npm test"))
	require.NoError(r.t, err)
	assert.Equal(r.t, schemas.ByPolicy, d.By.Kind, "the grant covers the call")
	assert.Equal(r.t, schemas.Allowed, d.Outcome)
	d, err = r.asker.Ask(r.ctx, rig.Lookup("frozen", ""))
	require.NoError(r.t, err)
	assert.Equal(r.t, schemas.Denied, d.Outcome)
	for key, receipt := range r.waits {
		entry, err := r.store.Records.Get(r.ctx, key)
		require.NoError(r.t, err)
		assert.Nil(r.t, entry.Record.Decision, key)
		assert.True(r.t, receipt.Deadline.Equal(entry.Record.Deadline), key)
	}
}

// The method agree requires that each decision that an agent got is the stored one, and is logged once.
func (r *rolling) agree() {
	for key, d := range r.told {
		entry, err := r.store.Records.Get(r.ctx, key)
		if assert.NoError(r.t, err, key) && assert.NotNil(r.t, entry.Record.Decision, key) {
			assert.Equal(r.t, entry.Record.Decision.DecisionID, d.DecisionID, key)
			assert.Equal(r.t, entry.Record.Decision.Outcome, d.Outcome, key)
		}
	}
	logged := map[string]int{}
	require.Eventually(r.t, func() bool {
		clear(logged)
		err := r.connect(r.ctx, r.urls, roles.ID{Role: roles.EngineStore}).EachLogged(r.ctx, func(e schemas.LogEntry) error {
			if e.Kind == schemas.LogDecided {
				logged[schemas.Key(e.SessionID, e.PendingID)]++
			}
			return nil
		})
		for key := range r.told {
			if logged[key] == 0 {
				return false
			}
		}
		return err == nil
	}, time.Minute, time.Second, "each decision is logged")
	for key := range r.told {
		assert.Equal(r.t, 1, logged[key], "%s is logged once", key)
	}
}

// The method grants makes a person allow a command with a grant for the session.
func (r *rolling) grants(session string) {
	open := r.submit(rig.Shell(session, "grant-"+session, "npm test"))
	require.NoError(r.t, r.says(r.ctx, open, "allow_once", schemas.ScopeSession))
	require.NotNil(r.t, r.hears(open).Grant)
}

// refused requires that no engine allows a request whose record has an unknown condition. A denial must
// count, and the condition must stay stored.
func (r *rolling) refused(open *bus.OpenRequest) {
	briefly, cancel := context.WithTimeout(r.ctx, 5*time.Second)
	defer cancel()
	err := r.says(briefly, open, "allow_once", "")
	require.True(r.t, isLater(err), "%v", err)
	require.NoError(r.t, r.says(r.ctx, open, "reject_once", ""))
	assert.Equal(r.t, schemas.Denied, r.hears(open).Outcome)
	assert.Contains(r.t, r.raw("KV_pending_permissions", "$KV.pending_permissions."+open.Key), onlyOn)
}

// The method raw returns the text of the last message that is stored under a subject.
func (r *rolling) raw(stream, subject string) string {
	js, done := r.jetStream(r.urls)
	defer done()
	s, err := js.Stream(r.ctx, stream)
	require.NoError(r.t, err)
	msg, err := s.GetLastMsgForSubject(r.ctx, subject)
	require.NoError(r.t, err)
	return string(msg.Data)
}

// Two engines on three servers are restarted ten times with other versions of nod, while agents and people of
// several versions ask and answer. The versions go up, back, up again, up to a version with new conditions in
// records and grants, and back again. Nothing is lost, each request has one decision, and no engine ignores a
// condition that it does not know.
func TestTenRollingRestartsOfMixedVersions(t *testing.T) {
	if !*rig.Long {
		t.Skip("left out: it builds two more versions of nod; run go test ./test/cluster -run TenRollingRestarts -args -long")
	}
	t.Parallel()
	v := threeVersions(t)
	r := startRolling(t, v.previous)
	r.grants("granted")
	_, err := r.desk.Freeze(r.ctx, schemas.FreezeRequest{SessionID: "frozen", From: schemas.From{UserID: rig.Me(t)}})
	require.NoError(t, err)
	over := make(chan struct{})
	idle := r.load(over)
	var asked []*bus.OpenRequest
	var conditional *bus.OpenRequest
	for step, to := range []string{
		v.present, v.present, // both engines are upgraded
		v.previous, v.previous, // both engines go back to the earlier version
		v.present, v.present,
		v.next, v.next, // both engines are upgraded to the version with more fields
		v.present, v.present, // both engines go back to the earlier version
	} {
		asked = append(asked, r.leaves(fmt.Sprint("over-step-", step)))
		r.runs(step%2, to)
		r.commands(fmt.Sprintf("step-%02d-a", step), v.previous, to)
		r.commands(fmt.Sprintf("step-%02d-b", step), to, v.previous)
		r.keeps()
		r.running()
		switch step {
		case 0: // the two engines have different versions
			r.examines(true, "is version "+previousVersion+", and this nod 0.0.0-dev", "2 run")
		case 7: // both engines have the next version
			conditional = r.leaves("conditional")
			r.grants("conditional")
			require.Contains(t, r.raw("KV_pending_permissions", "$KV.pending_permissions."+conditional.Key), onlyOn)
			d, err := r.asker.Ask(r.ctx, rig.Shell("conditional", "", "npm test"))
			require.NoError(t, err)
			require.Equal(t, schemas.Allowed, d.Outcome)
		case 8: // one of the two engines knows the condition
			open := r.leaves("mixed")
			require.NoError(t, r.says(r.ctx, open, "allow_once", ""))
			assert.Equal(t, schemas.Allowed, r.hears(open).Outcome)
		}
	}
	close(over)
	idle()
	r.refused(conditional)
	again := r.submit(rig.Shell("conditional", "again", "npm test")) // the grant has a condition, so it does not allow the call
	require.NoError(t, r.says(r.ctx, again, "reject_once", ""))
	r.hears(again)
	for _, open := range asked {
		if strings.Contains(r.raw("KV_pending_permissions", "$KV.pending_permissions."+open.Key), onlyOn) {
			r.refused(open)
			continue
		}
		require.NoError(t, r.says(r.ctx, open, "allow_once", ""))
		assert.Equal(t, schemas.Allowed, r.hears(open).Outcome)
	}
	assert.Empty(t, r.waits)
	r.agree()
	t.Logf("%d decisions", len(r.told))
	require.Greater(t, len(r.told), 50)
}
