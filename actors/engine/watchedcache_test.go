package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func cacheReading[T any](c *watchedCache[T], key string, r reading[T]) {
	s, _, changes := c.slot(key)
	c.keep(s, &r, changes)
}

// storeOf returns a cache whose reads of the store return the given readings, one after another. The
// function in a reading, if any, is called during the read.
func storeOf(readings ...storedReading) *watchedCache[string] {
	c := &watchedCache[string]{}
	c.read = func(context.Context, string, *reading[string]) (string, uint64, error) {
		next := readings[0]
		readings = readings[1:]
		if next.meanwhile != nil {
			next.meanwhile(c)
		}
		return next.value, next.revision, next.err
	}
	return c
}

type storedReading struct {
	value     string
	revision  uint64
	err       error
	meanwhile func(*watchedCache[string])
}

// A key that this or another engine changes during a read is not current.
func TestAKeyThatChangesDuringItsReadingIsNotCached(t *testing.T) {
	for name, change := range map[string]func(*watchedCache[string]){
		"by this engine":       func(c *watchedCache[string]) { c.forget("session.S") },
		"by another":           func(c *watchedCache[string]) { c.changed("session.S", 7) },
		"reports may be lost":  func(c *watchedCache[string]) { c.missed() },
		"the cache is emptied": func(c *watchedCache[string]) { c.slots = nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := storeOf(storedReading{"old", 6, nil, change})
			r, err := c.get(t.Context(), "session.S")
			require.NoError(t, err)
			require.Equal(t, "old", r.value)
			_, ok := c.current("session.S")
			require.False(t, ok)
		})
	}
	c := storeOf(storedReading{"older", 6, nil, func(c *watchedCache[string]) {
		time.Sleep(time.Microsecond) // even on a coarse clock, the newer reading must be later
		cacheReading(c, "session.S", reading[string]{"newer", 6, time.Now()})
	}})
	_, err := c.get(t.Context(), "session.S")
	require.NoError(t, err)
	r, ok := c.current("session.S")
	require.True(t, ok)
	require.Equal(t, "newer", r.value)
	c.changed("session.other", 8)
	c.changed("session.S", 6) // the cached reading has revision 6 already
	_, ok = c.current("session.S")
	require.True(t, ok)
	require.EqualValues(t, 8, c.newest())
	c.forget("session.S")
	_, ok = c.current("session.S")
	require.False(t, ok)
	require.Equal(t, "newer", c.last("session.S").value)
}

// If a watch stops without an error, each value stays current for knownFor after the start of its read.
func TestACachedValueExpiresEvenIfTheWatchStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := storeOf(
			storedReading{meanwhile: func(*watchedCache[string]) { time.Sleep(time.Second) }},
			storedReading{},
		)
		knows := func(key string) bool {
			_, ok := c.current(key)
			return ok
		}
		_, err := c.get(t.Context(), "session.S")
		require.NoError(t, err)
		time.Sleep(knownFor / 2)
		_, err = c.get(t.Context(), "lock.S")
		require.NoError(t, err)
		time.Sleep(knownFor/2 - time.Second - time.Nanosecond)
		require.True(t, knows("session.S"))
		time.Sleep(time.Nanosecond)
		require.False(t, knows("session.S"))
		require.True(t, knows("lock.S"))
	})
}

// A server that no longer leads may return an older version, which replaces no newer version. If a
// server still returns the older version after staleAfter, the stream has lost the newer version, and
// the older version counts. A failed read replaces nothing.
func TestAnOlderReadingReplacesNoNewerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := storeOf(
			storedReading{value: "new", revision: 7},
			storedReading{value: "old", revision: 5},
			storedReading{err: errors.New("unreachable")},
			storedReading{value: "old", revision: 5},
		)
		inForce := func() string {
			_, _ = c.renew(t.Context(), "frozen")
			return c.last("frozen").value
		}
		require.Equal(t, "new", inForce())
		time.Sleep(staleAfter - time.Nanosecond)
		require.Equal(t, "new", inForce())
		require.Equal(t, "new", inForce())
		time.Sleep(time.Nanosecond)
		require.Equal(t, "old", inForce())
	})
}
