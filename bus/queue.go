package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// drainTimeout is how long a queue that stops waits for what was on its way.
// More would be waiting for a server that is away; what comes later is delivered
// again to another.
const drainTimeout = 2 * time.Second

// Queue is a durable consumer that engines or workers share: each message goes
// to one of them, and to another when it is not acknowledged in time.
type Queue struct {
	conn     *Conn
	consumer jetstream.Consumer
	name     string
	ackWait  time.Duration
}

// Delivery is one message of a queue, to be acknowledged once its effects are
// there.
type Delivery struct {
	Subject  string
	Data     []byte
	Sequence uint64
	// Times is how often it was delivered, this time included.
	Times uint64

	msg jetstream.Msg
}

// queue opens a durable consumer, making it where it is missing.
func (c *Conn) queue(ctx context.Context, stream jetstream.Stream, config jetstream.ConsumerConfig) (*Queue, error) {
	q := &Queue{conn: c, name: config.Durable, ackWait: config.AckWait}
	err := settle(ctx, "open the queue "+config.Durable, func(ctx context.Context) (err error) {
		q.consumer, err = stream.CreateOrUpdateConsumer(ctx, config)
		return err
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

// Consume hands every delivery to handle, one after another, until stop is
// called. handle must not block for long: it passes the work on.
func (q *Queue) Consume(handle func(*Delivery)) (stop func(), err error) {
	run, err := q.consumer.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err != nil {
			q.conn.log.Error("bus: a queue delivered what is no message of its", "queue", q.name, "error", err)
			return
		}
		handle(&Delivery{Subject: m.Subject(), Data: m.Data(), Sequence: meta.Sequence.Stream, Times: meta.NumDelivered, msg: m})
	}, jetstream.PullMaxMessages(256), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		q.conn.log.Info("bus: the queue waits for the broker", "queue", q.name, "error", err)
	}))
	if err != nil {
		return nil, fmt.Errorf("consume %s: %w", q.name, err)
	}
	return func() {
		run.Drain()
		select {
		case <-run.Closed():
		case <-time.After(drainTimeout):
		}
	}, nil
}

// Done acknowledges: the effects are there. A lost acknowledgement brings the
// message again.
func (d *Delivery) Done() { _ = d.msg.Ack() }

// Again has the message delivered again after a while.
func (d *Delivery) Again(after time.Duration) { _ = d.msg.NakWithDelay(after) }

// Working tells the broker to wait longer before it delivers to another.
func (d *Delivery) Working() { _ = d.msg.InProgress() }

// Refuse says that the message is none that could ever be handled.
func (d *Delivery) Refuse() { _ = d.msg.Term() }
