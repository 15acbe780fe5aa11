package test

import (
	"testing"

	"github.com/nodbus/nod/schemas"
)

// A carrier sees the requests routed to it, and each of its recipients those routed to
// them. Requests routed elsewhere are refused like unknown ones.
func TestACarrierSeesWhatWasRoutedToIt(t *testing.T) {
	t.Parallel()
	env := start(t)
	foreign := env.Agent("ada").Asks(deploy("S", "before"))
	env.apply(`{"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]},
		{"name": "Bob", "identities": [{"connector": "tg", "user_id": "4712"}]}
	]}}`)
	own := env.Agent("ada").Asks(deploy("S", "after"))
	for recipient, want := range map[string][]string{"": {"after"}, "4712": {"after"}, "4711": nil} {
		prompts, err := env.person("tg", "4712").Pending(env.ctx, schemas.Query{Recipient: recipient})
		env.NoError(err)
		var ids []string
		for _, p := range prompts {
			ids = append(ids, p.PendingID)
		}
		env.Equal(want, ids, "for %q", recipient)
	}
	_, _, err := env.person("tg", "4712").Show(env.ctx, "S", own.Receipt.PendingID)
	env.NoError(err)
	_, _, err = env.person("tg", "4712").Show(env.ctx, "S", foreign.Receipt.PendingID)
	of := env.refusal(err, schemas.CodeNotFound)
	_, _, err = env.person("tg", "4712").Show(env.ctx, "S", "nothing")
	env.refusal(err, schemas.CodeNotFound)
	env.NotContains(of.Message, "Deploy")
	all, err := env.Ann().Pending(env.ctx, schemas.Query{})
	env.NoError(err)
	env.Len(all, 2)
}

// Inboxes may read a session's state and activity; carriers may not.
func TestACarrierDoesNotLookIntoSessions(t *testing.T) {
	t.Parallel()
	env := start(t)
	env.Agent("ada").Asks(deploy("S", "q"))
	_, err := env.person("tg", "7").Session(env.ctx, "S")
	env.refusal(err, schemas.CodeForbidden)
	_, err = env.Bob().Session(env.ctx, "S")
	env.NoError(err)
}
