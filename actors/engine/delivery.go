package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nodbus/nod/bus"
)

// deliveryJob handles a message of a queue in a lane. After a failure or a panic, the queue
// delivers the message again after a pause.
type deliveryJob struct {
	*bus.Delivery
	log *slog.Logger
	run func(context.Context) error
}

func (d deliveryJob) Run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := d.run(ctx); err != nil {
		if !errors.Is(err, errRearmed) {
			d.log.Warn("engine: a change of a record was not handled; trying again", "subject", d.Subject, "times", d.Times, "error", err)
		}
		d.Again(retryAfter(d.Times))
		return
	}
	d.Done()
}

func (d deliveryJob) Failed(any) { d.Again(retryAfter(d.Times)) }

// retryAfter returns the pause before a message is delivered again: 200 ms, doubled after each
// delivery, at most a minute.
func retryAfter(times uint64) time.Duration {
	return min(100*time.Millisecond<<min(times, 10), time.Minute)
}
