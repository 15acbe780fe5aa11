// Package bench compares nod with an implementation of the same work in plain NATS callbacks, called
// "bare". Both make the same durable writes, on the same server, in one process:
//
//	go test -run xxx -bench . ./test/bench
//
// The implementations take turns, so that a change in the speed of the machine affects both. These
// metrics are ratios of medians:
//
//   - latency/bare is nod's time for a request over bare's time, one request at a time.
//   - throughput/bare is nod's requests per second over bare's, with 64 sessions that ask
//     at the same time.
//   - latency/writes is nod's time for a request over the time for the durable writes that
//     every design needs: the record with its timer, and the decision.
package bench

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

const (
	inFlight = 64
	batch    = 256 // requests of all sessions in one turn
)

// work sends one request of a session and returns when it has the decision.
type work func(session string) error

func BenchmarkAutomatic(b *testing.B) {
	bySync(b, func(b *testing.B, r *rig) {
		r.compare(b, map[string]work{"nod": r.nodAutomatic, "bare": r.bareAutomatic})
	})
}

func BenchmarkHuman(b *testing.B) {
	bySync(b, func(b *testing.B, r *rig) {
		r.compare(b, map[string]work{"nod": r.nodHuman, "bare": r.bareHuman, "writes": r.writes})
	})
}

// BenchmarkHumanSubscribeSync is BenchmarkHuman with a different asker in the bare implementation.
// That asker waits for its decision with SubscribeSync, as NATS's own examples do. SubscribeSync
// allocates a queue for 65,536 messages, which is half a megabyte.
func BenchmarkHumanSubscribeSync(b *testing.B) {
	bySync(b, func(b *testing.B, r *rig) {
		r.compare(b, map[string]work{"nod": r.nodHuman, "bare": r.bareHumanSync})
	})
}

// bySync runs a benchmark three times. The server of the first run syncs to disk before it
// acknowledges a message. The server of the second may sync up to 2 minutes later. In the third run
// nod groups the syncs of its server, and the bare implementation uses a server as in the first run.
func bySync(b *testing.B, run func(*testing.B, *rig)) {
	for name, interval := range map[string]time.Duration{"sync_group": bus.SyncGroup, "sync_always": bus.SyncAlways, "sync_interval": 2 * time.Minute} {
		b.Run(name, func(b *testing.B) { run(b, newRig(b, interval)) })
	}
}

// compare measures the works in turns. It first sends one request at a time, and then batches of
// requests in inFlight sessions.
func (r *rig) compare(b *testing.B, works map[string]work) {
	b.Run("one", func(b *testing.B) {
		times := map[string][]time.Duration{}
		for b.Loop() {
			for name, w := range works {
				start := time.Now()
				require.NoError(b, w("bench"))
				times[name] = append(times[name], time.Since(start))
			}
		}
		b.ReportMetric(float64(median(times["nod"]).Microseconds()), "nod-µs")
		b.ReportMetric(float64(median(times["bare"]).Microseconds()), "bare-µs")
		for name := range works {
			if name != "nod" {
				b.ReportMetric(ratio(times["nod"], times[name]), "latency/"+name)
			}
		}
	})
	b.Run(fmt.Sprint(inFlight), func(b *testing.B) {
		times := map[string][]time.Duration{}
		for b.Loop() {
			for name, w := range works {
				if name != "writes" {
					times[name] = append(times[name], r.batch(b, w))
				}
			}
		}
		b.ReportMetric(batch/median(times["nod"]).Seconds(), "nod/s")
		b.ReportMetric(batch/median(times["bare"]).Seconds(), "bare/s")
		b.ReportMetric(ratio(times["bare"], times["nod"]), "throughput/bare")
	})
}

func (r *rig) batch(b *testing.B, w work) time.Duration {
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(batch)
	start := time.Now()
	for n := range inFlight { // a session sends one request after another
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := w(fmt.Sprint("bench", n)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func ratio(a, b []time.Duration) float64 { return float64(median(a)) / float64(median(b)) }

// rig is one NATS server without accounts, used by a nod and by a bare implementation.
type rig struct {
	ctx   context.Context
	asker *bus.Asker
	agent *nats.Conn
	js    jetstream.JetStream
	n     atomic.Int64
	over  atomic.Bool // set at the end, to ignore the errors of running requests
	calls atomic.Int64
}

func newRig(b *testing.B, interval time.Duration) *rig {
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	quiet := slog.New(slog.DiscardHandler)
	o := embed.Options{
		Log:      quiet,
		Settings: []byte(`{"approvers":{"people":[{"name":"Ann","identities":[{"connector":"terminal","user_id":"ann"}]}]}}`),
	}
	bare := interval
	if interval == bus.SyncGroup {
		bare = bus.SyncAlways
	}
	server, err := bus.Embed(ctx, bus.EmbedOptions{DataDir: b.TempDir(), SyncInterval: bare, Log: quiet})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, server.Close()) })
	if o.URL = server.URL(); interval == bus.SyncGroup {
		o.URL, o.DataDir = "", b.TempDir()
	}
	n, err := embed.Start(ctx, o)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, n.Stop(context.Background())) })
	r := &rig{ctx: ctx}
	r.startNod(b, n, quiet)
	r.startBare(b, server.URL())
	b.Cleanup(func() { r.over.Store(true) })
	return r
}

