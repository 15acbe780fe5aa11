package engine

import (
	"context"

	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/schemas"
)

// undoFilter returns a filter for the standing answers that a connector may list and end: an
// inbox may list and end all, a carrier those that the approver userID may undo. A carrier
// gets FORBIDDEN if userID is no approver.
func (e *holdings) undoFilter(ctx context.Context, connector, userID string) (func(*schemas.StandingAnswer) bool, error) {
	if schemas.IsViewer(connector) {
		return func(*schemas.StandingAnswer) bool { return true }, nil
	}
	who, err := e.approver(ctx, connector, userID)
	if err != nil {
		return nil, err
	}
	return func(g *schemas.StandingAnswer) bool { return mayUndo(&who, g) }, nil
}

// mayUndo reports whether an approver may undo a standing answer: because they gave it, or
// because the settings let them decide every call that it covers. The risk and the host of
// these calls are not known, so an approver who is limited by risk or host may undo only their
// own answers.
func mayUndo(who *schemas.Approver, g *schemas.StandingAnswer) bool {
	if g.By.Kind == schemas.ByHuman && g.By.Name == who.Name {
		return true
	}
	if !who.UpTo(schemas.RiskHigh) {
		return false
	}
	for i := range g.Rules {
		if !rules.Matches(who.For, g.Agent, g.Rules[i].Project, "") {
			return false
		}
	}
	return len(g.Rules) > 0 || rules.Matches(who.For, g.Agent, "", "")
}
