package schemas

import "time"

// LoginCodeOp is an operation on a code that the web inbox has signed itself, for a login link
// or a web session, or on the id of a message that a carrier has received.
type LoginCodeOp string

const (
	SpendLoginCode LoginCodeOp = "spend" // mark the code as used, until it expires
	CheckLoginCode LoginCodeOp = "look"  // ask whether the code is used
	LoadLogin      LoginCodeOp = "load"  // read the login of a web session
	// StoreLogin writes the login of a web session if its stored revision is Revision, which is 0
	// for a new one. Without Sealed it removes the login. The error is CONFLICT if another write
	// came first.
	StoreLogin LoginCodeOp = "store"
)

// LoginCode is a request about a code that logs an approver in to the web inbox, or the reply.
// A carrier requests a code for a person who has written to the carrier. The web inbox
// exchanges the code, once, for that person's web identity. The inbox also signs codes itself.
// nod marks such a code when it is used, and every inbox refuses a marked code. A carrier marks
// the messages that it has handled in the same way, because its channel may deliver a message
// again.
type LoginCode struct {
	Type string      `json:"type"`
	Op   LoginCodeOp `json:"op,omitempty"`
	// Try identifies one attempt to use a code. A repeated attempt gets the same reply.
	Try string `json:"try,omitempty"`
	// Spent is set in replies. For CheckLoginCode it means that the code is used. For
	// SpendLoginCode it means that another Try has used the code before, or that the code has
	// expired.
	Spent bool `json:"spent,omitempty"`
	// From, if set, requests a new code for that person. Code, if set, is a code to exchange
	// for an identity.
	From *From  `json:"from,omitempty"`
	Code string `json:"code,omitempty"`
	// UserID is the person's identity on the web; URL is the address of the inbox.
	UserID string    `json:"user_id,omitempty"`
	URL    string    `json:"url,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	// Sealed is the login of a web session at an issuer, as only the web inbox can read it. Code
	// is the session's id. Revision is its stored revision, 0 if none is stored.
	Sealed   string `json:"sealed,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	Later    Later  `json:"-"`
}
