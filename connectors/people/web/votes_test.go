package web_test

import (
	"errors"
	"testing"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/schemas"
)

// When another person votes, an open page shows the vote at once.
func TestAnOpenPageShowsTheVoteOfAnotherPerson(t *testing.T) {
	t.Parallel()
	r := start(t)
	owner := connector.NewOwner(r.connect(roles.ID{Role: roles.Owner}), web.Name)
	_, err := owner.ApplySettings(r.ctx, under(`"confirm": [{"risk": "low", "votes": 2}]`))
	r.NoError(err)
	q := r.asks("S", "one", `{"to":"production"}`)
	p := r.visits("ann", 1024, 768)
	p.opens("one")
	const shows = "document.querySelector('dialog').innerText.includes"
	p.sees(shows + "('0 of 2')")
	desk := connector.NewDesk(r.connect(roles.ConnectorID(schemas.ConnectorTerminal)), schemas.ConnectorTerminal)
	_, err = desk.Answer(r.ctx, schemas.Answer{SessionID: "S", PendingID: "one", Digest: q.Receipt.Digest, OptionID: "allow_once", From: schemas.From{UserID: "bob"}})
	r.True(errors.Is(err, &schemas.Error{Code: schemas.CodeVoted}), "%v", err)
	p.sees(shows + "('1 of 2: Bob')")
	r.terminal("ann", "S", "one", "allow_once")
	p.sees(shows + "('Bob and Ann')")
}
