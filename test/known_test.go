package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// Engines hear of grants and presence that another engine stores, despite their caches.
func TestWhatOneEngineStoresTheOthersHear(t *testing.T) {
	t.Parallel()
	const some = 16 // enough requests to reach each of three engines
	env := start(t, func(s *setup) { s.engines = 3 })
	ada, ann := env.Agent("ada"), env.Ann()
	n := 0
	// tiers sends some different requests and counts them by tier.
	tiers := func() map[schemas.Tier]int {
		tiers := map[schemas.Tier]int{}
		for range some {
			n++
			q := ada.Asks(shell("S", "", fmt.Sprint("make ", n)))
			tiers[q.Receipt.Tier]++
			ada.Withdraws("S", q.PendingID)
			q.Drop()
		}
		return tiers
	}
	allowed := func() bool {
		for range some {
			asked, err := ada.asker.Submit(env.ctx, shell("S", "", "npm test"))
			env.NoError(err)
			asked.Drop()
			if asked.Receipt.Revision != 0 {
				ada.Withdraws("S", asked.PendingID)
				return false
			}
		}
		return true
	}
	all := func(tier schemas.Tier) func() bool { return func() bool { return tiers()[tier] == some } }

	// hears waits for less time than the engines take to refresh their caches anyway.
	hears := func(what string, holds func() bool) { env.Eventually(holds, 10*time.Second, tick, what) }

	env.Equal(map[schemas.Tier]int{schemas.TierDisconnected: some}, tiers())
	env.True(ann.does(schemas.PresenceLock, "S", "c", "terminal").Granted)
	hears("every engine knows that Ann is there", all(schemas.TierConnected))
	ann.does(schemas.PresenceUnlock, "S", "c", "terminal")
	hears("every engine knows that she is not", all(schemas.TierDisconnected))
	ann.Remembers(ada.Asks(shell("S", "", "npm test")), schemas.ScopeSession, 0)
	hears("every engine allows what she granted", allowed)
}

// A session belongs to the first agent that asks in it, not to one that only names it.
func TestANobodysSessionThatWasLookedAtIsWhoseAsksFirst(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada, ben := env.Agent("ada"), env.Agent("ben")
	env.timeout("T", time.Hour)
	other := permission("S", "", "r", "@network")
	other.ActionDetails = []byte(`{"agent_id":"T"}`)
	env.Contains(ada.Refused(other, schemas.CodeNotFound).Message, "Agent not found: T")
	env.Equal(schemas.TierSession, ben.Asks(deploy("T", "")).Receipt.Tier)
	ada.Refused(deploy("T", ""), schemas.CodeNotFound)
}

// A watcher that was cut off hears of the changes it missed, even of the first one.
func TestAWatchGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.engines, s.settings = 0, "" })
	wire := env.wire()
	conn := env.dial(roles.ID{Role: roles.EngineStore}, wire.url)
	defer conn.Close()
	store, err := bus.OpenStore(env.ctx, conn, 1)
	env.NoError(err)
	heard := make(chan string, 1)
	env.NoError(store.Sessions.Watch(env.ctx, func(key string, _ uint64) { heard <- key }))
	wire.hold()
	_, err = env.store.Sessions.Put(env.ctx, "agent.ada", schemas.Grants{Type: schemas.TypeGrants}, 0, 0)
	env.NoError(err)
	wire.cut()
	select {
	case key := <-heard:
		env.Equal("agent.ada", key)
	case <-time.After(patience):
		env.Fail("the watcher did not hear of the change")
	}
}
