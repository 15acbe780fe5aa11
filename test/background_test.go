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
	background := true
	for session, user := range map[string]string{"bg": "ada", "others": "zoe"} {
		_, err := env.owner().ChangeSession(env.ctx, schemas.SessionChange{SessionID: session, Background: &background})
		env.NoError(err)
		r := permission(session, "", "r", "@read:")
		r.User = user
		_, err = ada.asker.Submit(env.ctx, r)
		env.EqualError(errors.Unwrap(err), "No foreground agent available.", "before the malformed tag")
	}
	for _, session := range []string{"front", "old"} {
		r := deploy(session, "")
		r.User = "ada"
		ada.Asks(r).Drop()
	}
	env.soon("both are noted", func() bool {
		keys, err := env.store.Presence.Keys(env.ctx, "active.ada.*")
		return err == nil && len(keys) == 2
	})
	var newest schemas.Session
	revision, err := env.store.Presence.Get(env.ctx, "active.ada.front", &newest)
	env.NoError(err)
	newest.ActiveAt = newest.ActiveAt.Add(time.Minute)
	_, err = env.store.Presence.Put(env.ctx, "active.ada.front", newest, revision, time.Hour)
	env.NoError(err)

	heard := make(chan schemas.Notice, 8)
	notices(env, ada, "front", heard)
	ann.does(schemas.PresenceJoin, "front", "laptop", "terminal")
	ann.does(schemas.PresenceLock, "front", "laptop", "terminal")
	r := permission("bg", "1", "to fetch", "@network")
	r.User = "ada"
	q := ada.Asks(r)
	env.Equal("front", env.stored("bg.1").Record.Foreground)
	env.Equal(schemas.NoticeAsked, next(env, heard).Kind)
	ann.Allows(q)
	for n := next(env, heard); n.Kind != schemas.NoticeDecided; n = next(env, heard) {
		env.Equal(schemas.NoticeAsked, n.Kind)
	}
	tool := deploy("bg", "2")
	tool.User = "ada"
	env.Equal(schemas.TierConnected, ada.Asks(tool).Receipt.Tier, "somebody is at the foreground session")

	foreign := permission("others", "", "r", "@network")
	foreign.User = "zoe"
	env.Contains(ada.Refused(foreign, schemas.CodeUndeliverable).Message, "No foreground agent available.", "never another user's")
}

// background has nobody look at sessions.
func (e *env) background(sessions ...string) {
	e.t.Helper()
	background := true
	for _, session := range sessions {
		_, err := e.owner().ChangeSession(e.ctx, schemas.SessionChange{SessionID: session, Background: &background})
		e.NoError(err)
	}
}

// by is a request that names its user.
func by(user string, r schemas.Request) schemas.Request {
	r.User = user
	return r
}

// isActive waits until it is noted that a session is active.
func (a *agent) isActive(session string) {
	a.t.Helper()
	a.soon(session+" is noted", func() bool {
		var s schemas.Session
		_, err := a.store.Presence.Get(a.ctx, "active."+a.name+"."+session, &s)
		return err == nil
	})
}

// A session's first call need not name its user.
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
	ada.isActive("open")
	ada.Gets(by("ada", lookup("front", "")))
	ada.isActive("front")
	ada.Asks(by("ada", permission("bg", "1", "r", "@network"))).Drop()
	env.Equal("front", env.stored("bg.1").Record.Foreground)

	ada.Refused(permission("whose", "", "r", "@network"), schemas.CodeUndeliverable) // both may be anybody's
	ada.Gets(by("zoe", lookup("front", "")))
	s, err := ada.holds("front")
	env.NoError(err)
	env.Equal("ada", s.User, "it keeps the user it has")
	env.Agent("ben").Refused(by("zoe", deploy("open", "")), schemas.CodeNotFound)
	s, err = ada.holds("open")
	env.NoError(err)
	env.Empty(s.User, "another agent names none for it")
}

// Where an agent names no user at all, there is one.
func TestABackgroundSessionOfNoNamedUser(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	env.background("bg")
	ada.Gets(lookup("front", ""))
	ada.isActive("front")
	ada.Asks(permission("bg", "1", "r", "@network")).Drop()
	env.Equal("front", env.stored("bg.1").Record.Foreground)
}
