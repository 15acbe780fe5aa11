package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/bus"
)

// payload is about as long as a record.
var payload = []byte(strings.Repeat("x", 700))

// replyWithin is the time limit of one hop.
const replyWithin = 30 * time.Second

// Bare does the work of nod on bare NATS with callbacks, but checks nothing. It has an engine that
// stores requests with their timers, decisions and log entries, an agent, and an approver who allows
// every request that is shown.
type Bare struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	agent  *nats.Conn
	conns  []*nats.Conn
	ids    atomic.Int64
	first  string // a number that differs in each Bare, so that no id is used twice on the same stores
	closed atomic.Bool
	fail   func(error)
}

// StartBare connects to a server and creates missing stores. The function fail is called with the
// errors of callbacks. The caller must Close the result.
func StartBare(ctx context.Context, url string, fail func(error)) (*Bare, error) {
	b := &Bare{fail: fail, first: bus.NewID()}
	if err := b.start(ctx, url); err != nil {
		b.Close()
		return nil, fmt.Errorf("start the comparison on bare NATS: %w", err)
	}
	return b, nil
}

func (b *Bare) start(ctx context.Context, url string) error {
	for range 3 {
		nc, err := nats.Connect(url)
		if err != nil {
			return err
		}
		b.conns = append(b.conns, nc)
	}
	engine, person := b.conns[0], b.conns[1]
	b.agent = b.conns[2]
	var err error
	if b.js, err = jetstream.New(engine); err != nil {
		return err
	}
	b.stream, err = b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "KV_bare", Subjects: []string{"$KV.bare.>", "bare.timer.>", "bare.due.>"}, MaxMsgsPerSubject: 1,
		AllowRollup: true, AllowMsgTTL: true, AllowMsgSchedules: true,
	})
	if err != nil {
		return err
	}
	_, err = b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "bare_log", Subjects: []string{"bare.log"}, Duplicates: time.Hour})
	return errors.Join(err,
		b.on(engine, "bare.auto.*", b.decideAutomatically),
		b.on(engine, "bare.request.*", b.accept),
		b.on(person, "bare.view.*", func(_ *nats.Msg, id string) error {
			_, err := person.Request("bare.answer."+id, payload[:200], replyWithin)
			return err
		}),
		b.on(engine, "bare.answer.*", b.answer),
	)
}

