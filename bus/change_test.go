package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// Each of several concurrent callers gets the revision of its own write. An edit that stores nothing, or
// fails, leaves the value unchanged.
func TestConcurrentChangesLoseNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := cluster(t, ctx, 1, 1).Sessions
	const writers, each = 10, 10
	revisions := make(chan uint64, writers*each)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				_, revision, err := bus.Change(ctx, b, "session.S", func(s *schemas.Session, found bool) (bus.Edit, error) {
					if !found {
						*s = schemas.Session{Type: schemas.TypeSession, SessionID: "S"}
					}
					s.User += fmt.Sprintf("%d.%d ", w, i)
					return bus.Edit{Store: true}, nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				revisions <- revision
			}
		})
	}
	wg.Wait()
	close(revisions)
	distinct := map[uint64]bool{}
	for r := range revisions {
		distinct[r] = true
	}
	require.Len(t, distinct, writers*each)
	leave := func(s *schemas.Session, found bool) (bus.Edit, error) {
		require.True(t, found)
		return bus.Edit{}, nil
	}
	s, newest, err := bus.Change(ctx, b, "session.S", leave)
	require.NoError(t, err)
	for w := range writers {
		for i := range each {
			require.Contains(t, s.User, fmt.Sprintf("%d.%d ", w, i))
		}
	}

	refused := errors.New("no")
	_, _, err = bus.Change(ctx, b, "session.S", func(s *schemas.Session, _ bool) (bus.Edit, error) {
		s.User = "other"
		return bus.Edit{Store: true}, refused
	})
	require.ErrorIs(t, err, refused)
	again, revision, err := bus.Change(ctx, b, "session.S", leave)
	require.NoError(t, err)
	require.Equal(t, s, again)
	require.Equal(t, newest, revision)

	remove := func(*schemas.Session, bool) (bus.Edit, error) { return bus.Edit{Remove: true}, nil }
	for range 2 { // the key is already gone at the second removal
		_, _, err = bus.Change(ctx, b, "session.S", remove)
		require.NoError(t, err)
	}
	_, err = b.Get(ctx, "session.S", &s)
	require.ErrorIs(t, err, bus.ErrNotFound)
}
