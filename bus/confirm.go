package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// confirmedKey prefixes the keys of the writes that confirm readings.
const confirmedKey = "confirmed."

// Confirm returns nil if key was still at revision at some moment after the call,
// by the word of a majority of the servers; ErrMoved if it was not. A reading alone
// is no such word: a server that was the leader, and slept while another was
// elected, answers readings with what was true before. So this writes to the same
// stream on the condition that the key has not changed, which only the true leader
// can store. All that wait for the same key share one write. A bucket of one replica
// has one server, whose reading is enough.
func (b *Bucket) Confirm(ctx context.Context, key string, revision uint64) error {
	if b.stream.CachedInfo().Config.Replicas <= 1 {
		now, err := b.get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if now.revision != revision {
			return ErrMoved
		}
		return nil
	}
	return b.confirming.do(ctx, fmt.Sprintf("%s@%d", key, revision), func(ctx context.Context) error {
		return b.writeIf(ctx, key, revision)
	})
}

// writeIf stores a message of no meaning if key is at revision.
func (b *Bucket) writeIf(ctx context.Context, key string, revision uint64) error {
	msg := nats.NewMsg(b.prefix + confirmedKey + b.confirming.id)
	ttl(msg.Header, time.Hour)
	for try := 0; ; try++ {
		hop, cancel := context.WithTimeout(ctx, hopTimeout)
		_, err := b.conn.js.PublishMsg(hop, msg, jetstream.WithExpectLastSequenceForSubject(revision, b.prefix+key), jetstream.WithRetryAttempts(0))
		cancel()
		switch {
		case err == nil:
			return nil
		case isConflict(err): // or another write to the key is on its way
			now, rerr := b.get(ctx, key)
			if rerr != nil && !errors.Is(rerr, ErrNotFound) {
				return rerr
			}
			if now.revision != revision {
				return ErrMoved
			}
		case isPermanent(err):
			return fmt.Errorf("confirm %s: %w", key, err)
		}
		if pause(ctx, try) != nil {
			return fmt.Errorf("confirm %s: %w (%v)", key, ErrUnknown, err)
		}
	}
}

// shared runs one action for all that wait for it: a caller gets the result of an
// action that began after its call.
type shared struct {
	id string // of this process, among those that write to the same stream

	mu            sync.Mutex
	running, next map[string]*action
}

type action struct {
	done chan struct{}
	err  error // before done closes
}

func newShared() *shared {
	return &shared{id: NewID(), running: map[string]*action{}, next: map[string]*action{}}
}

func (s *shared) do(ctx context.Context, key string, f func(context.Context) error) error {
	s.mu.Lock()
	a := s.next[key]
	if a == nil {
		a = &action{done: make(chan struct{})}
		s.next[key] = a
		go s.run(key, a, s.running[key], f)
	}
	s.mu.Unlock()
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return fmt.Errorf("confirm %s: %w", key, ctx.Err())
	}
}

// run begins once the action before it has ended; those that come from then on are
// the next one's.
func (s *shared) run(key string, a, before *action, f func(context.Context) error) {
	if before != nil {
		<-before.done
	}
	s.mu.Lock()
	delete(s.next, key)
	s.running[key] = a
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*hopTimeout)
	a.err = f(ctx)
	cancel()
	s.mu.Lock()
	if s.running[key] == a {
		delete(s.running, key)
	}
	s.mu.Unlock()
	close(a.done)
}
