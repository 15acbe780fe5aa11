package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

func TestASessionHasAtMost4096PendingRequests(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	q := ada.Asks(rig.Deploy("S", "before"))
	nc := env.RawConn(roles.ID{Role: roles.OwnerStore})
	for i := range 4096 { // the engine counts each armed timer of a session as a pending request
		env.NoError(nc.Publish(schemas.TimerSubject(schemas.Key("S", fmt.Sprint("open-", i))), []byte("{}")))
	}
	env.Soon("all timers are armed", func() bool { return len(env.Armed()) > 4096 })
	refused := ada.Refused(rig.Deploy("S", "one-more"), schemas.CodeForbidden)
	env.Contains(refused.Message, "which is the most: answer or withdraw some first")
	env.Equal(q.Receipt, ada.Asks(rig.Deploy("S", "before")).Receipt, "a pending request stays pending")
	env.Equal(schemas.Allowed, ada.Gets(rig.Lookup("S", "ruled")).Outcome)
	ada.Asks(rig.Deploy("T", "elsewhere"))
}

// Other sessions may share at most 256 grants with one session.
func TestASessionTakesAtMost256SharedGrants(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	for _, session := range []string{"S", "helper"} {
		ada.Asks(rig.Deploy(session, "")).Drop()
	}
	env.Ann().Allows(ada.Asks(rig.Permission("S", "", "r", "@network")))
	for i := range 256 {
		g := schemas.StandingAnswer{
			GrantID: fmt.Sprint("g-", i), Scope: schemas.ScopeSession, SessionID: "helper", Agent: "ada", Permissions: []string{fmt.Sprint("@read:/srv/", i)},
			By: schemas.By{Kind: schemas.ByAgent, Name: "S"}, CreatedAt: time.Now().UTC(),
		}
		_, err := env.Store.Sessions.Put(env.Ctx, "standing.session.helper."+g.GrantID, schemas.Grants{Type: schemas.TypeGrants, Grants: []schemas.StandingAnswer{g}}, 0, 0)
		env.NoError(err)
	}
	var g schemas.Grants
	err := ada.Conn.CallInto(env.Ctx, schemas.GrantSubject("ada"), schemas.Share{
		Type: schemas.TypeShare, SessionID: "S", AgentID: "helper", Permissions: []string{"@network"}, Reason: "it fetches",
	}, &g)
	env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "which is the limit")
	held, err := env.Owner().Grants(env.Ctx, "helper")
	env.NoError(err)
	env.Len(held, 256)
}