func (r *rig) startNod(b *testing.B, n *embed.Nod, quiet *slog.Logger) {
	agent, err := n.Connect(r.ctx, roles.AgentID("local"))
	require.NoError(b, err)
	r.asker = bus.NewAsker(agent, "local")
	terminal, err := n.Connect(r.ctx, roles.ConnectorID("terminal"))
	require.NoError(b, err)
	sys := actors.NewSystem(quiet)
	desk := connector.NewDesk(terminal, "terminal")
	viewer, err := connector.View(r.ctx, sys, terminal, "terminal", quiet, func(p schemas.Prompt) {
		if p.Decision == nil {
			go func() {
				_, err := desk.Answer(r.ctx, schemas.Answer{SessionID: p.SessionID, PendingID: p.PendingID, Digest: p.Digest, OptionID: "allow_once", From: schemas.From{UserID: "ann"}})
				if err != nil && !r.over.Load() {
					b.Error(err)
				}
			}()
		}
	})
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, viewer.Stop(context.Background()))
		sys.Stop()
		r.asker.Close()
		agent.Close()
		terminal.Close()
	})
}

func request(session, tool, details string, action schemas.ActionType) schemas.Request {
	return schemas.Request{
		SessionID: session, Kind: schemas.KindToolCall, Title: "Use " + tool, ToolName: tool,
		ActionType: action, ActionDetails: []byte(details), Reason: "clean rebuild", AgentName: "bench",
	}
}

func (r *rig) ask(q schemas.Request, by schemas.ByKind) error {
	d, err := r.asker.Ask(r.ctx, q)
	if err == nil && (d.Outcome != schemas.Allowed || d.By.Kind != by) {
		err = fmt.Errorf("it was %s by %s", d.Outcome, d.By.Kind)
	}
	return err
}

func (r *rig) nodAutomatic(session string) error {
	return r.ask(request(session, "Glob", `{"pattern":"**/*_test.go","path":"/workspace","cwd":"/workspace"}`, schemas.ActionFileRead), schemas.ByPolicy)
}

func (r *rig) nodHuman(session string) error {
	// Each call has a different input, because nod decides identical calls together.
	details := fmt.Sprintf(`{"command":"rm -rf build%06d","cwd":"/workspace"}`, r.calls.Add(1))
	return r.ask(request(session, "Frobnicate", details, schemas.ActionOther), schemas.ByHuman)
}

// payload is about as large as a record.
var payload = []byte(strings.Repeat("x", 700))

// startBare starts the callbacks of the bare implementation.
func (r *rig) startBare(b *testing.B, url string) {
	connect := func() *nats.Conn {
		nc, err := nats.Connect(url)
		require.NoError(b, err)
		b.Cleanup(nc.Close)
		return nc
	}
	engine, person := connect(), connect()
	r.agent = connect()
	var err error
	r.js, err = jetstream.New(engine)
	require.NoError(b, err)
	_, err = r.js.CreateStream(r.ctx, jetstream.StreamConfig{
		Name: "KV_bare", Subjects: []string{"$KV.bare.>", "bare.timer.>", "bare.due.>"}, MaxMsgsPerSubject: 1,
		AllowRollup: true, AllowMsgTTL: true, AllowMsgSchedules: true,
	})
	require.NoError(b, err)
	_, err = r.js.CreateStream(r.ctx, jetstream.StreamConfig{Name: "bare_log", Subjects: []string{"bare.log"}, Duplicates: time.Hour})
	require.NoError(b, err)
	subscribe := func(nc *nats.Conn, subject string, handle func(m *nats.Msg, id string) error) {
		_, err := nc.Subscribe(subject, func(m *nats.Msg) {
			go func() {
				if err := handle(m, m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]); err != nil && !r.over.Load() {
					b.Error(err)
				}
			}()
		})
		require.NoError(b, err)
		require.NoError(b, nc.Flush())
	}
	subscribe(engine, "bare.auto.*", func(m *nats.Msg, id string) error {
		if _, err := r.js.Publish(r.ctx, "bare.log", payload, jetstream.WithMsgID(id)); err != nil {
			return err
		}
		return m.Respond(payload)
	})
	subscribe(engine, "bare.request.*", func(m *nats.Msg, id string) error {
		if _, err := r.store(id); err != nil {
			return err
		}
		if err := m.Respond(payload[:200]); err != nil {
			return err
		}
		if err := engine.Publish("bare.view."+id, payload); err != nil {
			return err
		}
		return r.note("asked." + id)
	})
	subscribe(person, "bare.view.*", func(_ *nats.Msg, id string) error {
		_, err := person.Request("bare.answer."+id, payload[:200], 10*time.Second)
		return err
	})
	stream, err := r.js.Stream(r.ctx, "KV_bare")
	require.NoError(b, err)
	subscribe(engine, "bare.answer.*", func(m *nats.Msg, id string) error {
		record, err := stream.GetLastMsgForSubject(r.ctx, "$KV.bare."+id)
		if err != nil {
			return err
		}
		if err := r.decide(id, record.Sequence); err != nil {
			return err
		}
		if err := engine.Publish("bare.decision."+id, payload[:400]); err != nil {
			return err
		}
		if err := m.Respond(payload[:400]); err != nil {
			return err
		}
		return r.note("decided." + id)
	})
}

