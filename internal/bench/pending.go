package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/nodbus/nod/schemas"
)

// heap returns how many bytes the live objects of this process have.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the first collection runs finalizers, such as those of connections, and the second frees their objects
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// pages measures the listing of n pending requests: the time until the first page, and the median time
// of each further page.
func (r *run) pages(ctx context.Context, n int) error {
	r.Progress(fmt.Sprintf("a list of %s pending", thousands(n)))
	var took []time.Duration
	listed, last := 0, time.Now()
	err := r.nod.desk.EachPending(ctx, schemas.Query{}, func(page []schemas.Prompt) error {
		took, last = append(took, time.Since(last)), time.Now()
		listed += len(page)
		return nil
	})
	if err == nil && listed < n {
		err = fmt.Errorf("the list has %d of %d pending requests", listed, n)
	}
	if err != nil {
		return err
	}
	r.add(nodRow(fmt.Sprintf("list of %s pending, first page", thousands(n)), "µs", micros(took[0])))
	if next := took[1:]; len(next) > 0 {
		slices.Sort(next)
		r.add(nodRow(fmt.Sprintf("list of %s pending, each next page", thousands(n)), "µs", micros(next[len(next)/2])))
	}
	return nil
}

// freeze measures how many pending requests a freeze denies per second. It measures until none of n
// pending requests is left.
func (r *run) freeze(ctx context.Context, n int) error {
	r.Progress(fmt.Sprintf("a freeze of %s pending", thousands(n)))
	began := time.Now()
	if _, err := r.nod.desk.Freeze(ctx, schemas.FreezeRequest{From: schemas.From{UserID: "ann"}}); err != nil {
		return err
	}
	inForce := time.Since(began)
	some := errors.New("some are pending")
	for {
		err := r.nod.desk.EachPending(ctx, schemas.Query{Limit: 1}, func(page []schemas.Prompt) error {
			if len(page) > 0 {
				return some
			}
			return nil
		})
		if err == nil {
			break
		}
		if !errors.Is(err, some) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
	r.add(nodRow(fmt.Sprintf("freeze of %s pending, until nod replies", thousands(n)), "µs", micros(inForce)))
	r.add(nodRow(fmt.Sprintf("freeze of %s pending, requests denied", thousands(n)), "/s", float64(n)/time.Since(began).Seconds()))
	return nil
}
