package agents

import (
	"fmt"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

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

// Refusal is what an agent is told of a decision that does not let it go on:
// who decided, and in their words why.
func Refusal(r schemas.Request, d schemas.Decision) string {
	switch d.Outcome {
	case schemas.Denied:
		return withMessage("Denied by "+who(d.By), d.Message)
	case schemas.Cancelled:
		return withMessage("Dismissed without an answer by "+who(d.By), d.Message)
	case schemas.Withdrawn:
		return withMessage("The permission request was withdrawn", d.Message)
	case schemas.TimedOut:
		return timedOut(r, d)
	}
	return fmt.Sprintf("nod sent no usable decision (outcome %q); treated as denied.", d.Outcome)
}

func timedOut(r schemas.Request, d schemas.Decision) string {
	if d.Message != "" {
		return d.Message
	}
	waited := d.DecidedAt.Sub(r.CreatedAt).Round(time.Second)
	if r.Rejoin || waited <= 0 { // the request may be older than this asking
		return "Permission request timed out."
	}
	return fmt.Sprintf("Permission request timed out after %d seconds.", int(waited.Seconds()))
}

func who(by schemas.By) string {
	switch by.Kind {
	case schemas.ByHuman:
		if by.Name != "" {
			return by.Name
		}
		return "a person"
	case schemas.ByPolicy:
		if by.Name != "" {
			return "nod's rule " + by.Name
		}
		return "nod's rules"
	}
	return "nod"
}

func withMessage(what, message string) string {
	if message = strings.TrimSpace(message); message == "" {
		return what + "."
	}
	return what + ": " + message
}
