package people

import (
	"testing"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// A carrier sees only the requests that are routed to it, and each recipient only the requests that
// are routed to this recipient. Any other request gets the same refusal as an unknown one.
func TestACarrierSeesOnlyRequestsRoutedToIt(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	foreign := env.Agent("ada").Asks(rig.Deploy("S", "before"))
	env.Apply(`{"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]},
		{"name": "Bob", "identities": [{"connector": "tg", "user_id": "4712"}]}
	]}}`)
	own := env.Agent("ada").Asks(rig.Deploy("S", "after"))
	for recipient, want := range map[string][]string{"": {"after"}, "4712": {"after"}, "4711": nil} {
		prompts, err := env.Person("tg", "4712").Pending(env.Ctx, schemas.Query{Recipient: recipient})
		env.NoError(err)
		var ids []string
		for _, p := range prompts {
			ids = append(ids, p.PendingID)
		}
		env.Equal(want, ids, "for %q", recipient)
	}
	_, _, err := env.Person("tg", "4712").Show(env.Ctx, "S", own.Receipt.PendingID)
	env.NoError(err)
	_, _, err = env.Person("tg", "4712").Show(env.Ctx, "S", foreign.Receipt.PendingID)
	of := env.Refusal(err, schemas.CodeNotFound)
	_, _, err = env.Person("tg", "4712").Show(env.Ctx, "S", "nothing")
	env.Refusal(err, schemas.CodeNotFound)
	env.NotContains(of.Message, "Deploy")
	all, err := env.Ann().Pending(env.Ctx, schemas.Query{})
	env.NoError(err)
	env.Len(all, 2)
}

// A connector names a request by its whole id, because a shortened id may be the whole id of
// another request, which nod no longer keeps. Only a person who types an id may shorten it.
func TestAConnectorNamesTheWholeID(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Agent("ada").Asks(rig.Deploy("S", "deploy-1"))
	desk := env.Ann().Desk
	p, _, err := desk.Find(env.Ctx, "S", "deploy")
	env.NoError(err)
	env.Equal("deploy-1", p.PendingID)
	_, _, err = desk.Show(env.Ctx, "S", "deploy-1")
	env.NoError(err)
	_, _, err = desk.Show(env.Ctx, "S", "deploy")
	env.Refusal(err, schemas.CodeNotFound)

	env.Agent("ada").Asks(rig.Deploy("S", "deploy-2"))
	_, _, err = desk.Find(env.Ctx, "S", "deploy")
	env.Refusal(err, schemas.CodeValidation)
	_, _, err = desk.Show(env.Ctx, "S", "deploy")
	env.Refusal(err, schemas.CodeNotFound)
}

// Inboxes may read a session's state and activity; carriers have no right to do so.
func TestACarrierMayNotReadSessions(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Agent("ada").Asks(rig.Deploy("S", "q"))
	_, err := env.Person("tg", "7").Session(env.Ctx, "S")
	env.Refusal(err, schemas.CodeForbidden)
	_, err = env.Bob().Session(env.Ctx, "S")
	env.NoError(err)
}
