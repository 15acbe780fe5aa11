package agents

import "github.com/nodbus/nod/schemas"

// Allows reports whether the decision d allows the request r. It returns false if d is about another
// request, has no outcome, or chose an option that rejects the request.
func Allows(r schemas.Request, d schemas.Decision) bool {
	if d.Outcome != schemas.Allowed || d.SessionID != r.SessionID || d.PendingID != r.PendingID {
		return false
	}
	if o, offered := r.Option(d.OptionID); offered && !o.Kind.Allows() {
		return false
	}
	return d.OptionKind == "" || d.OptionKind.Allows()
}