// The method on subscribes to a subject, and runs the function handle for each message, in a new
// goroutine.
func (b *Bare) on(nc *nats.Conn, subject string, handle func(m *nats.Msg, id string) error) error {
	_, err := nc.Subscribe(subject, func(m *nats.Msg) {
		go func() {
			err := handle(m, m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
			if err != nil && !b.closed.Load() {
				b.fail(err)
			}
		}()
	})
	if err != nil {
		return err
	}
	return nc.Flush()
}

func (b *Bare) decideAutomatically(m *nats.Msg, id string) error {
	if _, err := b.js.Publish(context.Background(), "bare.log", payload, jetstream.WithMsgID(id)); err != nil {
		return err
	}
	return m.Respond(payload)
}

// accept stores a request. It shows the approver every request except those of Submit.
func (b *Bare) accept(m *nats.Msg, id string) error {
	if _, err := b.store(id); err != nil {
		return err
	}
	if err := m.Respond(payload[:200]); err != nil {
		return err
	}
	if len(m.Data) == len(waiting) {
		return b.note("asked." + id)
	}
	if err := b.conns[0].Publish("bare.view."+id, payload); err != nil {
		return err
	}
	return b.note("asked." + id)
}

func (b *Bare) answer(m *nats.Msg, id string) error {
	record, err := b.stream.GetLastMsgForSubject(context.Background(), "$KV.bare."+id)
	if err != nil {
		return err
	}
	if err := b.decide(id, record.Sequence); err != nil {
		return err
	}
	if err := b.conns[0].Publish("bare.decision."+id, payload[:400]); err != nil {
		return err
	}
	if err := m.Respond(payload[:400]); err != nil {
		return err
	}
	return b.note("decided." + id)
}

// note sends a log entry and does not wait until the entry is stored.
func (b *Bare) note(id string) error {
	_, err := b.js.PublishMsgAsync(&nats.Msg{Subject: "bare.log", Data: payload[:300]}, jetstream.WithMsgID(id))
	return err
}

// store writes a record and its timer, and returns the record's revision.
func (b *Bare) store(id string) (uint64, error) {
	timer := nats.NewMsg("bare.timer." + id)
	timer.Data = payload[:60]
	timer.Header.Set("Nats-Schedule", "@at "+time.Now().Add(7*24*time.Hour).UTC().Format(time.RFC3339Nano))
	timer.Header.Set("Nats-Schedule-Target", "bare.due."+id)
	armed, err := b.js.PublishMsgAsync(timer, jetstream.WithExpectLastSequencePerSubject(0))
	if err != nil {
		return 0, err
	}
	stored, err := b.js.PublishMsgAsync(&nats.Msg{Subject: "$KV.bare." + id, Data: payload}, jetstream.WithExpectLastSequencePerSubject(0))
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

// decide writes the record with its decision, if the record still has this revision. The write also
// cancels the record's timer.
func (b *Bare) decide(id string, revision uint64) error {
	msg := nats.NewMsg("$KV.bare." + id)
	msg.Data = append(payload[:len(payload):len(payload)], payload[:400]...)
	msg.Header.Set("Nats-TTL", "24h")
	msg.Header.Set("Nats-Schedule-Next", "purge")
	msg.Header.Set("Nats-Scheduler", "bare.timer."+id)
	ctx, cancel := context.WithTimeout(context.Background(), replyWithin)
	defer cancel()
	_, err := b.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(revision))
	return err
}

func (b *Bare) id() string { return b.first + fmt.Sprint(b.ids.Add(1)) }

// Automatic sends a request that a rule decides, and gets the decision.
func (b *Bare) Automatic(ctx context.Context, _ string) error {
	_, err := b.request(ctx, "bare.auto."+b.id(), payload[:600])
	return err
}

func (b *Bare) request(ctx context.Context, subject string, data []byte) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, replyWithin)
	defer cancel()
	return b.agent.RequestWithContext(ctx, subject, data)
}

// Person sends a request, and gets the approver's decision.
func (b *Bare) Person(ctx context.Context, _ string) error {
	id := b.id()
	decided := make(chan struct{})
	sub, err := b.agent.Subscribe("bare.decision."+id, func(*nats.Msg) { close(decided) })
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // Unsubscribe fails only if the connection is closed
	if _, err := b.request(ctx, "bare.request."+id, payload[:600]); err != nil {
		return err
	}
	select {
	case <-decided:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(replyWithin):
		return nats.ErrTimeout
	}
}

// PersonSync does the work of Person, but waits with SubscribeSync, as the examples in NATS's own
// documentation do. SubscribeSync allocates a queue for 65,536 messages, which is half a megabyte.
func (b *Bare) PersonSync(ctx context.Context, _ string) error {
	id := b.id()
	sub, err := b.agent.SubscribeSync("bare.decision." + id)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // Unsubscribe fails only if the connection is closed
	if _, err := b.request(ctx, "bare.request."+id, payload[:600]); err != nil {
		return err
	}
	_, err = sub.NextMsg(replyWithin)
	return err
}

// waiting is the payload of a request that the approver does not answer.
var waiting = payload[:601]

// Submit sends a request, and returns once the request is stored. The request stays pending.
func (b *Bare) Submit(ctx context.Context, _ string) error {
	_, err := b.request(ctx, "bare.request."+b.id(), waiting)
	return err
}

// Writes makes the durable writes that one request needs, and does nothing else.
func (b *Bare) Writes(context.Context, string) error {
	id := b.id()
	revision, err := b.store(id)
	if err != nil {
		return err
	}
	return b.decide(id, revision)
}

// Close closes the connections.
func (b *Bare) Close() {
	b.closed.Store(true)
	for _, nc := range b.conns {
		nc.Close()
	}
}
