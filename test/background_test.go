package test

import (
	"errors"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
)

func TestABackgroundSessionAsksInThePlaceOfTheForegroundOfItsUser(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	env.background("bg", "others")
	for session, user := range map[string]string{"bg": "ada", "others": "zoe"} {
		_, err := ada.asker.Submit(env.ctx, by(user, permission(session, "", "r", "@read:")))
		env.EqualError(errors.Unwrap(err), "No foreground agent available.", "this error precedes the one about the malformed tag")
	}
	for _, session := range []string{"front", "old", "front"} {
		ada.Gets(by("ada", lookup(session, "")))
		ada.askedLast(session)
	}

	heard := make(chan schemas.Notice, 8)
	notices(env, ada, "front", heard)
	ann.does(schemas.PresenceJoin, "front", "laptop", "terminal")
	ann.does(schemas.PresenceLock, "front", "laptop", "terminal")
	q := ada.Asks(by("ada", permission("bg", "1", "to fetch", "@network")))
	env.Equal("front", env.stored("bg.1").Record.Foreground)
	env.Equal(schemas.NoticeAsked, next(env, heard).Kind)
	ann.Allows(q)
	for n := next(env, heard); n.Kind != schemas.NoticeDecided; n = next(env, heard) {
		env.Equal(schemas.NoticeAsked, n.Kind)
	}
	env.Equal(schemas.TierConnected, ada.Asks(by("ada", deploy("bg", "2"))).Receipt.Tier, "a person is at the foreground session")

	foreign := by("zoe", permission("others", "", "r", "@network"))
	env.Contains(ada.Refused(foreign, schemas.CodeUndeliverable).Message, "No foreground agent available.", "another user's foreground session does not count")
}

// background marks sessions as background sessions.
func (e *env) background(sessions ...string) {
	e.t.Helper()
	background := true
	for _, session := range sessions {
		_, err := e.owner().ChangeSession(e.ctx, schemas.SessionChange{SessionID: session, Background: &background})
		e.NoError(err)
	}
}

// by sets the user of a request.
func by(user string, r schemas.Request) schemas.Request {
	r.User = user
	return r
}

// noted returns, by session, the stored time of the agent's last activity.
func (a *agent) noted() map[string]time.Time {
	keys, err := a.store.Presence.Listed(a.ctx, "active."+a.name+".*")
	if err != nil {
		return nil // the caller tries again
	}
	noted := map[string]time.Time{}
	for _, key := range keys {
		var s schemas.Session
		if _, err := a.store.Presence.Get(a.ctx, key, &s); err == nil {
			noted[s.SessionID] = s.ActiveAt
		}
	}
	return noted
}

// askedLast waits until a session is stored as the agent's most recently active one.
func (a *agent) askedLast(session string) {
	a.t.Helper()
	a.soon(session+" is the newest", func() bool {
		noted := a.noted()
		for _, at := range noted {
			if at.After(noted[session]) {
				return false
			}
		}
		return !noted[session].IsZero()
	})
}

// Activity that another engine stores counts as well.
func TestASessionThatAsksAfterAnotherOnAnotherEngineIsNoted(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	ada.Gets(lookup("front", ""))
	ada.askedLast("front")
	first := ada.noted()["front"]
	other := schemas.Session{Type: schemas.TypeSession, SessionID: "other", Agent: "ada", CreatedAt: first, ActiveAt: first.Add(time.Millisecond)}
	_, err := env.store.Presence.Put(env.ctx, "active.ada.other", other, 0, time.Hour)
	env.NoError(err)
	again := time.After(patience / 2) // well before the engine would store it again anyway
	for !ada.noted()["front"].After(first) {
		select {
		case <-again:
			env.FailNow("the session's activity is not stored again")
		case <-time.After(tick): // the engine learns of the other session's activity in its own time
			ada.Gets(lookup("front", ""))
		}
	}
}

// A session whose first call names no user takes the user of a later call.
func TestASessionGetsItsUserWhenOneIsNamed(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	env.background("bg", "whose")
	for _, session := range []string{"bg", "front", "whose", "open"} {
		_, err := ada.holds(session) // as list_permissions does
		env.NoError(err)
	}
	ada.Gets(lookup("open", ""))
	ada.askedLast("open")
	ada.Gets(by("ada", lookup("front", "")))
	ada.askedLast("front")
	ada.Asks(by("ada", permission("bg", "1", "r", "@network"))).Drop()
	env.Equal("front", env.stored("bg.1").Record.Foreground)

	ada.Refused(permission("whose", "", "r", "@network"), schemas.CodeUndeliverable) // neither session names a user, so nod cannot tell whether it is the same one
	ada.Gets(by("zoe", lookup("front", "")))
	s, err := ada.holds("front")
	env.NoError(err)
	env.Equal("ada", s.User, "a session keeps its user")
	env.Agent("ben").Refused(by("zoe", deploy("open", "")), schemas.CodeNotFound)
	s, err = ada.holds("open")
	env.NoError(err)
	env.Empty(s.User, "another agent cannot name its user")
}

// If an agent never names a user, all its sessions count as one user's.
func TestABackgroundSessionOfNoNamedUser(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	env.background("bg")
	ada.Gets(lookup("front", ""))
	ada.askedLast("front")
	ada.Asks(permission("bg", "1", "r", "@network")).Drop()
	env.Equal("front", env.stored("bg.1").Record.Foreground)
}
