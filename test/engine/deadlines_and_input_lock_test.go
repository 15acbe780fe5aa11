package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// timeouts returns the settings rig.Everybody with the given timeouts, in seconds.
func timeouts(connected, disconnected, voice int) string {
	var s map[string]any
	_ = json.Unmarshal([]byte(rig.Everybody), &s) // Unmarshal cannot fail, because the text is a constant
	s["permissions"] = map[string]any{"connected_timeout_seconds": connected, "disconnected_timeout_seconds": disconnected}
	s["connectors"] = map[string]any{"voice": map[string]any{"permission_timeout_seconds": voice}}
	data, _ := json.Marshal(s)
	return string(data)
}

// The timeout of a request depends on the request's kind, on its session, and on whether a client has the
// session's input lock when the request is sent. Each case runs with the default settings, with timeouts in
// the settings, and with NOD_PERMISSION_TIMEOUT.
func TestATimeoutIsChosenWhenItsRequestIsSent(t *testing.T) {
	t.Parallel()
	permission := func(seconds int) func(*schemas.Request) {
		return func(r *schemas.Request) {
			r.Kind, r.ToolName, r.Permissions, r.Reason, r.TimeoutSeconds = schemas.KindPermission, "", []string{"@network"}, "to fetch", seconds
		}
	}
	for _, nod := range []struct {
		name                           string
		settings                       string
		voice                          time.Duration // the value of NOD_PERMISSION_TIMEOUT
		connected, disconnected, spoke time.Duration
	}{
		{"defaults", rig.Everybody, 0, time.Minute, 7 * 24 * time.Hour, 5 * time.Minute},
		{"settings", timeouts(90, 7200, 30), 0, 90 * time.Second, 2 * time.Hour, 30 * time.Second},
		{"environment", timeouts(90, 7200, 30), 45 * time.Second, 90 * time.Second, 2 * time.Hour, 45 * time.Second},
	} {
		t.Run(nod.name, func(t *testing.T) {
			t.Parallel()
			env := rig.Start(t, func(s *rig.Setup) { s.Settings, s.Engine.VoiceTimeout = nod.settings, nod.voice })
			ann := env.Ann()
			lock := func(kind string) func(string) {
				return func(s string) { env.True(ann.Does(schemas.PresenceLock, s, "c", kind).Granted) }
			}
			for i, row := range []struct {
				name    string
				before  func(session string)
				change  func(*schemas.Request)
				tier    schemas.Tier
				timeout time.Duration
			}{
				{"nobody", nil, nil, schemas.TierDisconnected, nod.disconnected},
				{"holds the lock", lock("terminal"), nil, schemas.TierConnected, nod.connected},
				{"holds it and renews", func(s string) { lock("web")(s); ann.Does(schemas.PresenceRenew, s, "c", "web") }, nil, schemas.TierConnected, nod.connected},
				{"present without the lock", func(s string) { ann.Does(schemas.PresenceJoin, s, "c", "terminal") }, nil, schemas.TierDisconnected, nod.disconnected},
				{"gave the lock back", func(s string) { lock("terminal")(s); ann.Does(schemas.PresenceUnlock, s, "c", "terminal") }, nil, schemas.TierDisconnected, nod.disconnected},
				{"left", func(s string) { lock("terminal")(s); ann.Does(schemas.PresenceLeave, s, "c", "terminal") }, nil, schemas.TierDisconnected, nod.disconnected},
				{"holds another session's", func(string) { lock("terminal")("elsewhere") }, nil, schemas.TierDisconnected, nod.disconnected},
				{"speaks", lock(schemas.ClientVoice), nil, schemas.TierVoice, nod.spoke},
				{"an override", func(s string) { env.Timeout(s, time.Hour); lock(schemas.ClientVoice)(s) }, nil, schemas.TierSession, time.Hour},
				{"an override taken back", func(s string) { env.Timeout(s, time.Hour); env.Timeout(s, 0) }, nil, schemas.TierDisconnected, nod.disconnected},
				{"a permission", lock("terminal"), permission(0), schemas.TierRequest, 15 * time.Minute},
				{"a permission with its own timeout", lock("terminal"), permission(3600), schemas.TierRequest, time.Hour},
				{"a tool call with its own timeout", lock("terminal"), func(r *schemas.Request) { r.TimeoutSeconds = 3600 }, schemas.TierConnected, nod.connected},
				{"a question", nil, func(r *schemas.Request) { r.Kind, r.ToolName = schemas.KindQuestion, "" }, schemas.TierDisconnected, nod.disconnected},
			} {
				r := rig.Deploy(fmt.Sprint("S", i), "1")
				if row.before != nil {
					row.before(r.SessionID)
				}
				if row.change != nil {
					row.change(&r)
				}
				q := env.Agent("ada").Asks(r)
				env.Equal(row.tier, q.Receipt.Tier, row.name)
				ahead, err := env.Store.BrokerTime(env.Ctx)
				env.NoError(err)
				env.WithinDuration(time.Now().Add(ahead+row.timeout), q.Receipt.Deadline, 10*time.Second, row.name)
				env.Equal(q.Receipt.Deadline.Format(time.RFC3339Nano), env.Timer(q.Key), row.name)
			}
		})
	}
}

