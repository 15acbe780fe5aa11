package connector

import (
	"context"
	"sync"
	"time"

	"github.com/nodbus/nod/schemas"
)

const (
	leftoversEvery = 10 * time.Minute
	// leftoversPage is the number of shown messages that one call checks.
	leftoversPage = 1000
)

// sweepLeftovers looks for decided requests whose messages still have live buttons, and shows their
// outcomes. It does so once in each interval leftoversEvery. Such messages are left if the queue was
// lost, if a worker died, or if the channel failed until a worker gave up.
func (w *Worker) sweepLeftovers(ctx context.Context) {
	tick := time.NewTicker(leftoversEvery)
	defer tick.Stop()
	for {
		if err := w.showLeftovers(ctx); err != nil && ctx.Err() == nil {
			w.log.Info("connector: the search for decided requests that are shown as pending failed; trying again later", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// showLeftovers shows the missing outcomes, one page after another. Each outcome is a job in its
// recipient's lane, so that new prompts need not wait until all outcomes are shown.
func (w *Worker) showLeftovers(ctx context.Context) error {
	for after := ""; ; {
		page, err := w.desk.unsettled(ctx, after)
		if err != nil {
			return err
		}
		var jobs sync.WaitGroup
		for _, p := range page.Prompts {
			jobs.Add(1)
			w.send(&p, leftoverJob{w.newAttempt(p), jobs.Done})
		}
		jobs.Wait()
		if after = page.Next; after == "" || ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// leftoverJob tries once to show an outcome that the queue no longer has. After a failure, the
// next sweep finds the request again.
type leftoverJob struct {
	showAttempt
	done func()
}

func (l leftoverJob) Run(ctx context.Context) {
	defer l.done()
	ctx, cancel := context.WithTimeout(ctx, carryTimeout)
	defer cancel()
	if err := l.deliver(ctx); err != nil {
		l.log.Info("connector: an outcome is not shown yet", "key", l.prompt.Key(), "error", err)
	}
}

func (leftoverJob) Failed(any) {}

// unsettled returns a page of decided requests whose messages may still have live buttons. The
// parameter after is the field Next of the previous page, or empty for the first page.
func (d *Desk) unsettled(ctx context.Context, after string) (schemas.Page, error) {
	var page schemas.Page
	err := d.conn.CallInto(ctx, schemas.QuerySubject(d.connector, schemas.QueryUnsettled), schemas.Query{Type: schemas.TypeQuery, After: after, Limit: leftoversPage}, &page)
	return page, err
}
