package engine

import (
	"sync"
	"testing"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// While the disk hangs, the server takes the writes of engines, but no agent, person, viewer or
// carrier hears of a write before it is synced.
func TestNothingIsToldBeforeItIsOnDisk(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var gate chan struct{}
	hung := map[string]bool{}
	env := rig.Start(t, func(s *rig.Setup) {
		s.Settings = rig.WithCarrier
		s.BeforeSync = func(stream string) error {
			mu.Lock()
			waitFor := gate
			hung[stream] = waitFor != nil
			mu.Unlock()
			if waitFor != nil {
				<-waitFor
			}
			return nil
		}
	})
	ada, ann := env.Agent("ada"), env.Ann()
	told := make(chan string, 1000)
	listen(env, told)
	answered, withdrawn := ada.Asks(rig.Deploy("S", "answered")), ada.Asks(rig.Deploy("W", "withdrawn"))
	env.Soon("the outbox is idle", env.OutboxIdle)
	for heard := true; heard; {
		select {
		case <-told:
		case <-time.After(200 * time.Millisecond):
			heard = false
		}
	}

	mu.Lock()
	gate = make(chan struct{})
	mu.Unlock()
	release := sync.OnceFunc(func() {
		mu.Lock()
		defer mu.Unlock()
		close(gate)
		gate = nil
	})
	t.Cleanup(release)
	errs := make(chan error, 10)
	run := func(what string, f func() error) {
		go func() {
			errs <- f()
			told <- what
		}()
	}
	run("receipt", func() error { _, err := ada.Sends(rig.Deploy("S", "asked"), false); return err })
	env.Soon("the server has stored the request", func() bool { return storedRaw(env, "S.asked") })
	run("decision of a rule", func() error { _, err := ada.Sends(rig.Lookup("S", "allowed"), false); return err })
	run("reply to an answer", func() error { _, err := ann.Says(answered, "allow_once"); return err })
	run("decision", func() error { _, err := answered.Await(env.Ctx); return err })
	run("reply to a withdrawal", func() error {
		_, err := ada.Asker.Withdraw(env.Ctx, "W", "withdrawn", "changed my mind")
		return err
	})
	run("decision of a withdrawal", func() error { _, err := withdrawn.Await(env.Ctx); return err })
	env.Soon("the server has stored all writes and waits for the disk", func() bool {
		mu.Lock()
		waits := hung["KV_pending_permissions"] && hung["permission_log"]
		mu.Unlock()
		return waits && decidedRaw(env) == 2
	})
	select {
	case what := <-told:
		env.Fail("told before it is on disk", what)
	case <-time.After(500 * time.Millisecond):
	}

	release()
	want := map[string]bool{
		"receipt": true, "decision of a rule": true, "reply to an answer": true, "decision": true,
		"reply to a withdrawal": true, "decision of a withdrawal": true, "view": true, "prompt": true,
	}
	for late := time.After(30 * time.Second); len(want) > 0; {
		select {
		case what := <-told:
			delete(want, what)
		case <-late:
			env.Empty(want, "not told")
		}
	}
	for range 6 {
		env.NoError(<-errs)
	}
}

// The function listen subscribes as a viewer and as a carrier, and sends the kind of each received message to
// the Go channel told.
func listen(env *rig.Env, told chan<- string) {
	_, err := env.Conn(roles.ConnectorID("terminal")).Subscribe("nod.v1.view.>", func(bus.Message) { told <- "view" })
	env.NoError(err)
	env.NoError(env.Conn(roles.ConnectorID("terminal")).Flush(env.Ctx))
	env.Registers("tg", "carrier", false)
	queue, err := env.Conn(roles.ConnectorID("tg")).PromptQueue(env.Ctx, "tg")
	env.NoError(err)
	stop, err := queue.Consume(func(d *bus.Delivery) {
		told <- "prompt"
		d.Done()
	})
	env.NoError(err)
	env.Wires = append(env.Wires, stop)
}

// storedRaw reports whether the server has a record, on disk or not.
func storedRaw(env *rig.Env, key string) bool {
	stream, err := env.Raw.Stream(env.Ctx, "KV_pending_permissions")
	env.NoError(err)
	_, err = stream.GetLastMsgForSubject(env.Ctx, "$KV.pending_permissions."+key)
	return err == nil
}

// decidedRaw counts the server's records with a decision, on disk or not.
func decidedRaw(env *rig.Env) (n int) {
	stream, err := env.Raw.Stream(env.Ctx, "KV_pending_permissions")
	env.NoError(err)
	for _, key := range []string{"S.answered", "W.withdrawn"} {
		msg, err := stream.GetLastMsgForSubject(env.Ctx, "$KV.pending_permissions."+key)
		env.NoError(err)
		var rec schemas.Record
		env.NoError(schemas.Load(msg.Data, &rec))
		if rec.Terminal() {
			n++
		}
	}
	return n
}
