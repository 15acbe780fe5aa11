package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// maxSpent bounds the remaining lifetime of a login code that is reported as used, because the engine
// stores the use until the code expires. spentSlack is added to that time, because the clocks of two
// machines differ.
const (
	maxSpent   = 30 * 24 * time.Hour
	spentSlack = time.Minute
)

func passKey(code string) string  { return "pass." + schemas.HashCode(code) }
func spentKey(code string) string { return "spent." + schemas.HashCode(code) }
func loginKey(code string) string { return "login." + schemas.HashCode(code) }

// loginCode handles login codes. A carrier requests a code for an approver, and the web inbox redeems
// it. Codes that the web inbox has signed itself, and ids of messages that a carrier has received, are
// only checked or marked as used. The web inbox also reads and writes the logins of its sessions at an
// issuer.
func (e *admin) loginCode(ctx context.Context, c *caller, p *schemas.LoginCode) (schemas.LoginCode, error) {
	isWeb := c.name == schemas.ConnectorWeb
	switch {
	case p.Code != "" && p.Op != "" && (isWeb || !schemas.IsViewer(c.name)):
		if !isWeb {
			p.Code = c.name + "/" + p.Code // the prefix keeps a carrier from marking a code of the web inbox or another carrier's message
		}
		switch {
		case p.Op == schemas.CheckLoginCode:
			return e.checkSpent(ctx, p.Code)
		case p.Op == schemas.SpendLoginCode:
			return e.spend(ctx, p)
		case isWeb && p.Op == schemas.LoadLogin:
			return e.loadLogin(ctx, p.Code)
		case isWeb && p.Op == schemas.StoreLogin:
			return e.storeLogin(ctx, p)
		}
	case isWeb && p.Code != "":
		return e.redeem(ctx, p.Code)
	case !schemas.IsViewer(c.name) && p.From != nil:
		return e.issue(ctx, c.name, p.From)
	}
	return schemas.LoginCode{}, schemas.Errorf(schemas.CodeValidation, "code: a carrier asks for a login code for an approver, and the web inbox exchanges it")
}

func (e *admin) issue(ctx context.Context, connector string, from *schemas.From) (schemas.LoginCode, error) {
	who, err := e.approver(ctx, connector, from)
	if err != nil {
		return schemas.LoginCode{}, err
	}
	i := slices.IndexFunc(who.Identities, func(id schemas.Identity) bool {
		return id.Connector == schemas.ConnectorWeb && !schemas.IsLoginUser(id.UserID)
	})
	web := e.settings.now().settings.Connectors.Web
	switch {
	case i < 0 && slices.ContainsFunc(who.Identities, func(id schemas.Identity) bool { return id.Connector == schemas.ConnectorWeb }):
		return schemas.LoginCode{}, schemas.Errorf(schemas.CodeForbidden, "%s logs in to the web inbox at the issuer of connectors.web.oidc, and has no login links: open the inbox's address", who.Name)
	case i < 0:
		return schemas.LoginCode{}, schemas.Errorf(schemas.CodeForbidden, `%s has no identity on the web: add {"connector": "web", "user_id": "…"} to theirs in settings.json`, who.Name)
	case web == nil || web.PublicURL == "":
		return schemas.LoginCode{}, schemas.Errorf(schemas.CodeForbidden, "the web inbox can only be reached on its own machine: set connectors.web.public_url in settings.json")
	}
	code := bus.NewID() + bus.NewID()
	p := schemas.LoginCode{Type: schemas.TypeLoginCode, UserID: who.Identities[i].UserID, Until: e.clock.now().Add(pairingKept)}
	if _, err := e.store.Settings.Put(ctx, passKey(code), p, 0, pairingKept); err != nil {
		return p, err
	}
	p.Code, p.URL = code, web.PublicURL
	return p, nil
}

