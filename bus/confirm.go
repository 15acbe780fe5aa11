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

// confirmedKey is the prefix of the keys that Confirm writes.
const confirmedKey = "confirmed."

// Confirm returns nil if a majority of the servers confirms, after the call, that the key is at the
// given revision. It returns ErrMoved if the key is at another revision. A read cannot prove the
// revision, because a former leader that was suspended during an election still answers reads, with
// old values. Confirm therefore stores a message in the same stream on the condition that the key is
// unchanged, which only the current leader can do. Concurrent calls for the same key and revision
// share one write. In a bucket with a single replica, Confirm only reads.
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
	return b.confirms.do(ctx, fmt.Sprintf("%s@%d", key, revision), func(ctx context.Context) error {
		return b.writeIf(ctx, key, revision)
	})
}

// writeIf stores an empty message under a key of its own. The server accepts the message only if the
// given key is at the given revision. Otherwise the error is ErrMoved.
func (b *Bucket) writeIf(ctx context.Context, key string, revision uint64) error {
	msg := nats.NewMsg(b.prefix + confirmedKey + b.confirms.id)
	ttl(msg.Header, time.Hour)
	for try := 0; ; try++ {
		_, err := b.publish(ctx, msg, 0, jetstream.WithExpectLastSequenceForSubject(revision, b.prefix+key))
		switch {
		case err == nil:
			return nil
		case isConflict(err): // either the key is at another revision, or another write to the key is in progress
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

// actionGroup runs one action for all concurrent callers with the same key. Each caller gets the result
// of an action that began after the caller's call.
type actionGroup struct {
	id string // distinguishes this process from other writers to the stream

	mu            sync.Mutex
	running, next map[string]*action
}

type action struct {
	done chan struct{}
	err  error // the action's error; set before done is closed
}

func newActionGroup() *actionGroup {
	return &actionGroup{id: NewID(), running: map[string]*action{}, next: map[string]*action{}}
}

func (s *actionGroup) do(ctx context.Context, key string, f func(context.Context) error) error {
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

// run calls f after the previous action for the key has ended. If a caller comes while f runs, it
// waits for the next action.
func (s *actionGroup) run(key string, a, before *action, f func(context.Context) error) {
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