// note sends a log entry without waiting for its storage.
func (r *rig) note(id string) error {
	_, err := r.js.PublishMsgAsync(&nats.Msg{Subject: "bare.log", Data: payload[:300]}, jetstream.WithMsgID(id))
	return err
}

// store writes a record and its timer. It returns the revision of the record.
func (r *rig) store(id string) (uint64, error) {
	timer := nats.NewMsg("bare.timer." + id)
	timer.Data = payload[:60]
	timer.Header.Set("Nats-Schedule", "@at "+time.Now().Add(7*24*time.Hour).UTC().Format(time.RFC3339Nano))
	timer.Header.Set("Nats-Schedule-Target", "bare.due."+id)
	armed, err := r.js.PublishMsgAsync(timer, jetstream.WithExpectLastSequencePerSubject(0))
	if err != nil {
		return 0, err
	}
	stored, err := r.js.PublishMsgAsync(&nats.Msg{Subject: "$KV.bare." + id, Data: payload}, jetstream.WithExpectLastSequencePerSubject(0))
	if err != nil {
		return 0, err
	}
	var sequence uint64
	for _, f := range []jetstream.PubAckFuture{armed, stored} {
		select {
		case ack := <-f.Ok():
			sequence = ack.Sequence
		case err := <-f.Err():
			return 0, err
		}
	}
	return sequence, nil
}

// decide writes the record with its decision if the record still has this revision. This write also
// cancels the timer.
func (r *rig) decide(id string, revision uint64) error {
	msg := nats.NewMsg("$KV.bare." + id)
	msg.Data = append(payload[:len(payload):len(payload)], payload[:400]...)
	msg.Header.Set("Nats-TTL", "24h")
	msg.Header.Set("Nats-Schedule-Next", "purge")
	msg.Header.Set("Nats-Scheduler", "bare.timer."+id)
	_, err := r.js.PublishMsg(r.ctx, msg, jetstream.WithExpectLastSequencePerSubject(revision))
	return err
}

func (r *rig) id() string { return fmt.Sprint(r.n.Add(1)) }

func (r *rig) bareAutomatic(string) error {
	_, err := r.agent.Request("bare.auto."+r.id(), payload[:600], 10*time.Second)
	return err
}

func (r *rig) bareHuman(string) error {
	id := r.id()
	decided := make(chan struct{})
	sub, err := r.agent.Subscribe("bare.decision."+id, func(*nats.Msg) { close(decided) })
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	if _, err := r.agent.Request("bare.request."+id, payload[:600], 10*time.Second); err != nil {
		return err
	}
	select {
	case <-decided:
		return nil
	case <-time.After(10 * time.Second):
		return nats.ErrTimeout
	}
}

func (r *rig) bareHumanSync(string) error {
	id := r.id()
	sub, err := r.agent.SubscribeSync("bare.decision." + id)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	if _, err := r.agent.Request("bare.request."+id, payload[:600], 10*time.Second); err != nil {
		return err
	}
	_, err = sub.NextMsg(10 * time.Second)
	return err
}

// writes makes only the durable writes of one request.
func (r *rig) writes(string) error {
	id := r.id()
	revision, err := r.store(id)
	if err != nil {
		return err
	}
	return r.decide(id, revision)
}
