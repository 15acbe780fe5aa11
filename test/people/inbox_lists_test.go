package people

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// A list that is too long for one message of the bus arrives complete, in several messages.
func TestListsOfLongRequestsAreWhole(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAnApproverRevokesThroughAnInbox reads lists")
	env := rig.Start(t)
	long := strings.Repeat("x", 200<<10)
	var questions []*rig.Question
	var want []string
	for i := range 9 {
		r := rig.Deploy("S", fmt.Sprint("r", i))
		r.ActionDetails = fmt.Appendf(nil, `{"text":%q}`, fmt.Sprint(i, long))
		want = append(want, r.PendingID)
		questions = append(questions, env.Agent("ada").Asks(r))
	}
	pending, err := env.Bob().Pending(env.Ctx, schemas.Query{})
	env.NoError(err)
	env.Equal(want, idsOf(pending))
	env.Empty(decidedIn(env, ""))

	for _, q := range questions[:8] {
		env.Bob().Denies(q)
	}
	history := decidedIn(env, "S")
	env.Equal(want[:8], idsOf(history))
	for _, p := range history {
		env.Equal(schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "web"}, p.Decision.By)
	}
	env.Empty(decidedIn(env, "T"))
	pending, err = env.Bob().Pending(env.Ctx, schemas.Query{})
	env.NoError(err)
	env.Equal(want[8:], idsOf(pending))
}

// decidedIn returns the decided requests of a session, or of all sessions.
func decidedIn(env *rig.Env, session string) (all []schemas.Prompt) {
	env.NoError(env.Bob().EachDecided(env.Ctx, session, func(page []schemas.Prompt) error {
		all = append(all, page...)
		return nil
	}))
	return all
}

func idsOf(prompts []schemas.Prompt) []string {
	ids := []string{}
	for _, p := range prompts {
		ids = append(ids, p.PendingID)
	}
	return ids
}

// An inbox can revoke a grant in the name of an approver, which nod stores, but not in the name of another
// user.
func TestAnApproverRevokesThroughAnInbox(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Bob().Remembers(env.Agent("ada").Asks(rig.Shell("S", "one", "npm test")), schemas.ScopeSession, 0)
	grants, err := env.Bob().Grants(env.Ctx, "S")
	env.NoError(err)
	env.Len(grants, 1)
	env.Refusal(env.Bob().Revoke(env.Ctx, &grants[0], "eve"), schemas.CodeForbidden)
	env.NoError(env.Bob().Revoke(env.Ctx, &grants[0], "bob"))
	grants, err = env.Bob().Grants(env.Ctx, "S")
	env.NoError(err)
	env.Len(grants, 1)
	env.Equal("Bob", grants[0].RevokedBy)
	env.Agent("ada").Asks(rig.Shell("S", "two", "npm test")) // nod asks a person again
}

// A person's list on a phone names the person's time zone. Lists for viewers name no time zone.
func TestAListHasTheRecipientsZone(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAnApproverRevokesThroughAnInbox reads lists")
	env := rig.Start(t, func(s *rig.Setup) {
		s.Settings = strings.Replace(rig.WithCarrier, `"name": "Ann",`, `"name": "Ann", "time_zone": "Europe/Berlin",`, 1)
	})
	env.Carrier()
	env.Agent("ada").Asks(rig.Deploy("S", "q"))
	phone := connector.NewDesk(env.Conn(roles.ConnectorID("tg")), "tg")
	listed, err := phone.Pending(env.Ctx, schemas.Query{Recipient: "1001"})
	env.NoError(err)
	env.Len(listed, 1)
	env.Equal("Europe/Berlin", listed[0].Zone)
	listed, err = env.Bob().Pending(env.Ctx, schemas.Query{})
	env.NoError(err)
	env.Len(listed, 1)
	env.Empty(listed[0].Zone)
}
