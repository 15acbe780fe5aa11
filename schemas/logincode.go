package schemas

import "time"

// LoginCodeOp is an operation on a code that the web inbox signed itself, that of a login
// link or of a web session.
type LoginCodeOp string

// The operations on such codes.
const (
	SpendLoginCode LoginCodeOp = "spend" // invalidate the code until it would expire anyway
	CheckLoginCode LoginCodeOp = "look"  // ask whether the code is still valid
)

// LoginCode logs an approver in to the web inbox. A carrier requests a code for the
// person who wrote to it, and the inbox exchanges the code, once, for that person's web
// identity. Codes that the inbox signs itself are not stored; nod stores which of them
// were spent, so that all gateways refuse them.
type LoginCode struct {
	Type string      `json:"type"`
	Op   LoginCodeOp `json:"op,omitempty"`
	// Try identifies one attempt to spend a code. Repeating it gets the same reply.
	Try string `json:"try,omitempty"`
	// Spent is the reply to an Op: another Try has spent the code before.
	Spent bool `json:"spent,omitempty"`
	// From requests a new code for this person; Code is exchanged for an identity.
	From *From  `json:"from,omitempty"`
	Code string `json:"code,omitempty"`
	// UserID is the person's identity on the web; URL is the address of the inbox.
	UserID string    `json:"user_id,omitempty"`
	URL    string    `json:"url,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}