// A request that is sent while an approver has the input lock keeps its first deadline, even if the
// approver leaves and comes back.
func TestLeavingAndReturningMovesNoDeadline(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = timeouts(5, 7200, 30) })
	ada, ann := env.Agent("ada"), env.Ann()
	env.True(ann.Does(schemas.PresenceLock, "S", "laptop", "terminal").Granted)
	q := ada.Asks(rig.Deploy("S", "1"))
	asked := q.Receipt.Deadline.Add(-5 * time.Second)

	env.Passed(asked.Add(time.Second))
	ann.Does(schemas.PresenceLeave, "S", "laptop", "terminal")
	away := ada.Asks(rig.Deploy("S", "2"))
	env.Equal(schemas.TierDisconnected, away.Receipt.Tier, "the lock is gone")
	env.Equal(q.Receipt, ada.Asks(rig.Deploy("S", "1")).Receipt)

	env.Passed(asked.Add(2 * time.Second))
	ann.Does(schemas.PresenceJoin, "S", "laptop", "terminal")
	env.True(ann.Does(schemas.PresenceLock, "S", "laptop", "terminal").Granted)

	d := q.Ends(schemas.TimedOut)
	env.Equal(schemas.ByClock, d.By.Kind)
	env.Equal("Permission request timed out after 5 seconds.", d.Message)
	env.False(d.DecidedAt.Before(q.Receipt.Deadline))
	env.Equal(away.Receipt.Revision, env.Stored("S.2").Revision, "coming back must not change the other request")
	_, err := ann.Says(q, "allow_once")
	env.Equal(d, *env.Refusal(err, schemas.CodeStale).Decision())
}

// Requests that agents send while no client has the input lock survive a restart of server and
// engine, and keep their deadlines.
func TestDisconnectedRequestsSurviveARestartWithTheirDeadlines(t *testing.T) {
	t.Parallel()
	s := rig.Setup{Settings: timeouts(2, 7200, 30), Engines: 1}
	env := rig.Start(t, func(all *rig.Setup) { *all = s })
	env.Timeout("short", 2*time.Second)
	ada := env.Agent("ada")
	long, short := ada.Asks(rig.Deploy("S", "1")).Receipt, ada.Asks(rig.Deploy("short", "1")).Receipt
	env.Equal(schemas.TierDisconnected, long.Tier)
	env.Down()

	s.Settings = "" // an engine without new settings uses the stored ones
	env.Up(s)
	ada = env.Agent("ada")
	env.Contains(env.Armed(), "S.1")
	q := ada.Asks(rig.Deploy("S", "1"))
	env.Equal(long, q.Receipt)
	env.Equal(long.Deadline.Format(time.RFC3339Nano), env.Timer("S.1"))
	asked, err := ada.Asker.Submit(env.Ctx, rig.Deploy("short", "1")) // the request may have timed out already
	env.NoError(err)
	d := (&rig.Question{OpenRequest: asked, Agent: ada}).Ends(schemas.TimedOut)
	env.False(d.DecidedAt.Before(short.Deadline))
	env.Equal(env.Ann().Allows(q), q.Hears())
}

func TestTheInputLock(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ann, bob := env.Ann(), env.Bob()
	none := schemas.Lock{Type: schemas.TypeLock}
	env.Equal(none, ann.Does(schemas.PresenceJoin, "S", "laptop", "terminal"), "no client holds the lock")
	env.Equal(none, ann.Does(schemas.PresenceRenew, "S", "laptop", "terminal"), "renewing does not take a free lock")

	mine := ann.Does(schemas.PresenceLock, "S", "laptop", "terminal")
	env.True(mine.Granted)
	env.Equal("Ann", mine.Holder)
	again := ann.Does(schemas.PresenceLock, "S", "laptop", "terminal")
	env.True(again.Granted, "asking again while holding")

	for _, op := range []schemas.PresenceOp{schemas.PresenceLock, schemas.PresenceRenew, schemas.PresenceUnlock, schemas.PresenceJoin, schemas.PresenceLeave} {
		his := bob.Does(op, "S", "phone", "web")
		env.False(his.Granted, op)
		env.Equal("Ann", his.Holder, op)
	}
	env.False(ann.Does(schemas.PresenceLock, "S", "tablet", "terminal").Granted, "another client of the same person")
	env.False(bob.Does(schemas.PresenceLock, "S", "laptop", "web").Granted, "another person under the same client's name")
	env.True(bob.Does(schemas.PresenceLock, "T", "phone", "web").Granted, "another session's")

	env.Equal(none, ann.Does(schemas.PresenceUnlock, "S", "laptop", "terminal"))
	env.True(bob.Does(schemas.PresenceLock, "S", "phone", "web").Granted)
	lost := ann.Does(schemas.PresenceRenew, "S", "laptop", "terminal")
	env.False(lost.Granted)
	env.Equal("Bob", lost.Holder)

	_, err := ann.Hold(env.Ctx, schemas.Presence{Op: schemas.PresenceLock, SessionID: "U", ClientID: "c", Kind: "terminal", From: schemas.From{UserID: "eve"}})
	env.Refusal(err, schemas.CodeForbidden)
}

