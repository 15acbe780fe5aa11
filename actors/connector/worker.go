package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/traces"
)

const (
	// renewEvery is how often a worker renews its lease, which lasts 30 s by default.
	renewEvery = 5 * time.Second
	// retryMin and retryMax are the shortest and the longest pause between attempts, unless the
	// channel asks for a longer pause.
	retryMin = 500 * time.Millisecond
	retryMax = time.Minute
	// maxJitter is the longest random addition to a pause.
	maxJitter = 5 * time.Second
)

// Worker runs one carrier and takes the connector's prompts from the queue. It shows the prompts of
// one recipient in order, and the prompts of different recipients in parallel. The worker makes all
// retries, so the carrier needs none. Several workers may share a connector. Only one of them at a
// time shows a prompt, and the prompt's changes are shown in order.
type Worker struct {
	desk    *Desk
	carrier people.Carrier
	log     *slog.Logger
	spans   traces.Writer // nil if nod traces no requests
	id      string
	// renewClaimEvery is the interval at which the worker renews a prompt's claim until the channel
	// replies.
	renewClaimEvery time.Duration
	// recording is the context for storing the handles of sent messages. It ends when Stop returns, and
	// at the latest carryTimeout after Stop was called.
	recording    context.Context
	endRecording context.CancelFunc
	lanes        *actors.Lanes
	turns        turnQueue
	stops        []func()
	tasks        sync.WaitGroup
}

// Work starts a worker. It returns once the worker is registered and receives prompts. After an
// error, no worker runs. The first element of the parameter spans gets the spans of traced requests.
// If it is missing or nil, nothing is traced.
func Work(ctx context.Context, sys *actors.System, conn *bus.Conn, connector string, carrier people.Carrier, log *slog.Logger, spans ...traces.Writer) (*Worker, error) {
	w := &Worker{
		desk: NewDesk(conn, connector), carrier: carrier, log: log.With("connector", connector), id: bus.NewID(),
		lanes: sys.Lanes("connector-" + connector),
	}
	if len(spans) > 0 {
		w.spans = spans[0]
	}
	w.recording, w.endRecording = context.WithCancel(context.Background())
	if err := w.start(ctx, conn); err != nil {
		return nil, errors.Join(err, w.Stop(ctx))
	}
	return w, nil
}

func (w *Worker) start(ctx context.Context, conn *bus.Conn) error {
	if err := w.desk.register(ctx, w.id, false); err != nil {
		return fmt.Errorf("register the connector %s: %w", w.desk.connector, err)
	}
	background, cancel := context.WithCancel(context.Background())
	w.stops = append(w.stops, cancel)
	queue, err := conn.PromptQueue(ctx, w.desk.connector)
	if err != nil {
		return err
	}
	w.renewClaimEvery = queue.AckWait() / 3
	stop, err := queue.Consume(w.accept)
	if err != nil {
		return err
	}
	w.stops = append(w.stops, stop, conn.OnReconnect(func() { w.renew(background) }))
	w.tasks.Go(func() { w.keepLease(background) })
	w.tasks.Go(func() { w.runCarrier(background) })
	w.tasks.Go(func() { w.sweepLeftovers(background) })
	return nil
}

func (w *Worker) keepLease(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.renew(ctx)
		}
	}
}

func (w *Worker) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	if err := w.desk.register(ctx, w.id, false); err != nil && ctx.Err() == nil {
		w.log.Warn("connector: the lease was not renewed; trying again", "error", err)
	}
}

// runCarrier runs the carrier, which receives answers, until ctx ends. After a failure or a panic,
// runCarrier pauses and starts the carrier again.
func (w *Worker) runCarrier(ctx context.Context) {
	for times := uint64(1); ctx.Err() == nil; times++ {
		began := time.Now()
		err := w.runOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > retryMax {
			times = 1
		}
		w.log.Warn("connector: the channel failed; starting it again", "error", err)
		wait := time.NewTimer(backoff(err, times))
		select {
		case <-ctx.Done():
		case <-wait.C:
		}
		wait.Stop()
	}
}

func (w *Worker) runOnce(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return w.carrier.Run(ctx, w.desk)
}

// backoff returns the pause after the given number of failed attempts. The pause doubles from retryMin
// to retryMax. If the channel asks for a longer pause (people.Error.After), backoff returns that.
func backoff(err error, times uint64) time.Duration {
	var e *people.Error
	wait := min(retryMin<<min(times-1, 10), retryMax)
	if errors.As(err, &e) && e.After > wait {
		wait = e.After
	}
	return wait
}

// jitter returns a random addition to a pause, at most a quarter of the pause. Because of the
// addition, prompts that failed at the same time are tried again at different times.
func jitter(wait time.Duration) time.Duration {
	return rand.N(min(wait/4, maxJitter) + 1)
}

// accept passes a prompt to its recipient's lane. It drops every message that is not a prompt for
// this connector.
func (w *Worker) accept(d *bus.Delivery) {
	var p schemas.Prompt
	err := schemas.Decode(d.Data, &p)
	if err != nil || d.Subject != schemas.PromptSubject(w.desk.connector, p.SessionID, p.PendingID) || p.Connector != w.desk.connector {
		w.log.Error("connector: dropped a message that is not a prompt for this connector", "subject", d.Subject, "error", err)
		d.Refuse()
		return
	}
	job := promptJob{w.newAttempt(p), d}
	if w.spans != nil {
		job.trace = d.Trace()
	}
	if needless, found := w.turns.supersede(job); found {
		needless.Done()
		return
	}
	w.send(&p, job)
}

func (w *Worker) send(p *schemas.Prompt, j actors.Job) {
	w.turns.put(p.Recipient, p.SessionID, j)
	w.lanes.Send(p.Recipient, &turnJob{turns: &w.turns, recipient: p.Recipient})
}

// Stop runs the worker's queued jobs, and then ends the worker and its lease. If ctx ends
// first, Stop returns an error.
func (w *Worker) Stop(ctx context.Context) error {
	for _, stop := range w.stops {
		stop()
	}
	defer w.endRecording()
	defer time.AfterFunc(carryTimeout, w.endRecording).Stop()
	w.tasks.Wait()
	err := w.lanes.Stop(ctx)
	if leave := w.desk.register(ctx, w.id, true); leave != nil {
		w.log.Info("connector: the lease was not ended; it expires", "error", leave)
	}
	return err
}
