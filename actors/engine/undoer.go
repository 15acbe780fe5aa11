package engine

import (
	"context"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// undoFilter is which standing answers a connector may list and end: all of them if its
// people look for themselves, and through a carrier those that the person may undo.
// FORBIDDEN for a carrier that names no approver.
func (e *Engine) undoFilter(ctx context.Context, connector, userID string) (func(*schemas.StandingAnswer) bool, error) {
	if schemas.Inbox(connector) {
		return func(*schemas.StandingAnswer) bool { return true }, nil
	}
	who, err := e.approver(ctx, connector, userID)
	if err != nil {
		return nil, err
	}
	return func(g *schemas.StandingAnswer) bool { return mayUndo(&who, g) }, nil
}

// mayUndo reports whether an approver gave a standing answer, or may decide about
// every call that it covers, by what the settings say of the person. The risk and the
// host of those calls are not kept with it, so that whoever is limited by these may
// undo their own answers only.
func mayUndo(who *schemas.Approver, g *schemas.StandingAnswer) bool {
	if g.By.Kind == schemas.ByHuman && g.By.Name == who.Name {
		return true
	}
	if !who.UpTo(schemas.RiskHigh) {
		return false
	}
	for i := range g.Rules {
		if !policy.Matches(who.For, g.Agent, g.Rules[i].Project, "") {
			return false
		}
	}
	return len(g.Rules) > 0 || policy.Matches(who.For, g.Agent, "", "")
}
