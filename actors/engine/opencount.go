package engine

import (
	"context"
	"sync"
	"time"
)

const (
	// cacheFrom is the smallest number of pending questions that is cached for a session:
	// the server counts questions by listing them, which is slow if there are many.
	cacheFrom = 128
	// countedFor is how long a cached count is used before the questions are counted
	// again; countWithin limits the time of that counting.
	countedFor  = time.Second
	countWithin = 5 * time.Second
)

// openCounts caches how many questions are pending in each session that has many of them.
// Without the cache, the server would list these questions for each new request. A cached
// count includes at once the questions that this engine has added. Other changes may be
// missing from it for the duration countedFor.
//
// A count is cached only if it is far above the number of questions that phones and chats show
// at a time, so an outdated count never lets a question be shown too early. If few questions
// are left, an outdated count may hold back a question needlessly, until the engine calls the
// method shrank.
type openCounts struct {
	// count returns the number of a session's pending questions, from the server.
	count func(ctx context.Context, session string) (int, error)
	// limit returns how many of a session's questions phones and chats show at a time.
	limit func() int
	// shrank is called if a cached count was used and the next counting fails or finds
	// that the session is no longer crowded.
	shrank func(ctx context.Context, session string)
	// start runs a function in the background with a context that ends with the engine.
	start func(func(context.Context))

	mu sync.Mutex
	by map[string]*openCount
}

// openCount is the cached count of a crowded session. watch updates and removes it.
type openCount struct {
	n    int
	used bool // the count was used since it was last read from the server
}

// of returns the number of a session's pending questions.
func (o *openCounts) of(ctx context.Context, session string) (int, error) {
	if n, ok := o.remembered(session); ok {
		return n, nil
	}
	n, err := o.count(ctx, session)
	if err == nil && o.isLarge(n) {
		o.remember(session, n)
	}
	return n, err
}

func (o *openCounts) isLarge(n int) bool { return n >= max(cacheFrom, 2*o.limit()) }

func (o *openCounts) remembered(session string) (n int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c, ok := o.by[session]
	if !ok {
		return 0, false
	}
	c.used = true
	return c.n, true
}

func (o *openCounts) remember(session string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.by[session]; c != nil { // two requests have counted the questions at the same time
		c.n = max(c.n, n)
		return
	}
	if o.by == nil {
		o.by = map[string]*openCount{}
	}
	c := &openCount{n: n}
	o.by[session] = c
	o.start(func(ctx context.Context) { o.watch(ctx, session, c) })
}

// add counts a question that this engine has stored.
func (o *openCounts) add(session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.by[session]; c != nil {
		c.n++
	}
}

// watch counts a session's questions every countedFor. It forgets the count and returns if
// the count was not used since the last counting, if the session is no longer crowded, or if
// counting fails.
func (o *openCounts) watch(ctx context.Context, session string, c *openCount) {
	for {
		select {
		case <-time.After(countedFor):
		case <-ctx.Done():
			return
		}
		if o.forgetUnused(session, c) {
			return
		}
		within, cancel := context.WithTimeout(ctx, countWithin)
		n, err := o.count(within, session)
		cancel()
		if err != nil || !o.isLarge(n) {
			o.forget(session)
			o.shrank(ctx, session)
			return
		}
		o.mu.Lock()
		c.n = n
		o.mu.Unlock()
	}
}

// forgetUnused forgets the count if it was not used since the last counting, and reports
// whether it did.
func (o *openCounts) forgetUnused(session string, c *openCount) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c.used {
		c.used = false
		return false
	}
	delete(o.by, session)
	return true
}

func (o *openCounts) forget(session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.by, session)
}
