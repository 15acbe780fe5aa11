package people

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// On the phone, an approver can get a link to the web inbox that logs in once. A user who has no
// web identity or is no approver gets no link.
func TestALoginLinkFromThePhoneWorksOnce(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) {
		s.Settings = `{"connectors": {"web": {"public_url": "https://nod.example.com"}}, "approvers": {"people": [
			{"name": "Ann", "identities": [{"connector": "web", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]},
			{"name": "Bob", "identities": [{"connector": "tg", "user_id": "8"}]}]}}`
	})
	tg, web := env.Person("tg", "7"), env.Person("web", "ann")
	p, err := tg.LoginLink(env.Ctx, schemas.From{UserID: "7"})
	env.NoError(err)
	env.Equal("https://nod.example.com", p.URL)
	_, err = tg.RedeemLoginCode(env.Ctx, p.Code)
	env.Refusal(err, schemas.CodeValidation) // only the web connector redeems login codes
	user, err := web.RedeemLoginCode(env.Ctx, p.Code)
	env.NoError(err)
	env.Equal("ann", user)
	_, err = web.RedeemLoginCode(env.Ctx, p.Code)
	env.Refusal(err, schemas.CodeNotFound)
	_, err = web.RedeemLoginCode(env.Ctx, "made-up")
	env.Refusal(err, schemas.CodeNotFound)

	_, err = tg.LoginLink(env.Ctx, schemas.From{UserID: "8"})
	env.Contains(env.Refusal(err, schemas.CodeForbidden).Message, "Bob has no identity on the web")
	_, err = tg.LoginLink(env.Ctx, schemas.From{UserID: "9"})
	env.Refusal(err, schemas.CodeForbidden)
	_, err = web.LoginLink(env.Ctx, schemas.From{UserID: "ann"})
	env.Refusal(err, schemas.CodeValidation)
}

// If several clients use one login code at the same time, exactly one of them succeeds. The code
// cannot be used again.
func TestALoginCodeIsSpentOnce(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	web, tg, until := env.Bob(), env.Person("tg", "7"), time.Now().Add(time.Hour)
	spent, err := web.LoginCodeSpent(env.Ctx, "code")
	env.NoError(err)
	env.False(spent)
	var first atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			won, err := web.SpendLoginCode(env.Ctx, "code", until)
			env.NoError(err)
			if won {
				first.Add(1)
			}
		})
	}
	all.Wait()
	env.EqualValues(1, first.Load())
	spent, err = web.LoginCodeSpent(env.Ctx, "code")
	env.NoError(err)
	env.True(spent)
	spent, err = web.LoginCodeSpent(env.Ctx, "another")
	env.NoError(err)
	env.False(spent)

	won, err := web.SpendLoginCode(env.Ctx, "late", time.Now().Add(-time.Hour))
	env.NoError(err)
	env.False(won, "an expired code cannot be spent")
	_, err = web.SpendLoginCode(env.Ctx, "for ever", time.Now().Add(1000*time.Hour))
	env.Refusal(err, schemas.CodeValidation)
	won, err = tg.SpendLoginCode(env.Ctx, "another", until)
	env.NoError(err)
	env.True(won)
	spent, err = web.LoginCodeSpent(env.Ctx, "another")
	env.NoError(err)
	env.False(spent, "a carrier has no access to the codes of the web inbox")
}

// Several workers get the same message of a channel, and each of them tries to mark the message as handled.
// Exactly one worker succeeds. The mark counts only in this channel.
func TestAMessageIsMarkedOnce(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	tg, until := env.Person("tg", "7"), time.Now().Add(8*24*time.Hour)
	var first atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			won, err := tg.MarkHandled(env.Ctx, "wamid.A", until)
			env.NoError(err)
			if won {
				first.Add(1)
			}
		})
	}
	all.Wait()
	env.EqualValues(1, first.Load())
	for message, want := range map[string]bool{"wamid.A": true, "wamid.B": false} {
		handled, err := tg.Handled(env.Ctx, message)
		env.NoError(err)
		env.Equal(want, handled, message)
	}
	handled, err := env.Bob().Handled(env.Ctx, "wamid.A")
	env.NoError(err)
	env.False(handled, "another connector's")
}
