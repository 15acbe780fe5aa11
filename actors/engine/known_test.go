package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// What changed while it was read is not kept, whoever changed it.
func TestWhatChangesWhileItIsReadIsNotKept(t *testing.T) {
	for name, change := range map[string]func(*known){
		"by this engine":    func(k *known) { k.forget("session.S") },
		"by another":        func(k *known) { k.changed("session.S", 7) },
		"nobody could tell": func(k *known) { k.missed() },
	} {
		t.Run(name, func(t *testing.T) {
			var k known
			keep := k.reading("session.S")
			change(&k)
			keep(schemas.Session{Agent: "old"})
			_, ok := k.session("session.S")
			require.False(t, ok)
		})
	}
	var k known
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

// Where a watch has fallen silent, what was read counts for a moment, each by itself,
// from when its reading began.
func TestWhatIsKnownIsReadAgainWhateverTheWatchSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k known
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

// Only where all of it is known, and none of it counts any more, is nothing read.
func TestNothingIsKnownToBeHeldOnlyWhereAllIsKnown(t *testing.T) {
	now := time.Now()
	past, later := now.Add(-time.Hour), now.Add(time.Hour)
	for name, c := range map[string]struct {
		session schemas.Session
		agent   []schemas.StandingAnswer
		nothing bool
	}{
		"nothing":                {nothing: true},
		"a timeout":              {session: schemas.Session{TimeoutSeconds: 5}, nothing: true},
		"managed":                {session: schemas.Session{Permissions: &schemas.SessionPermissions{}}},
		"a grant":                {session: schemas.Session{Grants: []schemas.StandingAnswer{{GrantID: "g"}}}},
		"the agent's grant":      {agent: []schemas.StandingAnswer{{GrantID: "g", ExpiresAt: later}}},
		"a revoked grant":        {agent: []schemas.StandingAnswer{{GrantID: "g", RevokedAt: past}}, nothing: true},
		"a grant that is over":   {session: schemas.Session{Grants: []schemas.StandingAnswer{{GrantID: "g", ExpiresAt: past}}}, nothing: true},
		"an approval, used":      {session: schemas.Session{Grants: []schemas.StandingAnswer{{GrantID: "g", Once: &schemas.Once{UsedBy: "1", UsedAt: past}}}}},
		"a denial":               {session: schemas.Session{Denials: []schemas.Denial{{Until: later}}}},
		"a denial that is over":  {session: schemas.Session{Denials: []schemas.Denial{{Until: past}}}, nothing: true},
		"nobody waits for one":   {session: schemas.Session{Detached: []schemas.Detached{{Until: later}}}},
		"nobody waited for one":  {session: schemas.Session{Detached: []schemas.Detached{{Until: past}}}, nothing: true},
		"nobody waits, long ago": {session: schemas.Session{Detached: []schemas.Detached{{Until: past}, {Until: later}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var k known
			_, nothing := k.nothing("ada", "S", now)
			require.False(t, nothing, "before anything was read")
			k.reading(sessionKey("S"))(c.session)
			_, nothing = k.nothing("ada", "S", now)
			require.False(t, nothing, "before the agent's grants were read")
			k.reading(agentKey("ada"))(schemas.Session{Grants: c.agent})
			s, nothing := k.nothing("ada", "S", now)
			require.Equal(t, c.nothing, nothing)
			require.Equal(t, c.session, s)
		})
	}
}