// redeem returns the web user of a login code, which works once: redeem removes the code first.
// NOT_FOUND means that the code is unknown, expired or used.
func (e *admin) redeem(ctx context.Context, code string) (schemas.LoginCode, error) {
	none := schemas.Errorf(schemas.CodeNotFound, "that link was used, or is too old: ask for another")
	var p schemas.LoginCode
	revision, err := e.store.Settings.Get(ctx, passKey(code), &p)
	if errors.Is(err, bus.ErrNotFound) || err == nil && (!e.clock.now().Before(p.Until) || schemas.HasLater(&p)) {
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

// spend marks as used a login code that the web inbox has signed itself, or the id of a message. If
// several tries use the same code, exactly one try gets a reply without Spent. If that try is
// repeated, its repetition gets the same reply.
func (e *admin) spend(ctx context.Context, p *schemas.LoginCode) (schemas.LoginCode, error) {
	left := p.Until.Sub(e.clock.now())
	if left > maxSpent || p.Try == "" {
		return schemas.LoginCode{}, schemas.Errorf(schemas.CodeValidation, "until: a code is spent by a named try, for at most %s", schemas.FormatDuration(maxSpent))
	}
	spent := schemas.LoginCode{Type: schemas.TypeLoginCode, Try: p.Try, Until: p.Until}
	if left+spentSlack <= 0 { // the code has expired, so its use is no longer stored
		spent.Spent = true
		return spent, nil
	}
	_, err := e.store.Settings.Put(ctx, spentKey(p.Code), spent, 0, left+spentSlack+time.Second)
	if errors.Is(err, bus.ErrMoved) {
		spent.Spent, err = true, nil
	}
	return spent, err
}

// checkSpent reports whether a login code that the web inbox has signed was used.
func (e *admin) checkSpent(ctx context.Context, code string) (schemas.LoginCode, error) {
	p, revision, err := e.readCode(ctx, spentKey(code))
	p.Spent = revision > 0
	return p, err
}

// loadLogin returns the login of a web session, or a reply without Sealed if none is stored.
func (e *admin) loadLogin(ctx context.Context, session string) (schemas.LoginCode, error) {
	p, revision, err := e.readCode(ctx, loginKey(session))
	p.Revision = revision
	return p, err
}

// readCode returns the login code that is stored under a key, and its revision. If none is stored,
// it returns a login code without content and the revision 0.
func (e *admin) readCode(ctx context.Context, key string) (p schemas.LoginCode, revision uint64, err error) {
	revision, err = e.store.Settings.Get(ctx, key, &p)
	if errors.Is(err, bus.ErrNotFound) {
		return schemas.LoginCode{Type: schemas.TypeLoginCode}, 0, nil
	}
	return p, revision, err
}

// storeLogin writes or removes the login of a web session. If several writers start from the same
// revision, one succeeds, and the others get CONFLICT.
func (e *admin) storeLogin(ctx context.Context, p *schemas.LoginCode) (schemas.LoginCode, error) {
	stored := schemas.LoginCode{Type: schemas.TypeLoginCode, Sealed: p.Sealed, Until: p.Until}
	left := p.Until.Sub(e.clock.now())
	var err error
	switch key := loginKey(p.Code); {
	case len(p.Sealed) == 0:
		err = e.store.Settings.Remove(ctx, key, p.Revision)
	case left <= 0 || left > maxSpent:
		return schemas.LoginCode{}, schemas.Errorf(schemas.CodeValidation, "until: a login is stored until the end of its session, for at most %s", schemas.FormatDuration(maxSpent))
	default:
		revision := p.Revision
		if revision == 0 { // the write must name the revision of the removed login's key
			var old schemas.LoginCode
			at, err := e.store.Settings.Get(ctx, key, &old)
			if !errors.Is(err, bus.ErrNotFound) {
				return schemas.LoginCode{}, errors.Join(err, loginMoved())
			}
			revision = at
		}
		stored.Revision, err = e.store.Settings.Put(ctx, key, stored, revision, left+time.Second)
	}
	if errors.Is(err, bus.ErrMoved) {
		err = loginMoved()
	}
	stored.Sealed = ""
	return stored, err
}

func loginMoved() error {
	return schemas.Errorf(schemas.CodeConflict, "another web inbox has written the login of this session: read it again")
}
