package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// countedSession is an openCounts for one session. The test sets the number of the session's
// questions, and countedSession records how often they were counted.
type countedSession struct {
	openCounts
	watches sync.WaitGroup

	lock                     sync.Mutex // guards the fields below, which the goroutines of watch use too
	open, counts, dispersals int
	err                      error
}

func (c *countedSession) sees(f func()) {
	c.lock.Lock()
	defer c.lock.Unlock()
	f()
}

func newCountedSession(t *testing.T, open, limit int) *countedSession {
	c := &countedSession{open: open}
	ctx, cancel := context.WithCancel(t.Context())
	c.count = func(context.Context, string) (n int, err error) {
		c.sees(func() { c.counts++; n, err = c.open, c.err })
		return n, err
	}
	c.limit = func() int { return limit }
	c.shrank = func(context.Context, string) { c.sees(func() { c.dispersals++ }) }
	c.start = func(f func(context.Context)) { c.watches.Go(func() { f(ctx) }) }
	t.Cleanup(func() { cancel(); c.watches.Wait() })
	return c
}

func (c *countedSession) asks(t *testing.T) int {
	n, err := c.of(t.Context(), "S")
	require.NoError(t, err)
	c.add("S")
	c.sees(func() { c.open++ })
	return n
}

// Each request to a session with few questions counts the questions. In a session with many questions,
// all requests within a second share one count. New questions of this engine are added to the shared
// count at once, and those of other engines after a second.
func TestTheCountOfALargeSessionIsCachedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCountedSession(t, cacheFrom-2, 10)
		for want := cacheFrom - 2; want < cacheFrom+1000; want++ {
			require.Equal(t, want, c.asks(t))
		}
		c.sees(func() {
			require.Equal(t, 3, c.counts) // two counts of the small session, and one of the large session
			c.open += 5000                // another engine adds questions
		})
		time.Sleep(countedFor)
		synctest.Wait()
		require.Equal(t, cacheFrom+6000, c.asks(t))
		c.sees(func() { require.Equal(t, 4, c.counts) })
		time.Sleep(2 * countedFor)
		synctest.Wait()
		c.mu.Lock()
		require.Empty(t, c.by) // without requests, the count is dropped
		c.mu.Unlock()
		c.sees(func() {
			require.Zero(t, c.dispersals)
			require.Equal(t, 5, c.counts)
		})
	})
}

// After a cached count was used, shrank is called within a second if the session has become small or
// cannot be counted.
func TestShrankIsCalledOnceALargeSessionIsSmall(t *testing.T) {
	for name, err := range map[string]error{"small": nil, "not counted": errors.New("no leader")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCountedSession(t, cacheFrom, 10)
				c.asks(t)
				c.sees(func() { c.open = 0 }) // other engines have ended the questions
				require.Greater(t, c.asks(t), 10)
				c.sees(func() { c.err = err })
				time.Sleep(countedFor)
				synctest.Wait()
				c.sees(func() {
					require.Equal(t, 1, c.dispersals)
					c.err = nil
				})
				require.Equal(t, 1, c.asks(t))
			})
		})
	}
}

// A count near the number of questions that phones show is not cached, because a cached count misses
// the questions that other engines add and end.
func TestACountNearTheLimitIsNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCountedSession(t, cacheFrom, cacheFrom)
		c.asks(t)
		c.asks(t)
		c.sees(func() { require.Equal(t, 2, c.counts) })
	})
}
