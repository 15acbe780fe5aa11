package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// Engines soon use the grants and leases that another engine stores, although they cache both.
func TestEnginesFollowWhatOtherEnginesStore(t *testing.T) {
	t.Parallel()
	const some = 16 // so many requests that each of the three engines gets some of them
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 3 })
	ada, ann := env.Agent("ada"), env.Ann()
	n := 0
	// tier returns a condition, which holds if several new requests all get the timeout of the given tier.
	tier := func(tier schemas.Tier) func() bool {
		return func() bool {
			for range some {
				n++
				q := ada.Asks(rig.Shell("S", "", fmt.Sprint("make ", n)))
				ada.Withdraws("S", q.PendingID)
				q.Drop()
				if q.Receipt.Tier != tier {
					return false
				}
			}
			return true
		}
	}
	allowed := func() bool {
		for range some {
			asked, err := ada.Asker.Submit(env.Ctx, rig.Shell("S", "", "npm test"))
			env.NoError(err)
			asked.Drop()
			if asked.Receipt.Revision != 0 {
				ada.Withdraws("S", asked.PendingID)
				return false
			}
		}
		return true
	}

	// The function hears waits until a condition holds. It waits for a shorter time than engines use a cached
	// value, so only a watch can report the change in time. The last check of the condition must begin within
	// this time, and may end later on a busy machine.
	hears := func(event string, holds func() bool) {
		for end := time.Now().Add(10 * time.Second); ; <-time.After(rig.Tick) {
			inTime := time.Now().Before(end)
			if holds() {
				return
			}
			env.True(inTime, "%s only later than by a watch", event)
		}
	}

	env.True(tier(schemas.TierDisconnected)())
	env.True(ann.Does(schemas.PresenceLock, "S", "c", "terminal").Granted)
	hears("every engine knows that Ann is there", tier(schemas.TierConnected))
	ann.Does(schemas.PresenceUnlock, "S", "c", "terminal")
	hears("every engine knows that she is not", tier(schemas.TierDisconnected))
	ann.Remembers(ada.Asks(rig.Shell("S", "", "npm test")), schemas.ScopeSession, 0)
	hears("every engine allows what she granted", allowed)
}

// A session belongs to the first agent that sends a request in the session. An agent that only
// names the session in a request of another session does not own it.
func TestASessionBelongsToTheFirstAgentThatAsksInIt(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, ben := env.Agent("ada"), env.Agent("ben")
	env.Timeout("T", time.Hour)
	other := rig.Permission("S", "", "r", "@network")
	other.ActionDetails = []byte(`{"agent_id":"T"}`)
	env.Contains(ada.Refused(other, schemas.CodeNotFound).Message, "Agent not found: T")
	env.Equal(schemas.TierSession, ben.Asks(rig.Deploy("T", "")).Receipt.Tier)
	ada.Refused(rig.Deploy("T", ""), schemas.CodeNotFound)
}

// After its connection has broken, a watch reports the changes that it missed, even if a missed
// change is the first one of its bucket.
func TestAWatchReportsChangesMissedDuringAnOutage(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, rig.OverTheNetwork, func(s *rig.Setup) { s.Engines, s.Settings = 0, "" })
	wire := env.Wire()
	conn := env.Dial(roles.ID{Role: roles.EngineStore}, wire.URL)
	defer conn.Close()
	store, err := bus.OpenStore(env.Ctx, conn, 1)
	env.NoError(err)
	heard := make(chan string, 1)
	env.NoError(store.Sessions.Watch(env.Ctx, func(key string, _ uint64) { heard <- key }))
	wire.Hold()
	_, err = env.Store.Sessions.Put(env.Ctx, "agent.ada", schemas.Grants{Type: schemas.TypeGrants}, 0, 0)
	env.NoError(err)
	wire.Cut()
	select {
	case key := <-heard:
		env.Equal("agent.ada", key)
	case <-time.After(rig.Patience):
		env.Fail("the watcher did not hear of the change")
	}
}
