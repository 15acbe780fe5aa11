package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// timeouts are the settings of everybody with these timeouts, in seconds.
func timeouts(connected, disconnected, voice int) string {
	var s map[string]any
	_ = json.Unmarshal([]byte(everybody), &s) // a constant
	s["permissions"] = map[string]any{"connected_timeout_seconds": connected, "disconnected_timeout_seconds": disconnected}
	s["connectors"] = map[string]any{"voice": map[string]any{"permission_timeout_seconds": voice}}
	data, _ := json.Marshal(s)
	return string(data)
}

// Covers the table of timeouts with the defaults, with settings and the environment.
func TestTheTierIsThatOfTheMomentOfAsking(t *testing.T) {
	t.Parallel()
	permission := func(seconds int) func(*schemas.Request) {
		return func(r *schemas.Request) {
			r.Kind, r.ToolName, r.Permissions, r.Reason, r.TimeoutSeconds = schemas.KindPermission, "", []string{"@network"}, "to fetch", seconds
		}
	}
	for _, nod := range []struct {
		name                           string
		settings                       string
		voice                          time.Duration // NOD_PERMISSION_TIMEOUT
		connected, disconnected, spoke time.Duration
	}{
		{"defaults", everybody, 0, time.Minute, 7 * 24 * time.Hour, 5 * time.Minute},
		{"settings", timeouts(90, 7200, 30), 0, 90 * time.Second, 2 * time.Hour, 30 * time.Second},
		{"environment", timeouts(90, 7200, 30), 45 * time.Second, 90 * time.Second, 2 * time.Hour, 45 * time.Second},
	} {
		t.Run(nod.name, func(t *testing.T) {
			t.Parallel()
			env := start(t, func(s *setup) { s.settings, s.engine.VoiceTimeout = nod.settings, nod.voice })
			ann := env.Ann()
			lock := func(kind string) func(string) {
				return func(s string) { env.True(ann.does(schemas.PresenceLock, s, "c", kind).Granted) }
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
				{"holds it and renews", func(s string) { lock("web")(s); ann.does(schemas.PresenceRenew, s, "c", "web") }, nil, schemas.TierConnected, nod.connected},
				{"present without the lock", func(s string) { ann.does(schemas.PresenceJoin, s, "c", "terminal") }, nil, schemas.TierDisconnected, nod.disconnected},
				{"gave the lock back", func(s string) { lock("terminal")(s); ann.does(schemas.PresenceUnlock, s, "c", "terminal") }, nil, schemas.TierDisconnected, nod.disconnected},
				{"left", func(s string) { lock("terminal")(s); ann.does(schemas.PresenceLeave, s, "c", "terminal") }, nil, schemas.TierDisconnected, nod.disconnected},
				{"holds another session's", func(string) { lock("terminal")("elsewhere") }, nil, schemas.TierDisconnected, nod.disconnected},
				{"speaks", lock(schemas.ClientVoice), nil, schemas.TierVoice, nod.spoke},
				{"an override", func(s string) { env.timeout(s, time.Hour); lock(schemas.ClientVoice)(s) }, nil, schemas.TierSession, time.Hour},
				{"an override taken back", func(s string) { env.timeout(s, time.Hour); env.timeout(s, 0) }, nil, schemas.TierDisconnected, nod.disconnected},
				{"a permission", lock("terminal"), permission(0), schemas.TierRequest, 15 * time.Minute},
				{"a permission for so long", lock("terminal"), permission(3600), schemas.TierRequest, time.Hour},
				{"a tool call's own wish", lock("terminal"), func(r *schemas.Request) { r.TimeoutSeconds = 3600 }, schemas.TierConnected, nod.connected},
				{"a question", nil, func(r *schemas.Request) { r.Kind, r.ToolName = schemas.KindQuestion, "" }, schemas.TierDisconnected, nod.disconnected},
			} {
				r := deploy(fmt.Sprint("S", i), "1")
				if row.before != nil {
					row.before(r.SessionID)
				}
				if row.change != nil {
					row.change(&r)
				}
				q := env.Agent("ada").Asks(r)
				env.Equal(row.tier, q.Receipt.Tier, row.name)
				ahead, err := env.store.BrokerTime(env.ctx)
				env.NoError(err)
				env.WithinDuration(time.Now().Add(ahead+row.timeout), q.Receipt.Deadline, 10*time.Second, row.name)
				env.Equal(q.Receipt.Deadline.Format(time.RFC3339Nano), env.timer(q.Key), row.name)
			}
		})
	}
}

