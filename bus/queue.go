package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// drainTimeout is how long a stopping queue waits for messages that the server has already sent.
// Messages that arrive later are delivered to another process.
const drainTimeout = 2 * time.Second

const (
	// idleBeat is the interval at which the broker sends heartbeats while it has nothing to deliver. If
	// a subscription misses two heartbeats, it counts as failed.
	idleBeat = 2 * time.Second
	// pullExpiry is how long a pull lasts before the subscription pulls again. A connector's pull
	// crosses accounts, so only the client's own server notices that the client is gone. If the client
	// of a pull dies, the broker may therefore still send messages to the pull until the pull ends, and
	// each of these messages is delayed until its redelivery.
	pullExpiry = 2 * idleBeat
	// A subscription that has lasted for servedFor counts as successful.
	servedFor = 10 * time.Second
)

// Queue is a durable consumer that several engines or workers share. Each message goes to one process. If
// that process does not acknowledge the message in time, it goes to another process.
type Queue struct {
	conn     *Conn
	consumer jetstream.Consumer
	// open opens the consumer, and makes a missing consumer if the role has the right.
	open func(context.Context) (jetstream.Consumer, error)
	name string
	disk *groupSync // waits until messages are on disk; nil if a message may take effect before it is on disk
	one  sync.Mutex // locked while the function handle runs

	ackWait time.Duration
	mu      sync.Mutex
	unacked map[*Delivery]struct{}
}

// Delivery is one message of a queue. Its receiver acknowledges the message once all effects of the
// message are stored.
type Delivery struct {
	Subject  string
	Data     []byte
	Sequence uint64
	// Times is the number of deliveries of the message, including this one.
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

// Consume calls the function handle for one delivery after another, until the caller calls the
// returned function. The function handle must not block for long. Until a delivery is acknowledged,
// Consume reports progress to the broker, so that another process gets the delivery only if this
// process ends. If the queue's leader is gone or its consumer is lost, Consume notices that within 2
// × idleBeat and subscribes again.
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

// AckWait returns the queue's time limit for signs of progress. If a process reports no progress with
// an unacknowledged delivery for this time, another process gets the message.
func (q *Queue) AckWait() time.Duration { return q.ackWait }

// subscription is one subscription to a queue. The channel failed gets its first error.
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
		q.one.Lock() // a failed subscription and its successor may deliver at the same time
		defer q.one.Unlock()
		d := &Delivery{Subject: m.Subject(), Data: m.Data(), Sequence: meta.Sequence.Stream, Times: meta.NumDelivered, msg: m, queue: q}
		if q.disk.wait(ctx, d.Sequence) != nil {
			d.Again(time.Second) // the queue is stopping or the disk has failed, so another delivery of the message must follow
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

// drain ends the fetching of messages. It waits, at most for drainTimeout, until the messages that the
// server has already sent are handled.
func (p *subscription) drain() {
	p.Drain()
	select {
	case <-p.Closed():
	case <-time.After(drainTimeout):
	}
}

// serve replaces each failed subscription until ctx ends. nats.go does too little itself: it resubscribes
// only after some failures and never after a deletion of the consumer, and it repeats an unanswered pull
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
		p.Drain() // Drain still passes on the messages that have already arrived
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

// resubscribe subscribes again. Before the second and each later try, it opens the consumer again. It
// returns nil if ctx ends first.
func (q *Queue) resubscribe(ctx context.Context, handle func(*Delivery), try int) *subscription {
	for ; ; try++ {
		if try > 0 { // the first try keeps the consumer, because the reason may only be that the consumer's leader has changed
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

// reopen opens the consumer again. After an error the queue keeps its old consumer.
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

// extend tells the broker that this process is still working on its unacknowledged messages.
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

// Refuse discards a message that no process can ever handle. The broker does not deliver the message
// again.
func (d *Delivery) Refuse() {
	d.queue.untrack(d)
	_ = d.msg.Term()
}
