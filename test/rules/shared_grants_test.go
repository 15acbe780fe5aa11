package rules

import (
	"testing"
	"time"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// The function shares gives the permissions of one session to another session of the same agent. The
// parameter from is the id of the first session, and the parameter to is the id of the other.
func shares(a *rig.Agent, from, to string, tags ...string) (schemas.StandingAnswer, error) {
	var g schemas.Grants
	err := a.Conn.CallInto(a.Ctx, schemas.GrantSubject(a.Name), schemas.Share{Type: schemas.TypeShare, SessionID: from, AgentID: to, Permissions: tags, Reason: "r"}, &g)
	if err != nil {
		return schemas.StandingAnswer{}, err
	}
	return g.Grants[0], nil
}

// marksRevoked only marks a grant as revoked in the store, like a revocation that is interrupted after this
// step.
func marksRevoked(e *rig.Env, session, grant string) {
	e.T.Helper()
	key := "standing.session." + session + "." + grant
	var page schemas.Grants
	revision, err := e.Store.Sessions.Get(e.Ctx, key, &page)
	e.NoError(err)
	page.Grants[0].RevokedAt, page.Grants[0].RevokedBy = time.Now().UTC(), "test"
	_, err = e.Store.Sessions.Put(e.Ctx, key, page, revision, time.Hour)
	e.NoError(err)
}

// The function ended reports, by session, whether the session's grant is revoked.
func ended(e *rig.Env) map[string]bool {
	e.T.Helper()
	grants, err := e.Owner().Grants(e.Ctx, "")
	e.NoError(err)
	all := map[string]bool{}
	for _, g := range grants {
		all[g.SessionID] = !g.RevokedAt.IsZero()
	}
	return all
}

// A grant is revoked while an engine shares it with another session. The other session does not get the
// permission, although the revocation has looked for shared grants before the engine stores the new one.
func TestSharingARevokedGrantGivesNothing(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, rig.OverTheNetwork, func(s *rig.Setup) { s.Engines, s.Settings = 0, "" })
	wire := env.Wire()
	slow := env.Dial(roles.ID{Role: roles.EngineStore}, wire.URL)
	defer slow.Close()
	env.Engine(engine.Options{Store: slow})
	env.Apply(rig.Everybody)
	ada := env.Agent("ada")
	ada.Asks(rig.Deploy("helper", "")).Drop()
	granted := env.Ann().Allows(ada.Asks(rig.Permission("S", "", "r", "@network"))).Grant
	env.Soon("the outbox is idle", env.OutboxIdle)

	stored := wire.HoldOn("PUB $KV.permission_sessions.standing.session.helper.")
	answered := make(chan error, 1)
	go func() {
		_, err := shares(ada, "S", "helper", "@network")
		answered <- err
	}()
	select {
	case <-stored:
	case <-env.Ctx.Done():
		env.FailNow("the shared grant was not stored")
	}
	marksRevoked(env, "S", granted.GrantID)
	wire.Release()
	env.Equal("You can only grant permissions you already have.", env.Refusal(<-answered, schemas.CodeForbidden).Message)
	env.Equal(map[string]bool{"S": true, "helper": true}, ended(env))
	ada.Asks(rig.Permission("helper", "", "r", "@network")).Drop()
}

// If a revocation is interrupted, the grants that were shared from the revoked grant end too. A second
// revocation of the same grant completes the first one.
func TestAnInterruptedRevokeTakesEffectAndIsCompleted(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, rig.AtTheTerminal(t))
	ada := env.Agent("ada")
	for _, session := range []string{"helper", "third", "apart"} {
		ada.Asks(rig.Deploy(session, "")).Drop()
	}
	me := env.Person("terminal", rig.Me(t))
	granted := me.Allows(ada.Asks(rig.Permission("S", "", "r", "@network"))).Grant
	first, err := shares(ada, "S", "helper", "@network")
	env.NoError(err)
	_, err = shares(ada, "helper", "third", "@network")
	env.NoError(err)
	me.Allows(ada.Asks(rig.Permission("apart", "", "r", "@network")))
	env.Equal(schemas.Allowed, ada.Gets(rig.Permission("third", "", "r", "@network")).Outcome)

	marksRevoked(env, "S", granted.GrantID)
	ada.Asks(rig.Permission("third", "", "r", "@network")).Drop()
	s, err := ada.Holds("third")
	env.NoError(err)
	env.Empty(s.Grants)
	s, err = env.Owner().Session(env.Ctx, "third")
	env.NoError(err)
	env.Empty(s.Grants, "nor does the owner see a grant in it")

	marksRevoked(env, "helper", first.GrantID)
	env.Equal(map[string]bool{"S": true, "helper": true, "third": false, "apart": false}, ended(env))
	env.Exits(env.Nod("revoke", granted.GrantID), 0, "revoked", "")
	env.Equal(map[string]bool{"S": true, "helper": true, "third": true, "apart": false}, ended(env))
}
