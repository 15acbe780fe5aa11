package acp

import (
	"errors"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// errAskEditor means that a rule allows the request, but the agent offers no option for that allow. The
// editor then asks its user. If a person has decided instead, the agent gets a refusal, so that its
// user is not asked a second time.
var errAskEditor = errors.New("a rule allows the request, but none of the agent's options says so: the editor asks its user")

// cancelled tells the agent that nobody chose an option.
var cancelled = outcome{Outcome: "cancelled"}

// outcome converts the decision d to one of the agent's own options. It chooses an option that allows
// only if d allows exactly this request. The option never allows more than d.
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
	case d.By.Kind == schemas.ByHuman: // the person allowed an edited input, but the agent can run only the original
		return p.refused(), nil
	}
	return outcome{}, errAskEditor
}

// refusal converts a decision that does not allow the request to an option that denies it, or to cancelled.
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

// refused returns the option that denies only this call. If the agent offers none, refused returns
// cancelled, because the agent's other denials are permanent.
func (p *permission) refused() outcome {
	if o, ok := p.request.OptionOfKind(schemas.RejectOnce); ok {
		return p.selectOption(o)
	}
	return cancelled
}

// deniedBy reports whether the editor's response m denies the request. If nod does not know the option
// in m, the response does not count as a denial.
func (p *permission) deniedBy(m message) bool {
	chosen := object(object(m.result)["outcome"])
	o, known := p.request.Option(text(chosen["optionId"]))
	return text(chosen["outcome"]) == cancelled.Outcome || known && !o.Kind.Allows()
}

func (p *permission) selectOption(o schemas.Option) outcome {
	return outcome{Outcome: "selected", OptionID: p.options[o.OptionID], allows: o.Kind.Allows()}
}
