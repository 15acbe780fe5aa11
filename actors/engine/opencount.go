package engine

import (
	"context"
	"sync"
	"time"
)

const (
	// crowd is from how many open questions on a session's count is remembered. For a
	// count the server lists them all, which takes the longer the more there are.
	crowd = 128
	// countedFor is how long a remembered count is used before it is taken again, and
	// countWithin how long that may take.
	countedFor  = time.Second
	countWithin = 5 * time.Second
)

// openCounts remembers how many questions crowded sessions have open, so that each ask
// in them costs no list. A remembered count includes the questions that this engine
// adds, and is otherwise old by countedFor and the time that counting takes. It is
// remembered only if it is far above the number that phones are shown, so that nothing
// is shown too early; a question of a session that has just become small may be held
// back without need, until dispersed is called.
type openCounts struct {
	// count lists the open questions of a session.
	count func(ctx context.Context, session string) (int, error)
	// limit is how many of a session are shown at a time.
	limit func() int
	// dispersed is called if a session's questions were judged by a remembered count
	// and it turns out to be small, or cannot be counted.
	dispersed func(ctx context.Context, session string)
	// start runs a function in the background, until its context ends.
	start func(func(context.Context))

	mu sync.Mutex
	by map[string]*openCount
}

// openCount is a crowded session's. It is forgotten by the watch that belongs to it.
type openCount struct {
	n    int
	used bool // since it was taken
}

// of is how many questions a session has open.
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

func (o *openCounts) crowded(n int) bool { return n >= max(crowd, 2*o.limit()) }

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
	if c := o.by[session]; c != nil { // another ask has counted at the same time
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

// add notes that this engine has stored one more question of a session.
func (o *openCounts) add(session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.by[session]; c != nil {
		c.n++
	}
}

// watch takes a session's count again and again for as long as it is used and the
// session is crowded, and then forgets it.
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

// forgetUnused forgets a count that was not used since it was taken.
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