// A request is asked while an approver holds the input lock. The approver leaves and
// comes back before the deadline: the request times out at its first deadline.
func TestLeavingAndComingBackMovesNoDeadline(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.settings = timeouts(5, 7200, 30) })
	ada, ann := env.Agent("ada"), env.Ann()
	env.True(ann.does(schemas.PresenceLock, "S", "laptop", "terminal").Granted)
	q := ada.Asks(deploy("S", "1"))
	asked := q.Receipt.Deadline.Add(-5 * time.Second)

	env.passed(asked.Add(time.Second))
	ann.does(schemas.PresenceLeave, "S", "laptop", "terminal")
	away := ada.Asks(deploy("S", "2"))
	env.Equal(schemas.TierDisconnected, away.Receipt.Tier, "the lock is gone")
	env.Equal(q.Receipt, ada.Asks(deploy("S", "1")).Receipt)

	env.passed(asked.Add(2 * time.Second))
	ann.does(schemas.PresenceJoin, "S", "laptop", "terminal")
	env.True(ann.does(schemas.PresenceLock, "S", "laptop", "terminal").Granted)

	d := q.Ends(schemas.TimedOut)
	env.Equal(schemas.ByClock, d.By.Kind)
	env.Equal("Permission request timed out after 5 seconds.", d.Message)
	env.False(d.DecidedAt.Before(q.Receipt.Deadline))
	env.Equal(away.Receipt.Revision, env.stored("S.2").Revision, "coming back must not change the other request")
	_, err := ann.Says(q, "allow_once")
	env.Equal(d, *env.refusal(err, schemas.CodeStale).Decision())
}

// Requests asked while no client held the input lock survive a restart of server and
// engine with their deadlines.
func TestDisconnectedRequestsSurviveARestartWithTheirDeadlines(t *testing.T) {
	t.Parallel()
	s := setup{settings: timeouts(2, 7200, 30), engines: 1}
	env := start(t, func(all *setup) { *all = s })
	env.timeout("short", 2*time.Second)
	ada := env.Agent("ada")
	long, short := ada.Asks(deploy("S", "1")).Receipt, ada.Asks(deploy("short", "1")).Receipt
	env.Equal(schemas.TierDisconnected, long.Tier)
	env.down()

	s.settings = "" // the stored settings apply
	env.up(s)
	ada = env.Agent("ada")
	env.Contains(env.armed(), "S.1")
	q := ada.Asks(deploy("S", "1"))
	env.Equal(long, q.Receipt)
	env.Equal(long.Deadline.Format(time.RFC3339Nano), env.timer("S.1"))
	asked, err := ada.asker.Submit(env.ctx, deploy("short", "1")) // may have ended by now
	env.NoError(err)
	d := (&question{asked, ada}).Ends(schemas.TimedOut)
	env.False(d.DecidedAt.Before(short.Deadline))
	env.Equal(env.Ann().Allows(q), q.Hears())
}

func TestTheInputLock(t *testing.T) {
	t.Parallel()
	env := start(t)
	ann, bob := env.Ann(), env.Bob()
	none := schemas.Lock{Type: schemas.TypeLock}
	env.Equal(none, ann.does(schemas.PresenceJoin, "S", "laptop", "terminal"), "no client holds the lock")
	env.Equal(none, ann.does(schemas.PresenceRenew, "S", "laptop", "terminal"), "renewing does not take a free lock")

	mine := ann.does(schemas.PresenceLock, "S", "laptop", "terminal")
	env.True(mine.Granted)
	env.Equal("Ann", mine.Holder)
	again := ann.does(schemas.PresenceLock, "S", "laptop", "terminal")
	env.True(again.Granted, "asking again while holding")

	for _, op := range []schemas.PresenceOp{schemas.PresenceLock, schemas.PresenceRenew, schemas.PresenceUnlock, schemas.PresenceJoin, schemas.PresenceLeave} {
		his := bob.does(op, "S", "phone", "web")
		env.False(his.Granted, op)
		env.Equal("Ann", his.Holder, op)
	}
	env.False(ann.does(schemas.PresenceLock, "S", "tablet", "terminal").Granted, "another client of the same person")
	env.False(bob.does(schemas.PresenceLock, "S", "laptop", "web").Granted, "another person under the same client's name")
	env.True(bob.does(schemas.PresenceLock, "T", "phone", "web").Granted, "another session's")

	env.Equal(none, ann.does(schemas.PresenceUnlock, "S", "laptop", "terminal"))
	env.True(bob.does(schemas.PresenceLock, "S", "phone", "web").Granted)
	lost := ann.does(schemas.PresenceRenew, "S", "laptop", "terminal")
	env.False(lost.Granted)
	env.Equal("Bob", lost.Holder)

	_, err := ann.Hold(env.ctx, schemas.Presence{Op: schemas.PresenceLock, SessionID: "U", ClientID: "c", Kind: "terminal", From: schemas.From{UserID: "eve"}})
	env.refusal(err, schemas.CodeForbidden)
}

