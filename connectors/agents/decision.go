package agents

import "github.com/nodbus/nod/schemas"

// Allows reports whether d allows r. A decision about another request, a decision
// without an outcome, and one whose option rejects do not.
func Allows(r schemas.Request, d schemas.Decision) bool {
	if d.Outcome != schemas.Allowed || d.SessionID != r.SessionID || d.PendingID != r.PendingID {
		return false
	}
	if o, offered := r.Option(d.OptionID); offered && !o.Kind.Allows() {
		return false
	}
	return d.OptionKind == "" || d.OptionKind.Allows()
}
