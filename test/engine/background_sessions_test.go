package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

func TestABackgroundSessionNeedsAForegroundOfItsUser(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	background(env, "bg", "others")
	for session, user := range map[string]string{"bg": "ada", "others": "zoe"} {
		_, err := ada.Asker.Submit(env.Ctx, by(user, rig.Permission(session, "", "r", "@read:")))
		env.EqualError(errors.Unwrap(err), "No foreground agent available.", "this error precedes the one about the malformed tag")
	}
	for _, session := range []string{"front", "old", "front"} {
		ada.Gets(by("ada", rig.Lookup(session, "")))
		askedLast(ada, session)
	}

	heard := make(chan schemas.Notice, 8)
	rig.Notices(env, ada, "front", heard)
	ann.Does(schemas.PresenceJoin, "front", "laptop", "terminal")
	ann.Does(schemas.PresenceLock, "front", "laptop", "terminal")
	q := ada.Asks(by("ada", rig.Permission("bg", "1", "to fetch", "@network")))
	env.Equal("front", env.Stored("bg.1").Record.Foreground)
	env.Equal(schemas.NoticeAsked, rig.Next(env, heard).Kind)
	ann.Allows(q)
	for n := rig.Next(env, heard); n.Kind != schemas.NoticeDecided; n = rig.Next(env, heard) {
		env.Equal(schemas.NoticeAsked, n.Kind)
	}
	env.Equal(schemas.TierConnected, ada.Asks(by("ada", rig.Deploy("bg", "2"))).Receipt.Tier, "a person is at the foreground session")

	foreign := by("zoe", rig.Permission("others", "", "r", "@network"))
	env.Contains(ada.Refused(foreign, schemas.CodeUndeliverable).Message, "No foreground agent available.", "another user's foreground session does not count")
}

func background(e *rig.Env, sessions ...string) {
	e.T.Helper()
	background := true
	for _, session := range sessions {
		_, err := e.Owner().ChangeSession(e.Ctx, schemas.SessionChange{SessionID: session, Background: &background})
		e.NoError(err)
	}
}

func by(user string, r schemas.Request) schemas.Request {
	r.User = user
	return r
}

// The function noted returns the stored time of the last activity of each of an agent's sessions.
func noted(a *rig.Agent) map[string]time.Time {
	keys, err := a.Store.Presence.ListKeys(a.Ctx, "active."+a.Name+".*")
	if err != nil {
		return nil // each caller of the function noted tries again
	}
	noted := map[string]time.Time{}
	for _, key := range keys {
		var s schemas.Session
		if _, err := a.Store.Presence.Get(a.Ctx, key, &s); err == nil {
			noted[s.SessionID] = s.ActiveAt
		}
	}
	return noted
}

// askedLast waits until a session is stored as the agent's last active one.
func askedLast(a *rig.Agent, session string) {
	a.T.Helper()
	a.Soon(session+" is the newest", func() bool {
		noted := noted(a)
		for _, at := range noted {
			if at.After(noted[session]) {
				return false
			}
		}
		return !noted[session].IsZero()
	})
}

// An engine stores the activity of a session at once if another engine has just stored the activity of
// another session of the same agent.
func TestActivityAfterAnotherSessionsIsStoredAtOnce(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	ada.Gets(rig.Lookup("front", ""))
	askedLast(ada, "front")
	first := noted(ada)["front"]
	other := schemas.Session{Type: schemas.TypeSession, SessionID: "other", Agent: "ada", CreatedAt: first, ActiveAt: first.Add(time.Millisecond)}
	_, err := env.Store.Presence.Put(env.Ctx, "active.ada.other", other, 0, time.Hour)
	env.NoError(err)
	again := time.After(rig.Patience / 2) // without the activity of the other session, the engine would store this activity much later
	for !noted(ada)["front"].After(first) {
		select {
		case <-again:
			env.FailNow("the session's activity is not stored again")
		case <-time.After(rig.Tick): // the watch may be late to report the activity of the other session
			ada.Gets(rig.Lookup("front", ""))
		}
	}
}

func TestASessionTakesTheUserOfALaterCall(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	background(env, "bg", "whose")
	for _, session := range []string{"bg", "front", "whose", "open"} {
		_, err := ada.Holds(session) // the MCP tool list_permissions sends no user's name
		env.NoError(err)
	}
	ada.Gets(rig.Lookup("open", ""))
	askedLast(ada, "open")
	ada.Gets(by("ada", rig.Lookup("front", "")))
	askedLast(ada, "front")
	ada.Asks(by("ada", rig.Permission("bg", "1", "r", "@network"))).Drop()
	env.Equal("front", env.Stored("bg.1").Record.Foreground)

	ada.Refused(rig.Permission("whose", "", "r", "@network"), schemas.CodeUndeliverable) // a session whose user nod does not know may belong to another user
	ada.Gets(by("zoe", rig.Lookup("front", "")))
	s, err := ada.Holds("front")
	env.NoError(err)
	env.Equal("ada", s.User, "a session keeps its user")
	env.Agent("ben").Refused(by("zoe", rig.Deploy("open", "")), schemas.CodeNotFound)
	s, err = ada.Holds("open")
	env.NoError(err)
	env.Empty(s.User, "another agent cannot name its user")
}

// If an agent never names a user, all the agent's sessions count as sessions of one user.
func TestSessionsWithoutUsersShareTheirForeground(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	background(env, "bg")
	ada.Gets(rig.Lookup("front", ""))
	askedLast(ada, "front")
	ada.Asks(rig.Permission("bg", "1", "r", "@network")).Drop()
	env.Equal("front", env.Stored("bg.1").Record.Foreground)
}
