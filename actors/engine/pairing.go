package engine

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
	// pairingKept is how long a pairing waits for its code. After wrongCodes wrong codes the
	// pairing accepts no code.
	pairingKept = 10 * time.Minute
	wrongCodes  = 5
)

func pairingKey(connector string) string { return "pairing." + connector }

// pair opens a pairing for an inbox, or returns the state of the pairing. For a carrier, pair claims
// the pairing whose code a person has sent to that carrier.
func (e *admin) pair(ctx context.Context, c *caller, request *schemas.Pairing) (p schemas.Pairing, err error) {
	switch inbox := schemas.IsViewer(c.name); {
	case !inbox && request.Code != "" && request.From != nil:
		p, err = e.claimPairing(ctx, c.name, request)
	case inbox && request.Connector != "" && request.Code != "":
		p, err = e.openPairing(ctx, request)
	case inbox && request.Connector != "":
		_, err = e.store.Settings.Get(ctx, pairingKey(request.Connector), &p)
		if errors.Is(err, bus.ErrNotFound) {
			err = schemas.Errorf(schemas.CodeNotFound, "no pairing on %s waits for a code any more: ask for a new code", request.Connector)
		}
	default:
		err = schemas.Errorf(schemas.CodeValidation, "code: a pairing is opened with a connector and a code, and claimed on that connector with the code")
	}
	p.Code, p.CodeHash = "", ""
	return p, err
}

// openPairing opens a pairing on a connector. It replaces an older pairing.
func (e *admin) openPairing(ctx context.Context, p *schemas.Pairing) (schemas.Pairing, error) {
	open, _, err := bus.Change(ctx, e.store.Settings, pairingKey(p.Connector), func(stored *schemas.Pairing, _ bool) (bus.Edit, error) {
		*stored = schemas.Pairing{
			Type: schemas.TypePairing, Connector: p.Connector,
			CodeHash: schemas.HashCode(p.Code), Until: e.clock.now().Add(pairingKept),
		}
		return bus.Edit{Store: true, Kept: pairingKept}, nil
	})
	return open, err
}

// claimPairing binds a pairing to the person who sent its code. A second person with the same
// code gets NOT_FOUND.
func (e *admin) claimPairing(ctx context.Context, connector string, claim *schemas.Pairing) (schemas.Pairing, error) {
	none := schemas.Errorf(schemas.CodeNotFound, "no pairing waits for that code: ask for one with `nod pair %s`", connector)
	right := false
	open, _, err := bus.Change(ctx, e.store.Settings, pairingKey(connector), func(open *schemas.Pairing, found bool) (bus.Edit, error) {
		if !found {
			return bus.Edit{}, none
		}
		right = subtle.ConstantTimeCompare([]byte(open.CodeHash), []byte(schemas.HashCode(claim.Code))) == 1
		switch {
		case right && open.From != nil && open.From.UserID == claim.From.UserID:
			return bus.Edit{}, nil // the channel has delivered the person's code twice
		case open.From != nil || open.Tries >= wrongCodes || !e.clock.now().Before(open.Until):
			return bus.Edit{}, none
		case right:
			open.From = claim.From
		default:
			open.Tries++
		}
		return bus.Edit{Store: true, Kept: open.Until.Sub(e.clock.now()).Round(time.Second) + time.Second}, nil
	})
	if err == nil && !right {
		err = none
	}
	return open, err
}