// If the holder of an input lock has no right to decide a request, the lock does not shorten
// the request's deadline. A person who may decide no request of a session cannot take the
// session's input lock.
func TestALockOfANonApproverShortensNoDeadline(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = rig.SomeOfIt }) // Bob may decide for the agent ada only, in /srv/shop, up to medium risk
	ada, ben, bob := env.Agent("ada"), env.Agent("ben"), env.Bob()
	tier := func(a *rig.Agent, session, id, project string) schemas.Tier {
		r := rig.Deploy(session, id)
		r.Project = project
		return a.Asks(r).Receipt.Tier
	}
	env.Equal(schemas.TierDisconnected, tier(ben, "B", "1", "/srv/shop"))
	_, err := bob.Hold(env.Ctx, schemas.Presence{Op: schemas.PresenceLock, SessionID: "B", ClientID: "c", Kind: "web", From: schemas.From{UserID: "bob"}})
	env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "may not hold this session's lock")
	env.True(env.Ann().Does(schemas.PresenceLock, "B", "laptop", "terminal").Granted, "a person who may decide gets the lock")
	env.Equal(schemas.TierConnected, tier(ben, "B", "2", "/srv/shop"))

	env.True(bob.Does(schemas.PresenceLock, "A", "c", "web").Granted, "no agent has asked in the session yet")
	env.Equal(schemas.TierConnected, tier(ada, "A", "theirs", "/srv/shop/web"))
	env.Equal(schemas.TierDisconnected, tier(ada, "A", "elsewhere", "/srv/bank"))
	env.True(bob.Does(schemas.PresenceLock, "early", "c", "web").Granted)
	env.Equal(schemas.TierDisconnected, tier(ben, "early", "1", "/srv/shop"))
}

func TestConcurrentLocksOfASessionHaveOneHolder(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 2 })
	people := []*rig.Person{env.Ann(), env.Bob()}
	for i := range 20 {
		session := fmt.Sprint("S", i)
		granted := make(chan bool)
		for j := range 6 {
			go func() {
				p := people[j%2]
				lock, err := p.Hold(env.Ctx, schemas.Presence{
					Op: schemas.PresenceLock, SessionID: session, ClientID: fmt.Sprint("c", j), Kind: "web", From: schemas.From{UserID: p.User},
				})
				if err != nil {
					t.Error(err)
				}
				granted <- lock.Granted
			}()
		}
		holders := 0
		for range 6 {
			if <-granted {
				holders++
			}
		}
		env.Equal(1, holders, session)
	}
}

// The broker ends a lease that is not renewed, even while no engine runs.
func TestTheBrokerEndsALeaseThatIsNotRenewed(t *testing.T) {
	t.Parallel()
	o := engine.Options{Lease: 4 * time.Second}
	env := rig.Start(t, func(s *rig.Setup) { s.Engine = o })
	ann, bob := env.Ann(), env.Bob()
	env.True(ann.Does(schemas.PresenceLock, "S", "laptop", "terminal").Granted)
	env.False(bob.Does(schemas.PresenceLock, "S", "phone", "web").Granted)
	for range 3 { // the three renewals together take longer than one lease, so the session stays locked only if each renewal lengthens the lease
		env.Passed(time.Now().Add(1500 * time.Millisecond))
		env.True(ann.Does(schemas.PresenceRenew, "S", "laptop", "terminal").Granted)
	}
	for _, n := range env.Engines {
		n.Halt() // no engine is left to end the lease
	}
	env.Soon("the broker frees the lock", func() bool {
		var held schemas.Lock
		_, err := env.Store.Presence.Get(env.Ctx, "lock.S", &held)
		return errors.Is(err, bus.ErrNotFound)
	})
	env.Engine(o)
	env.True(bob.Does(schemas.PresenceLock, "S", "phone", "web").Granted)
	lost := ann.Does(schemas.PresenceRenew, "S", "laptop", "terminal")
	env.False(lost.Granted)
	env.Equal("Bob", lost.Holder)
	env.Soon("a lease that is not renewed ends", func() bool {
		return env.Agent("ada").Asks(rig.Deploy("S", bus.NewID())).Receipt.Tier == schemas.TierDisconnected
	})
}
