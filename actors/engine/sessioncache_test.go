package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// A key that changes while it is read is not cached, whether this engine or another has
// changed it.
func TestWhatChangesWhileItIsReadIsNotKept(t *testing.T) {
	for name, change := range map[string]func(*sessionCache){
		"by this engine":    func(k *sessionCache) { k.forget("session.S") },
		"by another":        func(k *sessionCache) { k.changed("session.S", 7) },
		"nobody could tell": func(k *sessionCache) { k.missed() },
	} {
		t.Run(name, func(t *testing.T) {
			var k sessionCache
			keep := k.reading("session.S")
			change(&k)
			keep(schemas.Session{Agent: "old"})
			_, ok := k.session("session.S")
			require.False(t, ok)
		})
	}
	var k sessionCache
	first, second := k.reading("session.S"), k.reading("session.S")
	second(schemas.Session{Agent: "newer"})
	first(schemas.Session{Agent: "older"})
	s, ok := k.session("session.S")
	require.True(t, ok)
	require.Equal(t, "newer", s.Agent)
	k.changed("session.other", 8)
	_, ok = k.session("session.S")
	require.True(t, ok)
	require.EqualValues(t, 8, k.newest())
	k.forget("session.S")
	_, ok = k.session("session.S")
	require.False(t, ok)
}

// If a watch stops without an error, each entry counts for knownFor after its reading
// began.
func TestWhatIsKnownIsReadAgainWhateverTheWatchSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k sessionCache
		knows := func(key string) bool {
			_, ok := k.session(key)
			return ok
		}
		keep := k.reading("session.S")
		time.Sleep(time.Second)
		keep(schemas.Session{})
		time.Sleep(knownFor / 2)
		k.reading("lock.S")(schemas.Session{})
		time.Sleep(knownFor/2 - time.Second - time.Nanosecond)
		require.True(t, knows("session.S"))
		time.Sleep(time.Nanosecond)
		require.False(t, knows("session.S"))
		require.True(t, knows("lock.S"))
	})
}
