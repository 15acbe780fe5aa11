package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

func passKey(code string) string { return "pass." + schemas.HashCode(code) }

// pass makes a code for somebody whom a carrier vouches for, or tells the web
// inbox whose a code is, once.
func (e *Engine) pass(ctx context.Context, c *bus.Call) error {
	var p schemas.Pass
	if err := schemas.Decode(c.Data, &p); err != nil {
		return err
	}
	var err error
	switch {
	case c.Tokens[0] == schemas.ConnectorWeb && p.Code != "":
		p, err = e.redeem(ctx, p.Code)
	case !schemas.Inbox(c.Tokens[0]) && p.From != nil:
		p, err = e.issue(ctx, c.Tokens[0], p.From.UserID)
	default:
		err = schemas.Errorf(schemas.CodeValidation, "code: carriers ask for a pass for somebody, and the web exchanges its code")
	}
	if err != nil {
		return err
	}
	c.Reply(p)
	return nil
}

func (e *Engine) issue(ctx context.Context, connector, userID string) (schemas.Pass, error) {
	who, err := e.approver(ctx, connector, userID)
	if err != nil {
		return schemas.Pass{}, err
	}
	i := slices.IndexFunc(who.Identities, func(id schemas.Identity) bool { return id.Connector == schemas.ConnectorWeb })
	web := e.settings.now().settings.Connectors.Web
	switch {
	case i < 0:
		return schemas.Pass{}, schemas.Errorf(schemas.CodeForbidden, `%s has no identity on the web: add {"connector": "web", "user_id": "…"} to theirs in settings.json`, who.Name)
	case web == nil || web.PublicURL == "":
		return schemas.Pass{}, schemas.Errorf(schemas.CodeForbidden, "the web inbox is reached on its own machine alone: set connectors.web.public_url in settings.json")
	}
	code := bus.NewID() + bus.NewID()
	p := schemas.Pass{Type: schemas.TypePass, UserID: who.Identities[i].UserID, Until: e.clock.now().Add(pairingKept)}
	if _, err := e.store.Settings.Put(ctx, passKey(code), p, 0, pairingKept); err != nil {
		return p, err
	}
	p.Code, p.URL = code, web.PublicURL
	return p, nil
}

// redeem is whose a code is. Removing it is what makes it count once.
func (e *Engine) redeem(ctx context.Context, code string) (schemas.Pass, error) {
	none := schemas.Errorf(schemas.CodeNotFound, "that link was used, or is too old: ask for another")
	var p schemas.Pass
	revision, err := e.store.Settings.Get(ctx, passKey(code), &p)
	if errors.Is(err, bus.ErrNotFound) || err == nil && !e.clock.now().Before(p.Until) {
		return p, none
	}
	if err == nil {
		err = e.store.Settings.Remove(ctx, passKey(code), revision)
	}
	if errors.Is(err, bus.ErrMoved) {
		err = none
	}
	return p, err
}
