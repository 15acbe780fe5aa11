package schemas

import "time"

// LoginCodeOp is an operation on a code that the web inbox has signed itself, for a login
// link or a web session.
type LoginCodeOp string

// The operations on codes that the web inbox has signed.
const (
	SpendLoginCode LoginCodeOp = "spend" // make the code invalid, until it expires anyway
	CheckLoginCode LoginCodeOp = "look"  // ask whether the code is still valid
)

// LoginCode logs an approver in to the web inbox. A carrier requests a code for a person
// who has written to it, and the inbox exchanges the code, once, for that person's web
// identity. Codes that an inbox signs itself are not stored; nod stores which of them are
// spent, so that every inbox refuses those.
type LoginCode struct {
	Type string      `json:"type"`
	Op   LoginCodeOp `json:"op,omitempty"`
	// Try identifies one attempt to spend a code. Repeating the attempt gets the same
	// reply.
	Try string `json:"try,omitempty"`
	// Spent is set in the reply to an Op if the code is spent; on SpendLoginCode, if
	// another Try has spent it.
	Spent bool `json:"spent,omitempty"`
	// Set From to request a new code for that person, or Code to exchange the code for an
	// identity.
	From *From  `json:"from,omitempty"`
	Code string `json:"code,omitempty"`
	// UserID is the person's identity on the web; URL is the address of the inbox.
	UserID string    `json:"user_id,omitempty"`
	URL    string    `json:"url,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}
