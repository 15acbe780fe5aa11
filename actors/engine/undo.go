package engine

import (
	"context"

	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/schemas"
)

// undoFilter returns a filter for the standing answers that a connector may list and end. An inbox
// may end all answers, and a carrier those that the person in the parameter from may undo. A carrier
// gets FORBIDDEN if this person is no approver.
func (e *holdings) undoFilter(ctx context.Context, connector string, from schemas.From) (func(*schemas.StandingAnswer) bool, error) {
	if schemas.IsViewer(connector) {
		return func(*schemas.StandingAnswer) bool { return true }, nil
	}
	who, err := e.approver(ctx, connector, &from)
	if err != nil {
		return nil, err
	}
	return func(g *schemas.StandingAnswer) bool { return mayUndo(&who, g) }, nil
}

// mayUndo reports whether an approver may undo a standing answer. Approvers may undo their own answers,
// and answers that cover only calls that the settings let them decide. Approvers with limits by risk or
// host may undo only their own answers, because an answer does not tell the risk and host of its calls.
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
