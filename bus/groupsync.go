package bus

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
)

// These errors end all waits for a sync. They are permanent, and leave unknown whether a write is on
// disk.
var (
	errDisk         = fmt.Errorf("%w: the disk failed", ErrUnknown)
	errServerClosed = fmt.Errorf("%w: the embedded NATS server is closed", ErrUnknown)
)

// groupSync makes the messages of one stream durable in groups. The server acknowledges a message once
// the kernel has it, and one sync to disk then serves all waiting callers. A nil groupSync never waits.
// It stands for a stream that may lose messages, that the server syncs itself, or that another process
// serves.
type groupSync struct {
	store  syncedStore
	failed func(error) // called once, with the error of the first failed sync

	synced atomic.Uint64 // all messages up to this sequence are on disk

	mu      sync.Mutex
	current *syncRound // the round in progress; nil if there is none
	next    *syncRound // the round after current; nil if no caller waits for it
	err     error      // after a failure, every wait gets this error: errDisk or errServerClosed
	end     chan struct{}
}

type syncedStore interface {
	// last returns the sequence of the last stored message.
	last() uint64
	// sync returns once all data that was stored before the call is on disk. After an error, the kernel
	// may have dropped data, so the success of a later sync proves nothing.
	sync() error
	// replacing prepares for a message that replaces the message at the given revision. The caller calls
	// it before it sends the message, and afterwards calls the returned function sent. The argument
	// unknown of sent means that the server may still store the message later.
	replacing(revision uint64, size int) (sent func(unknown bool))
}

type syncRound struct {
	through uint64 // the round's sync covers all messages up to this sequence; 0 until the sync begins
	done    chan struct{}
	err     error // the round's error; set before done is closed
}

func newGroupSync(store syncedStore, failed func(error)) *groupSync {
	return &groupSync{store: store, failed: failed, end: make(chan struct{})}
}

// wait returns once the stored message with this sequence, and all earlier messages, are on disk. After
// an error a power cut may still lose them, so the caller must not report success.
func (g *groupSync) wait(ctx context.Context, sequence uint64) error {
	if g == nil || sequence <= g.synced.Load() {
		return nil
	}
	r := g.join(sequence)
	select {
	case <-r.done:
		return r.err
	case <-g.end:
		return g.reason()
	case <-ctx.Done():
		return fmt.Errorf("sync to disk: %w (%w)", ErrUnknown, ctx.Err())
	}
}

// replacing prepares the block files for a message that replaces the message at the given revision.
// Revision 0 means that the message replaces none.
func (g *groupSync) replacing(revision uint64, size int) (sent func(unknown bool)) {
	if g == nil || revision == 0 {
		return func(bool) {}
	}
	return g.store.replacing(revision, size)
}

func (g *groupSync) check() {
	if g != nil {
		g.join(math.MaxUint64) // the method join starts a sync; if that sync fails, g.failed reports its error
	}
}

// join returns the first round that has begun, or will begin, after the message was stored. If no round
// is in progress, join starts one. After an error every round fails.
func (g *groupSync) join(sequence uint64) *syncRound {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.current != nil && sequence <= g.current.through {
		return g.current
	}
	if g.next == nil {
		g.next = &syncRound{done: make(chan struct{})}
	}
	r := g.next
	if g.current == nil {
		g.current, g.next = r, nil
		go g.run(r)
	}
	return r
}

func (g *groupSync) run(r *syncRound) {
	for r != nil {
		last := g.store.last()
		g.mu.Lock()
		r.through = last
		g.mu.Unlock()
		r = g.finish(r, g.store.sync())
	}
}

// finish ends a round and returns the next round, or nil if there is none.
func (g *groupSync) finish(r *syncRound, err error) *syncRound {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil { // once the server has stopped, a store reports success without a sync
		err = g.err
	} else if err != nil {
		g.stop(errDisk)
		g.failed(err)
		err = errDisk
	}
	r.err = err
	if err == nil {
		g.synced.Store(r.through)
	}
	close(r.done)
	g.current, g.next = g.next, nil
	return g.current
}

// stop ends all waits with the given error. The caller holds mu.
func (g *groupSync) stop(err error) {
	g.err = err
	close(g.end)
}

// close ends all waits with an error, because the server stops.
func (g *groupSync) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.stop(errServerClosed)
	}
}

func (g *groupSync) reason() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}
