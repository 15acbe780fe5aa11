package test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
)

// An approver gets on the phone a link that logs in to the web inbox once. Users
// without a web identity get none, and no code makes a user an approver.
func TestAPassFromThePhoneLetsInOnce(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) {
		s.settings = `{"connectors": {"web": {"public_url": "https://nod.example.com"}}, "approvers": {"people": [
			{"name": "Ann", "identities": [{"connector": "web", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]},
			{"name": "Bob", "identities": [{"connector": "tg", "user_id": "8"}]}]}}`
	})
	tg, web := env.person("tg", "7"), env.person("web", "ann")
	p, err := tg.LoginLink(env.ctx, schemas.From{UserID: "7"})
	env.NoError(err)
	env.Equal("https://nod.example.com", p.URL)
	_, err = tg.RedeemLoginCode(env.ctx, p.Code)
	env.refusal(err, schemas.CodeValidation) // only the web connector redeems codes
	user, err := web.RedeemLoginCode(env.ctx, p.Code)
	env.NoError(err)
	env.Equal("ann", user)
	_, err = web.RedeemLoginCode(env.ctx, p.Code)
	env.refusal(err, schemas.CodeNotFound)
	_, err = web.RedeemLoginCode(env.ctx, "made-up")
	env.refusal(err, schemas.CodeNotFound)

	_, err = tg.LoginLink(env.ctx, schemas.From{UserID: "8"})
	env.Contains(env.refusal(err, schemas.CodeForbidden).Message, "Bob has no identity on the web")
	_, err = tg.LoginLink(env.ctx, schemas.From{UserID: "9"})
	env.refusal(err, schemas.CodeForbidden)
	_, err = web.LoginLink(env.ctx, schemas.From{UserID: "ann"})
	env.refusal(err, schemas.CodeValidation)
}

// Of several clients that spend one code of the inbox's own at the same time, one
// succeeds, and the code stays spent.
func TestACodeIsSpentOnce(t *testing.T) {
	t.Parallel()
	env := start(t)
	web, tg, until := env.Bob(), env.person("tg", "7"), time.Now().Add(time.Hour)
	spent, err := web.LoginCodeSpent(env.ctx, "code")
	env.NoError(err)
	env.False(spent)
	var first atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			won, err := web.SpendLoginCode(env.ctx, "code", until)
			env.NoError(err)
			if won {
				first.Add(1)
			}
		})
	}
	all.Wait()
	env.EqualValues(1, first.Load())
	spent, err = web.LoginCodeSpent(env.ctx, "code")
	env.NoError(err)
	env.True(spent)
	spent, err = web.LoginCodeSpent(env.ctx, "another")
	env.NoError(err)
	env.False(spent)

	won, err := web.SpendLoginCode(env.ctx, "late", time.Now().Add(-time.Hour))
	env.NoError(err)
	env.False(won, "an expired code cannot be spent")
	_, err = web.SpendLoginCode(env.ctx, "for ever", time.Now().Add(1000*time.Hour))
	env.refusal(err, schemas.CodeValidation)
	_, err = tg.SpendLoginCode(env.ctx, "code", until)
	env.refusal(err, schemas.CodeValidation) // only the web connector spends codes
}
