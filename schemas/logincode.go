package schemas

import "time"

// LoginCodeOp is an operation on a code that the web inbox has signed itself, for a login
// link or a web session.
type LoginCodeOp string

// The operations on codes that the web inbox has signed.
const (
	SpendLoginCode LoginCodeOp = "spend" // store that the code is spent, until it expires
	CheckLoginCode LoginCodeOp = "look"  // ask whether the code is spent
)

// LoginCode logs an approver in to the web inbox. A carrier requests a code for a person
// who has written to it, and the inbox exchanges the code, once, for that person's web
// identity. Codes that an inbox has signed itself are stored only when they are spent, so that
// every inbox refuses them from then on.
type LoginCode struct {
	Type string      `json:"type"`
	Op   LoginCodeOp `json:"op,omitempty"`
	// Try identifies one attempt to spend a code. Repeating the attempt gets the same
	// reply.
	Try string `json:"try,omitempty"`
	// Spent is set in a reply. After CheckLoginCode it means that the code is spent, after
	// SpendLoginCode that another Try had spent it before, or that it has expired.
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
