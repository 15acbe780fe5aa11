package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// A session may have at most 4096 pending requests; other sessions are not affected.
func TestASessionHasSoManyRequestsOpen(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	q := ada.Asks(deploy("S", "before"))
	nc := env.rawConn(roles.ID{Role: roles.OwnerStore})
	for i := range 4096 { // each timer counts as a pending request
		env.NoError(nc.Publish(schemas.TimerSubject(schemas.Key("S", fmt.Sprint("open-", i))), []byte("{}")))
	}
	env.soon("all timers are armed", func() bool { return len(env.armed()) > 4096 })
	refused := ada.Refused(deploy("S", "one-more"), schemas.CodeForbidden)
	env.Contains(refused.Message, "which is the most: answer or withdraw some first")
	env.Equal(q.Receipt, ada.Asks(deploy("S", "before")).Receipt, "a pending request stays pending")
	env.Equal(schemas.Allowed, ada.Gets(lookup("S", "ruled")).Outcome)
	ada.Asks(deploy("T", "elsewhere"))
}

// A session may be given at most 256 grants by other sessions.
func TestASessionIsGivenSoMuchByOthers(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	for _, session := range []string{"S", "helper"} {
		ada.Asks(deploy(session, "")).Drop()
	}
	env.Ann().Allows(ada.Asks(permission("S", "", "r", "@network")))
	for i := range 256 {
		g := schemas.StandingAnswer{
			GrantID: fmt.Sprint("g-", i), Scope: schemas.ScopeSession, SessionID: "helper", Agent: "ada", Permissions: []string{fmt.Sprint("@read:/srv/", i)},
			By: schemas.By{Kind: schemas.ByAgent, Name: "S"}, CreatedAt: time.Now().UTC(),
		}
		_, err := env.store.Sessions.Put(env.ctx, "standing.session.helper."+g.GrantID, schemas.Grants{Type: schemas.TypeGrants, Grants: []schemas.StandingAnswer{g}}, 0, 0)
		env.NoError(err)
	}
	var g schemas.Grants
	err := ada.conn.CallInto(env.ctx, schemas.GrantSubject("ada"), schemas.Share{
		Type: schemas.TypeShare, SessionID: "S", AgentID: "helper", Permissions: []string{"@network"}, Reason: "it fetches",
	}, &g)
	env.Contains(env.refusal(err, schemas.CodeForbidden).Message, "which is the most")
	held, err := env.owner().Grants(env.ctx, "helper")
	env.NoError(err)
	env.Len(held, 256)
}
