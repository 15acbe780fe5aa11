package agents

import "github.com/nodbus/nod/schemas"

// Allows reports whether d lets the agent do what r asked. A decision about
// another request, without an outcome, or whose option rejects does not.
func Allows(r schemas.Request, d schemas.Decision) bool {
	if d.Outcome != schemas.Allowed || d.SessionID != r.SessionID || d.PendingID != r.PendingID {
		return false
	}
	if o, offered := r.Option(d.OptionID); offered && !o.Kind.Allows() {
		return false
	}
	return d.OptionKind == "" || d.OptionKind.Allows()
}
