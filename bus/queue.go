package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// drainTimeout is how long a queue that stops waits for what was on its way.
// More would be waiting for a server that is away; what comes later is delivered
// again to another.
const drainTimeout = 2 * time.Second

const (
	// idleBeat is how often the broker says that it serves a subscription which
	// has nothing to deliver. Two that are missed mean that it does not.
	idleBeat = 2 * time.Second
	// servedFor is how long a subscription has to last to count as served.
	servedFor = 10 * time.Second
)

// Queue is a durable consumer that engines or workers share: each message goes
// to one of them, and to another when it is not acknowledged in time.
type Queue struct {
	conn     *Conn
	consumer jetstream.Consumer
	// open takes the consumer anew, which makes it where the role may.
	open func(context.Context) (jetstream.Consumer, error)
	name string
	one  sync.Mutex // held while a delivery is handled

	ackWait time.Duration
	mu      sync.Mutex
	unacked map[*Delivery]struct{}
}

// Delivery is one message of a queue, to be acknowledged once its effects are
// there.
type Delivery struct {
	Subject  string
	Data     []byte
	Sequence uint64
	// Times is how often it was delivered, this time included.
	Times uint64

	msg   jetstream.Msg
	queue *Queue
}

// queue opens a durable consumer, making it where it is missing.
func (c *Conn) queue(ctx context.Context, stream jetstream.Stream, config jetstream.ConsumerConfig) (*Queue, error) {
	q := &Queue{conn: c, name: config.Durable, ackWait: config.AckWait}
	q.open = func(ctx context.Context) (jetstream.Consumer, error) {
		return stream.CreateOrUpdateConsumer(ctx, config)
	}
	err := retry(ctx, "open the queue "+config.Durable, func(ctx context.Context) (err error) {
		q.consumer, err = q.open(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

// Consume hands every delivery to handle, one after another, until stop is
// called. handle must not block for long: it passes the work on. Until a delivery is
// acknowledged the broker is told that it is being worked on, so that another gets
// it only if this process stops. A queue that is
// not served, because its leader is gone or its consumer is lost, notices within
// 2 × idleBeat and asks again until it is, whatever has happened.
func (q *Queue) Consume(handle func(*Delivery)) (stop func(), err error) {
	first, err := q.pull(handle)
	if err != nil {
		return nil, fmt.Errorf("consume %s: %w", q.name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
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

// AckWait is how long after the last sign of life a delivery goes to another.
func (q *Queue) AckWait() time.Duration { return q.ackWait }

// pulling is one subscription to a queue, and what went wrong with it first.
type pulling struct {
	jetstream.ConsumeContext
	failed chan error
	began  time.Time
}

func (q *Queue) pull(handle func(*Delivery)) (*pulling, error) {
	p := &pulling{failed: make(chan error, 1), began: time.Now()}
	run, err := q.consumer.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err != nil {
			q.conn.log.Error("bus: a queue delivered what is no message of its", "queue", q.name, "error", err)
			return
		}
		q.one.Lock() // what a failed subscription still has, and the next one
		defer q.one.Unlock()
		d := &Delivery{Subject: m.Subject(), Data: m.Data(), Sequence: meta.Sequence.Stream, Times: meta.NumDelivered, msg: m, queue: q}
		q.begin(d)
		handle(d)
	}, jetstream.PullMaxMessages(256), jetstream.PullHeartbeat(idleBeat), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		select {
		case p.failed <- err:
		default:
		}
	}))
	p.ConsumeContext = run
	return p, err
}

// drain has what has arrived handled, and asks for no more.
func (p *pulling) drain() {
	p.Drain()
	select {
	case <-p.Closed():
	case <-time.After(drainTimeout):
	}
}

// serve replaces a subscription that fails by another until ctx ends. nats.go asks
// again by itself after some failures and never after others, such as a consumer
// that was deleted; and a pull that nobody serves it repeats only by heartbeat.
func (q *Queue) serve(ctx context.Context, p *pulling, handle func(*Delivery)) {
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
				q.work()
			case failed = <-p.failed:
			case <-p.Closed():
				failed = errPullEnded
			}
		}
		if time.Since(p.began) > servedFor {
			try = 0
		}
		q.conn.log.Info("bus: a queue is not served; it asks again", "queue", q.name, "error", failed)
		p.Drain() // what has arrived is handled meanwhile
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

// resubscribe subscribes once more, making the consumer anew if it seems to be lost. It
// is nil when ctx ends before that succeeds.
func (q *Queue) resubscribe(ctx context.Context, handle func(*Delivery), try int) *pulling {
	for ; ; try++ {
		if try > 0 { // the first time it is enough to ask whoever leads now
			q.reopen(ctx)
		}
		p, err := q.pull(handle)
		if err == nil {
			return p
		}
		q.conn.log.Warn("bus: a queue cannot be subscribed to; it is tried again", "queue", q.name, "error", err)
		if pause(ctx, try) != nil {
			return nil
		}
	}
}

// reopen takes the consumer anew. If that fails the old one may do.
func (q *Queue) reopen(ctx context.Context) {
	hop, cancel := context.WithTimeout(ctx, 2*idleBeat)
	defer cancel()
	consumer, err := q.open(hop)
	if err != nil {
		q.conn.log.Info("bus: a queue's consumer was not opened; it is tried again", "queue", q.name, "error", err)
		return
	}
	q.consumer = consumer
}

func (q *Queue) begin(d *Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.unacked == nil {
		q.unacked = map[*Delivery]struct{}{}
	}
	q.unacked[d] = struct{}{}
}

func (q *Queue) end(d *Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.unacked, d)
}

// work tells the broker to wait longer before it delivers to another what this
// process still has.
func (q *Queue) work() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for d := range q.unacked {
		_ = d.msg.InProgress()
	}
}

// Done acknowledges: the effects are there. A lost acknowledgement brings the
// message again.
func (d *Delivery) Done() {
	d.queue.end(d)
	_ = d.msg.Ack()
}

// Again has the message delivered again after a while.
func (d *Delivery) Again(after time.Duration) {
	d.queue.end(d)
	_ = d.msg.NakWithDelay(after)
}

// Refuse says that the message is none that could ever be handled.
func (d *Delivery) Refuse() {
	d.queue.end(d)
	_ = d.msg.Term()
}
