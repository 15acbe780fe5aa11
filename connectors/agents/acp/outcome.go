package acp

import (
	"errors"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// errAskEditor is a decision that ACP has no words for and that no person
// made, so that the editor's user is asked.
var errAskEditor = errors.New("a rule allows it, but not in a way that this agent can be told: its user is asked")

// cancelled is what the agent hears where nobody chose.
var cancelled = outcome{Outcome: "cancelled"}

// outcome is what decision d means in the agent's own options. Only a decision
// that allows this request selects an option that allows, and never one that
// says more than it did.
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
		return p.selected(option), nil
	case d.By.Kind == schemas.ByHuman: // who allowed something else than what would run
		return p.refused(), nil
	}
	return outcome{}, errAskEditor
}

// refusal is a decision that does not allow.
func (p *permission) refusal(d schemas.Decision) outcome {
	switch d.Outcome {
	case schemas.Cancelled, schemas.Withdrawn:
		return cancelled
	case schemas.Denied:
		if o, ok := p.request.Option(d.OptionID); ok && !o.Kind.Allows() {
			return p.selected(o)
		}
	}
	return p.refused()
}

// refused is a no to this one call. An agent that offers none hears that nobody
// chose, rather than a no for good.
func (p *permission) refused() outcome {
	if o, ok := p.request.OptionOfKind(schemas.RejectOnce); ok {
		return p.selected(o)
	}
	return cancelled
}

func (p *permission) selected(o schemas.Option) outcome {
	return outcome{Outcome: "selected", OptionID: p.options[o.OptionID]}
}
