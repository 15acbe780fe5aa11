package engine

import (
	"context"
	"sync"
	"time"
)

const (
	// cacheFrom is the smallest number of pending questions for which a session's count is
	// cached. The server lists the questions to count them, which is slow only for many
	// questions.
	cacheFrom = 128
	// countedFor is the age at which a cached count is read again from the server. countWithin is the
	// time limit for reading a count.
	countedFor  = time.Second
	countWithin = 5 * time.Second
)

// openCounts caches the number of pending questions of each session that has many. Without the
// cache, the server would list these questions for every new request. A cached count includes
// questions of this engine at once, and other changes after at most countedFor.
//
// A count is cached only if it is far above the number of questions that phones and chats show
// at a time, so an old count never shows a question too early. An old count may delay a
// question until the engine calls shrank.
type openCounts struct {
	// count reads the number of a session's pending questions from the server.
	count func(ctx context.Context, session string) (int, error)
	// limit returns how many of a session's questions phones and chats show at a time.
	limit func() int
	// shrank is called if a cached count was used and the next count is small or fails, because
	// requests may have used a count that was too high.
	shrank func(ctx context.Context, session string)
	start  func(func(context.Context))

	mu sync.Mutex
	by map[string]*openCount
}

// openCount is the cached count of a session with many questions; the method watch keeps it up
// to date.
type openCount struct {
	n    int
	used bool // whether a request has used the count since the last reading from the server
}

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
	if c := o.by[session]; c != nil {
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

func (o *openCounts) add(session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.by[session]; c != nil {
		c.n++
	}
}

// watch counts a session's questions every countedFor. It drops the count and returns if no
// request has used the count since the last counting, if few questions are left, or after an
// error.
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
