package engine

import (
	"context"
	"sync"
	"time"
)

const (
	// A session's count is remembered if it has crowdSize pending questions or more: to
	// count them, the server lists them all.
	crowdSize = 128
	// countedFor is the time after which a remembered count is taken again, and
	// countWithin the time limit for that.
	countedFor  = time.Second
	countWithin = 5 * time.Second
)

// openCounts remembers the number of pending questions of crowded sessions, so that a new
// request there costs no listing. A remembered count includes the questions that this
// engine has added since, and misses other changes of the last countedFor. It is
// remembered only if it is far above the number that phones show at a time, so that no
// question is shown too early. In a session that has just become small, a question may be
// held back needlessly until dispersed is called.
type openCounts struct {
	// count lists the pending questions of a session.
	count func(ctx context.Context, session string) (int, error)
	// limit is the number of a session's questions that are shown at a time.
	limit func() int
	// dispersed is called if a remembered count was used, and the next count is small or
	// fails.
	dispersed func(ctx context.Context, session string)
	// start runs a function in the background with a context that ends with the engine.
	start func(func(context.Context))

	mu sync.Mutex
	by map[string]*openCount
}

// openCount is the remembered count of a crowded session. watch updates and removes it.
type openCount struct {
	n    int
	used bool // since the last counting
}

// of returns the number of a session's pending questions.
func (o *openCounts) of(ctx context.Context, session string) (int, error) {
	if n, ok := o.remembered(session); ok {
		return n, nil
	}
	n, err := o.count(ctx, session)
	if err == nil && o.crowded(n) {
		o.remember(session, n)
	}
	return n, err
}

func (o *openCounts) crowded(n int) bool { return n >= max(crowdSize, 2*o.limit()) }

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
	if c := o.by[session]; c != nil { // counted by two requests at the same time
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

// watch counts a session's questions every countedFor, while the count is used and the
// session is crowded. Then it forgets the count.
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
		if err != nil || !o.crowded(n) {
			o.forget(session)
			o.dispersed(ctx, session)
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
