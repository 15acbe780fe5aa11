package test

import (
	"testing"
	"time"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// shares grants permissions of one of the agent's sessions to another.
func (a *agent) shares(from, to string, tags ...string) (schemas.StandingAnswer, error) {
	var g schemas.Grants
	err := a.conn.CallInto(a.ctx, schemas.GrantSubject(a.name), schemas.Share{Type: schemas.TypeShare, SessionID: from, AgentID: to, Permissions: tags, Reason: "r"}, &g)
	if err != nil {
		return schemas.StandingAnswer{}, err
	}
	return g.Grants[0], nil
}

// marksRevoked marks a grant as revoked in the store and does nothing else, like a
// revoke that is interrupted.
func (e *env) marksRevoked(session, grant string) {
	e.t.Helper()
	key := "standing.session." + session + "." + grant
	var page schemas.Grants
	revision, err := e.store.Sessions.Get(e.ctx, key, &page)
	e.NoError(err)
	page.Grants[0].RevokedAt, page.Grants[0].RevokedBy = time.Now().UTC(), "test"
	_, err = e.store.Sessions.Put(e.ctx, key, page, revision, time.Hour)
	e.NoError(err)
}

// ended reports by session whether its grant is revoked.
func (e *env) ended() map[string]bool {
	e.t.Helper()
	grants, err := e.owner().Grants(e.ctx, "")
	e.NoError(err)
	all := map[string]bool{}
	for _, g := range grants {
		all[g.SessionID] = !g.RevokedAt.IsZero()
	}
	return all
}

// A grant is revoked on one engine while another engine shares it: the revoke looks
// for shared grants before the new one is stored. The new one is not held either.
func TestWhatIsSharedOfAGrantThatIsRevokedMeanwhileIsNotHeld(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.engines, s.settings = 0, "" })
	wire := env.wire()
	slow := env.dial(roles.ID{Role: roles.EngineStore}, wire.url)
	defer slow.Close()
	env.engine(engine.Options{Store: slow})
	env.apply(everybody)
	ada := env.Agent("ada")
	ada.Asks(deploy("helper", "")).Drop()
	granted := env.Ann().Allows(ada.Asks(permission("S", "", "r", "@network"))).Grant
	env.soon("the outbox is idle", env.outboxIdle)

	stored := wire.holdOn("PUB $KV.permission_sessions.standing.session.helper.")
	answered := make(chan error, 1)
	go func() {
		_, err := ada.shares("S", "helper", "@network")
		answered <- err
	}()
	select {
	case <-stored:
	case <-env.ctx.Done():
		env.FailNow("the shared grant was not stored")
	}
	env.marksRevoked("S", granted.GrantID)
	wire.release()
	env.Equal("You can only grant permissions you already have.", env.refusal(<-answered, schemas.CodeForbidden).Message)
	env.Equal(map[string]bool{"S": true, "helper": true}, env.ended())
	ada.Asks(permission("helper", "", "r", "@network")).Drop()
}

// An interrupted revoke counts for all grants shared from the revoked one, and the
// next revoke finishes it.
func TestARevokeThatWasCutShortIsObeyedAndFinished(t *testing.T) {
	t.Parallel()
	env := start(t, atTheTerminal(t))
	ada := env.Agent("ada")
	for _, session := range []string{"helper", "third", "apart"} {
		ada.Asks(deploy(session, "")).Drop()
	}
	me := env.person("terminal", me(t))
	granted := me.Allows(ada.Asks(permission("S", "", "r", "@network"))).Grant
	first, err := ada.shares("S", "helper", "@network")
	env.NoError(err)
	_, err = ada.shares("helper", "third", "@network")
	env.NoError(err)
	me.Allows(ada.Asks(permission("apart", "", "r", "@network")))
	env.Equal(schemas.Allowed, ada.Gets(permission("third", "", "r", "@network")).Outcome)

	env.marksRevoked("S", granted.GrantID)
	ada.Asks(permission("third", "", "r", "@network")).Drop()
	s, err := ada.holds("third")
	env.NoError(err)
	env.Empty(s.Grants)
	s, err = env.owner().Session(env.ctx, "third")
	env.NoError(err)
	env.Empty(s.Grants, "nor does the owner see a grant in it")

	env.marksRevoked("helper", first.GrantID)
	env.Equal(map[string]bool{"S": true, "helper": true, "third": false, "apart": false}, env.ended())
	env.says(env.nod("revoke", granted.GrantID), 0, "revoked", "")
	env.Equal(map[string]bool{"S": true, "helper": true, "third": true, "apart": false}, env.ended())
}
