package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// drainTimeout is how long a stopping queue waits for messages that the server has sent
// already. Later messages go to another process.
const drainTimeout = 2 * time.Second

const (
	// idleBeat is the interval of the broker's heartbeats on a subscription without deliveries.
	// A subscription without two heartbeats has failed.
	idleBeat = 2 * time.Second
	// pullExpiry is how long a pull lasts. The subscription then pulls again. If the client of a pull
	// dies, the broker may send messages to that pull until it ends: a connector's pull crosses
	// accounts, and no server but the client's own knows that the client is gone. Each such message
	// waits for its redelivery.
	pullExpiry = 2 * idleBeat
	// servedFor is how long a subscription must last to count as successful.
	servedFor = 10 * time.Second
)

// Queue is a durable consumer that several engines or workers share. Each message goes to one
// process. If that process does not acknowledge it in time, the message goes to another
// process.
type Queue struct {
	conn     *Conn
	consumer jetstream.Consumer
	// open opens the consumer, and makes a missing one if the role has the right to.
	open func(context.Context) (jetstream.Consumer, error)
	name string
	disk *groupSync // waits until messages are on disk; nil for messages whose effects need not wait
	one  sync.Mutex // locked while handle processes a delivery

	ackWait time.Duration
	mu      sync.Mutex
	unacked map[*Delivery]struct{}
}

// Delivery is one message of a queue. The receiver acknowledges it once the effects are stored.
type Delivery struct {
	Subject  string
	Data     []byte
	Sequence uint64
	// Times counts the deliveries of the message, including the present one.
	Times uint64

	msg   jetstream.Msg
	queue *Queue
}

func (c *Conn) queue(ctx context.Context, stream jetstream.Stream, disk *groupSync, config jetstream.ConsumerConfig) (*Queue, error) {
	q := &Queue{conn: c, name: config.Durable, disk: disk, ackWait: config.AckWait}
	q.open = func(ctx context.Context) (jetstream.Consumer, error) {
		return stream.CreateOrUpdateConsumer(ctx, config)
	}
	err := retryOperation(ctx, "open the queue "+config.Durable, func(ctx context.Context) (err error) {
		q.consumer, err = q.open(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

// Consume calls handle for one delivery after another, until stop is called; handle must not
// block for long. Until a delivery is acknowledged, Consume reports progress to the broker, so
// that another process gets the delivery only if this process stops. If the queue's leader is
// gone or its consumer is lost, Consume notices within 2 × idleBeat and subscribes again.
func (q *Queue) Consume(handle func(*Delivery)) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	first, err := q.pull(ctx, handle)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("consume %s: %w", q.name, err)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		q.serve(ctx, first, handle)
	}()
	return func() {
		cancel()
		<-stopped
	}, nil
}

// AckWait returns the time without a sign of progress after which an unacknowledged delivery
// goes to another process.
func (q *Queue) AckWait() time.Duration { return q.ackWait }

// subscription is one subscription to a queue. failed gets its first error.
type subscription struct {
	jetstream.ConsumeContext
	failed chan error
	began  time.Time
}

func (q *Queue) pull(ctx context.Context, handle func(*Delivery)) (*subscription, error) {
	p := &subscription{failed: make(chan error, 1), began: time.Now()}
	run, err := q.consumer.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err != nil {
			q.conn.log.Error("bus: a queue delivered a message without its metadata", "queue", q.name, "error", err)
			return
		}
		q.one.Lock() // two subscriptions may deliver at the same time: a failed subscription and its successor
		defer q.one.Unlock()
		d := &Delivery{Subject: m.Subject(), Data: m.Data(), Sequence: meta.Sequence.Stream, Times: meta.NumDelivered, msg: m, queue: q}
		if q.disk.wait(ctx, d.Sequence) != nil {
			d.Again(time.Second) // the delivery comes again, because the queue stops or the disk has failed
			return
		}
		q.track(d)
		handle(d)
	}, jetstream.PullMaxMessages(256), jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(idleBeat), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		select {
		case p.failed <- err:
		default:
		}
	}))
	p.ConsumeContext = run
	return p, err
}

// drain stops fetching, and waits at most drainTimeout until the messages that the server has
// sent are handled.
func (p *subscription) drain() {
	p.Drain()
	select {
	case <-p.Closed():
	case <-time.After(drainTimeout):
	}
}

// serve replaces each failed subscription until ctx ends. nats.go itself resubscribes only
// after some failures, and not after the consumer was deleted; it repeats an unanswered pull
// only after missing heartbeats.
func (q *Queue) serve(ctx context.Context, p *subscription, handle func(*Delivery)) {
	working := time.NewTicker(q.ackWait / 3)
	defer working.Stop()
	for try := 0; ; try++ {
		var failed error
		for failed == nil {
			select {
			case <-ctx.Done():
				p.drain()
				return
			case <-working.C:
				q.extend()
			case failed = <-p.failed:
			case <-p.Closed():
				failed = errPullEnded
			}
		}
		if time.Since(p.began) > servedFor {
			try = 0
		}
		q.conn.log.Info("bus: a queue's subscription failed; subscribing again", "queue", q.name, "error", failed)
		p.Drain() // the messages that have already arrived are still handled
		if try > 0 && pause(ctx, try-1) != nil {
			return
		}
		p = q.resubscribe(ctx, handle, try)
		if p == nil {
			return
		}
	}
}

var errPullEnded = errors.New("the subscription has ended")

// resubscribe subscribes again, with a new consumer if the old one seems lost. It returns nil
// if ctx ends first.
func (q *Queue) resubscribe(ctx context.Context, handle func(*Delivery), try int) *subscription {
	for ; ; try++ {
		if try > 0 { // perhaps only the consumer's leader has changed, so the first try uses the same consumer
			q.reopen(ctx)
		}
		p, err := q.pull(ctx, handle)
		if err == nil {
			return p
		}
		q.conn.log.Warn("bus: cannot subscribe to a queue; trying again", "queue", q.name, "error", err)
		if pause(ctx, try) != nil {
			return nil
		}
	}
}

// reopen opens the consumer again. After an error the queue keeps the old one.
func (q *Queue) reopen(ctx context.Context) {
	hop, cancel := context.WithTimeout(ctx, 2*idleBeat)
	defer cancel()
	consumer, err := q.open(hop)
	if err != nil {
		q.conn.log.Info("bus: cannot open a queue's consumer; trying again", "queue", q.name, "error", err)
		return
	}
	q.consumer = consumer
}

func (q *Queue) track(d *Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.unacked == nil {
		q.unacked = map[*Delivery]struct{}{}
	}
	q.unacked[d] = struct{}{}
}

func (q *Queue) untrack(d *Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.unacked, d)
}

// extend asks the broker to wait longer for the unacknowledged deliveries of this process.
func (q *Queue) extend() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for d := range q.unacked {
		_ = d.msg.InProgress()
	}
}

// Done acknowledges the message. If the acknowledgement is lost, the broker delivers the
// message again.
func (d *Delivery) Done() {
	d.queue.untrack(d)
	_ = d.msg.Ack()
}

// Again asks the broker to deliver the message again after a delay.
func (d *Delivery) Again(after time.Duration) {
	d.queue.untrack(d)
	_ = d.msg.NakWithDelay(after)
}

// Refuse discards a message that can never be handled. The broker does not deliver it again.
func (d *Delivery) Refuse() {
	d.queue.untrack(d)
	_ = d.msg.Term()
}
