package engine

import (
	"context"
	"sync"
	"time"
)

const (
	// knownKept bounds the number of keys in a cache. knownFor is the age at which a value is read
	// again even without a reported change, because a watch can stop without an error, for example if
	// its stream has lost its newest messages.
	knownKept = 16384
	knownFor  = 15 * time.Second
)

// watchedCache caches values of a bucket. A value is current until its key changes or the value is
// older than knownFor. The broker reports a change a moment late, so permissions are confirmed at the
// store before they allow a request. Old values are kept, so that settings and freezes stay in force if
// the store cannot be read.
type watchedCache[T any] struct {
	// read reads a key from the store. It gets the cached reading, or nil.
	read func(ctx context.Context, key string, last *reading[T]) (T, uint64, error)

	mu     sync.Mutex
	slots  map[string]*cacheSlot[T]
	seen   uint64    // the newest revision of the bucket that the broker has reported
	unsure time.Time // the broker's reports of changes may be lost until this time
}

// reading is a value from the store, which the engine began to read at the time began.
type reading[T any] struct {
	value    T
	revision uint64
	began    time.Time
}

type cacheSlot[T any] struct {
	last    *reading[T] // the newest reading; nil before the first reading
	current bool
	changes uint64 // counts the calls of outdate, so that the method keep notices a change during a read
}

// last returns the newest reading of a key, of any age, or nil.
func (c *watchedCache[T]) last(key string) *reading[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.slots[key]; s != nil {
		return s.last
	}
	return nil
}

// current returns the cached reading of a key, and whether it is current.
func (c *watchedCache[T]) current(key string) (reading[T], bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slots[key]
	if s == nil || !s.current || time.Since(s.last.began) >= knownFor {
		return reading[T]{}, false
	}
	return *s.last, true
}

// get returns the current reading of a key, from the cache or from the store.
func (c *watchedCache[T]) get(ctx context.Context, key string) (reading[T], error) {
	if r, ok := c.current(key); ok {
		return r, nil
	}
	return c.renew(ctx, key)
}

// renew reads a key from the store into the cache. After a failure the cached reading stays. If the key
// does not exist, the error is bus.ErrNotFound, and the returned reading contains the revision at which
// the key can be created.
func (c *watchedCache[T]) renew(ctx context.Context, key string) (reading[T], error) {
	s, last, changes := c.slot(key)
	r := reading[T]{began: time.Now()}
	var err error
	if r.value, r.revision, err = c.read(ctx, key, last); err == nil {
		c.keep(s, &r, changes)
	}
	return r, err
}

func (c *watchedCache[T]) slot(key string) (s *cacheSlot[T], last *reading[T], changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s = c.slots[key]; s == nil {
		if c.slots == nil || len(c.slots) >= knownKept {
			c.slots = map[string]*cacheSlot[T]{}
		}
		s = &cacheSlot[T]{}
		c.slots[key] = s
	}
	return s, s.last, s.changes
}

// keep caches the reading r, unless a newer reading is cached, because a server that no longer leads
// may return an older revision. If r began at least staleAfter later than the cached reading, r
// replaces even a newer revision, because the stream must have lost its newest messages. r is current
// if its key has not changed since r began.
func (c *watchedCache[T]) keep(s *cacheSlot[T], r *reading[T], changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := s.last; old != nil && r.began.Sub(old.began) < staleAfter {
		if r.revision < old.revision || r.revision == old.revision && r.began.Before(old.began) {
			return
		}
	}
	s.last, s.current = r, s.changes == changes && !time.Now().Before(c.unsure)
}

func (c *watchedCache[T]) changed(key string, revision uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = max(c.seen, revision)
	if s := c.slots[key]; s != nil && (s.last == nil || s.last.revision < revision) {
		s.outdate()
	}
}

// forget marks the value of a key as not current. This engine calls it after its own change of the key,
// before the broker reports the change.
func (c *watchedCache[T]) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.slots[key]; s != nil {
		s.outdate()
	}
}

// missed marks all values as not current, because reports of changes may have been lost. More reports
// may be lost during the time staleAfter from now.
func (c *watchedCache[T]) missed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsure = time.Now().Add(staleAfter)
	for _, s := range c.slots {
		s.outdate()
	}
}

func (s *cacheSlot[T]) outdate() { s.current, s.changes = false, s.changes+1 }

func (c *watchedCache[T]) newest() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}
