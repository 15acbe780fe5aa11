// Package bench compares nod with callbacks on bare NATS that do the same work with the same durable
// writes, in one process. `nod bench` and the benchmarks in test/bench use it.
package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Work sends one request in a session, and returns once the decision has arrived.
type Work func(ctx context.Context, session string) error

// Cost is the time and the processor time of some requests.
type Cost struct {
	Each time.Duration // the median time of a request
	Rate float64       // requests per second
	CPU  time.Duration // the processor time of the whole process per request; 0 if unknown
}

// OneByOne sends n requests one after another.
func OneByOne(ctx context.Context, w Work, n int) (Cost, error) {
	times := make([]time.Duration, 0, n)
	began, cpu := time.Now(), CPUTime()
	for range n {
		start := time.Now()
		if err := w(ctx, "bench"); err != nil {
			return Cost{}, err
		}
		times = append(times, time.Since(start))
	}
	return cost(Median(times), n, time.Since(began), CPUTime()-cpu), nil
}

// AtOnce sends n requests from many sessions at the same time. Each session sends one request after
// another.
func AtOnce(ctx context.Context, w Work, sessions, n int) (Cost, error) {
	return atOnce(ctx, w, n, sessions, func(session, _ int) string { return fmt.Sprint("bench", session) })
}

// atOnce sends n requests in all, from several callers at the same time. The function session returns
// the id of the session in which a caller sends a request.
func atOnce(ctx context.Context, w Work, n, callers int, session func(caller, request int) string) (Cost, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	var next atomic.Int64
	times := make([]time.Duration, n)
	began, cpu := time.Now(), CPUTime()
	for caller := range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				start := time.Now()
				if err := w(ctx, session(caller, i)); err != nil {
					cancel(err)
					return
				}
				times[i] = time.Since(start)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return Cost{}, context.Cause(ctx)
	}
	return cost(Median(times), n, time.Since(began), CPUTime()-cpu), nil
}

// untilIdle waits, for a few seconds at most, until the work that follows decisions is done, such as
// writing log entries. Without this wait, the next measurement would include this work.
func untilIdle() {
	const window = 50 * time.Millisecond
	for range 100 {
		before := CPUTime()
		time.Sleep(window)
		if CPUTime()-before < window/20 {
			return
		}
	}
}

func cost(each time.Duration, n int, took, cpu time.Duration) Cost {
	return Cost{each, float64(n) / took.Seconds(), cpu / time.Duration(n)}
}

// Median sorts d and returns its median.
func Median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// medianCost returns the median of each field of several costs.
func medianCost(all []Cost) Cost {
	middle := func(part func(Cost) float64) float64 {
		parts := make([]float64, len(all))
		for i, c := range all {
			parts[i] = part(c)
		}
		slices.Sort(parts)
		return parts[len(parts)/2]
	}
	return Cost{
		Each: time.Duration(middle(func(c Cost) float64 { return float64(c.Each) })),
		Rate: middle(func(c Cost) float64 { return c.Rate }),
		CPU:  time.Duration(middle(func(c Cost) float64 { return float64(c.CPU) })),
	}
}