// A person who may not decide a request does not shorten its deadline. The lock is
// refused if they may decide nothing in the session; otherwise it does not count for
// requests that they may not decide.
func TestTheLockOfWhoMayNotDecideShortensNothing(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.settings = someOfIt }) // Bob: ada in /srv/shop, up to medium
	ada, ben, bob := env.Agent("ada"), env.Agent("ben"), env.Bob()
	tier := func(a *agent, session, id, project string) schemas.Tier {
		r := deploy(session, id)
		r.Project = project
		return a.Asks(r).Receipt.Tier
	}
	env.Equal(schemas.TierDisconnected, tier(ben, "B", "1", "/srv/shop"))
	_, err := bob.Hold(env.ctx, schemas.Presence{Op: schemas.PresenceLock, SessionID: "B", ClientID: "c", Kind: "web", From: schemas.From{UserID: "bob"}})
	env.Contains(env.refusal(err, schemas.CodeForbidden).Message, "may not hold this session's lock")
	env.True(env.Ann().does(schemas.PresenceLock, "B", "laptop", "terminal").Granted, "a person who may decide gets the lock")
	env.Equal(schemas.TierConnected, tier(ben, "B", "2", "/srv/shop"))

	env.True(bob.does(schemas.PresenceLock, "A", "c", "web").Granted, "no agent has asked in the session yet")
	env.Equal(schemas.TierConnected, tier(ada, "A", "theirs", "/srv/shop/web"))
	env.Equal(schemas.TierDisconnected, tier(ada, "A", "elsewhere", "/srv/bank"))
	env.True(bob.does(schemas.PresenceLock, "early", "c", "web").Granted)
	env.Equal(schemas.TierDisconnected, tier(ben, "early", "1", "/srv/shop"))
}

func TestTheLockHasOneHolderWhoeverAsksAtOnce(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.engines = 2 })
	people := []*person{env.Ann(), env.Bob()}
	for i := range 20 {
		session := fmt.Sprint("S", i)
		granted := make(chan bool)
		for j := range 6 {
			go func() {
				p := people[j%2]
				lock, err := p.Hold(env.ctx, schemas.Presence{
					Op: schemas.PresenceLock, SessionID: session, ClientID: fmt.Sprint("c", j), Kind: "web", From: schemas.From{UserID: p.user},
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
func TestTheBrokerEndsALease(t *testing.T) {
	t.Parallel()
	o := engine.Options{Lease: 6 * time.Second}
	env := start(t, func(s *setup) { s.engine = o })
	ann, bob := env.Ann(), env.Bob()
	env.True(ann.does(schemas.PresenceLock, "S", "laptop", "terminal").Granted)
	env.False(bob.does(schemas.PresenceLock, "S", "phone", "web").Granted)
	for range 3 { // longer than one lease: each renewal starts a new lease
		env.passed(time.Now().Add(2200 * time.Millisecond))
		env.True(ann.does(schemas.PresenceRenew, "S", "laptop", "terminal").Granted)
	}
	for _, n := range env.engines {
		n.stop() // no engine is left to end the lease
	}
	env.soon("the broker frees the lock", func() bool {
		var held schemas.Lock
		_, err := env.store.Presence.Get(env.ctx, "lock.S", &held)
		return errors.Is(err, bus.ErrNotFound)
	})
	env.engine(o)
	env.True(bob.does(schemas.PresenceLock, "S", "phone", "web").Granted)
	lost := ann.does(schemas.PresenceRenew, "S", "laptop", "terminal")
	env.False(lost.Granted)
	env.Equal("Bob", lost.Holder)
	env.soon("a lease that is not renewed ends", func() bool {
		return env.Agent("ada").Asks(deploy("S", bus.NewID())).Receipt.Tier == schemas.TierDisconnected
	})
}
