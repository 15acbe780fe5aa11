package test

import (
	"testing"

	"github.com/nodbus/nod/schemas"
)

// Whom a phone vouches for gets a link to the web inbox, good once; nobody else
// does, and no code makes anybody an approver.
func TestAPassFromThePhoneLetsInOnce(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) {
		s.settings = `{"connectors": {"web": {"public_url": "https://nod.example.com"}}, "approvers": {"people": [
			{"name": "Ann", "identities": [{"connector": "web", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]},
			{"name": "Bob", "identities": [{"connector": "tg", "user_id": "8"}]}]}}`
	})
	tg, web := env.person("tg", "7"), env.person("web", "ann")
	p, err := tg.Pass(env.ctx, schemas.From{UserID: "7"})
	env.NoError(err)
	env.Equal("https://nod.example.com", p.URL)
	_, err = tg.Redeem(env.ctx, p.Code)
	env.refusal(err, schemas.CodeValidation) // the web alone exchanges it
	user, err := web.Redeem(env.ctx, p.Code)
	env.NoError(err)
	env.Equal("ann", user)
	_, err = web.Redeem(env.ctx, p.Code)
	env.refusal(err, schemas.CodeNotFound)
	_, err = web.Redeem(env.ctx, "made-up")
	env.refusal(err, schemas.CodeNotFound)

	_, err = tg.Pass(env.ctx, schemas.From{UserID: "8"})
	env.Contains(env.refusal(err, schemas.CodeForbidden).Message, "Bob has no identity on the web")
	_, err = tg.Pass(env.ctx, schemas.From{UserID: "9"})
	env.refusal(err, schemas.CodeForbidden)
	_, err = web.Pass(env.ctx, schemas.From{UserID: "ann"})
	env.refusal(err, schemas.CodeValidation)
}
