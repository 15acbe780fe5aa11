package connector

import (
	"context"
	"sync"
	"time"

	"github.com/nodbus/nod/schemas"
)

const (
	// leftoversEvery is how often a worker looks for decided requests that are shown as
	// open.
	leftoversEvery = 10 * time.Minute
	// leftoversPage is how many messages one call looks at; few of them are left over.
	leftoversPage = 1000
)

// settling settles what was left behind, now and then again: live buttons under a
// decided request, whose outcome got lost with a queue or was given up amid a long
// outage, or whose worker died.
func (w *Worker) settling(ctx context.Context) {
	tick := time.NewTicker(leftoversEvery)
	defer tick.Stop()
	for {
		if err := w.settleLeftovers(ctx); err != nil && ctx.Err() == nil {
			w.log.Info("connector: what is left unsettled was not read to its end; it is read again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// settleLeftovers does a page after the other, each through the lanes of its
// recipients: people's own prompts come in between.
func (w *Worker) settleLeftovers(ctx context.Context) error {
	for after := ""; ; {
		page, err := w.desk.unsettled(ctx, after)
		if err != nil {
			return err
		}
		var jobs sync.WaitGroup
		for _, p := range page.Prompts {
			jobs.Add(1)
			w.send(&p, leftover{w.carry(p), jobs.Done})
		}
		jobs.Wait()
		if after = page.Next; after == "" || ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// leftover is an outcome that no queue holds, as a job. It is tried once, and found
// again by the next look.
type leftover struct {
	carry
	done func()
}

func (l leftover) Run(ctx context.Context) {
	defer l.done()
	ctx, cancel := context.WithTimeout(ctx, carryTimeout)
	defer cancel()
	if err := l.carry.carry(ctx); err != nil {
		l.log.Info("connector: an outcome is not shown yet", "key", l.prompt.Key(), "error", err)
	}
}

func (leftover) Failed(any) {}

// unsettled is a page of what workers of the connector may have shown as open and is
// decided.
func (d *Desk) unsettled(ctx context.Context, after string) (schemas.Page, error) {
	var page schemas.Page
	err := d.conn.CallInto(ctx, schemas.QuerySubject(d.connector, schemas.QueryUnsettled), schemas.Query{Type: schemas.TypeQuery, After: after, Limit: leftoversPage}, &page)
	return page, err
}
