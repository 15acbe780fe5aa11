package agents

import "github.com/nodbus/nod/schemas"

// Allows reports whether d allows r. It returns false for a decision about another
// request, a decision without an outcome, and a decision whose option rejects.
func Allows(r schemas.Request, d schemas.Decision) bool {
	if d.Outcome != schemas.Allowed || d.SessionID != r.SessionID || d.PendingID != r.PendingID {
		return false
	}
	if o, offered := r.Option(d.OptionID); offered && !o.Kind.Allows() {
		return false
	}
	return d.OptionKind == "" || d.OptionKind.Allows()
}
