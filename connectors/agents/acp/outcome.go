package acp

import (
	"errors"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// errAskEditor means that a rule allows the request in a way that none of the agent's
// options expresses, so the editor asks its user. If a person decided, the editor never
// asks again: the agent gets a refusal.
var errAskEditor = errors.New("a rule allows the request, but none of the agent's options says so: the editor asks its user")

// cancelled tells the agent that no option was chosen.
var cancelled = outcome{Outcome: "cancelled"}

// outcome converts decision d to one of the agent's own options. It selects an allowing
// option only if d allows this very request, and never an option that allows more than d.
func (p *permission) outcome(d schemas.Decision) (outcome, error) {
	if !agents.Allows(p.request, d) {
		return p.refusal(d), nil
	}
	option, ok := p.request.Option(d.OptionID)
	if d.OptionID == "" {
		option, ok = p.request.OptionOfKind(schemas.AllowOnce)
	}
	switch edited := d.UpdatedInput != nil; {
	case ok && !edited:
		return p.selectOption(option), nil
	case d.By.Kind == schemas.ByHuman: // the person allowed an edited input, which the agent cannot run
		return p.refused(), nil
	}
	return outcome{}, errAskEditor
}

// refusal converts a decision that does not allow the request to an outcome that does not
// allow it either.
func (p *permission) refusal(d schemas.Decision) outcome {
	switch d.Outcome {
	case schemas.Cancelled, schemas.Withdrawn:
		return cancelled
	case schemas.Denied:
		if o, ok := p.request.Option(d.OptionID); ok && !o.Kind.Allows() {
			return p.selectOption(o)
		}
	}
	return p.refused()
}

// refused returns the option that denies this one call. If the agent offers no such option,
// it returns cancelled: the agent's other denials are permanent.
func (p *permission) refused() outcome {
	if o, ok := p.request.OptionOfKind(schemas.RejectOnce); ok {
		return p.selectOption(o)
	}
	return cancelled
}

func (p *permission) selectOption(o schemas.Option) outcome {
	return outcome{Outcome: "selected", OptionID: p.options[o.OptionID]}
}
