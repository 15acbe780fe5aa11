package schemas

import "time"

// LoginCodeOp is an operation on a code or on the id of a message. The web inbox itself has signed
// the code, for a login link or a web session. A carrier has received the message.
type LoginCodeOp string

const (
	SpendLoginCode LoginCodeOp = "spend" // marks the code as used, until it expires
	CheckLoginCode LoginCodeOp = "look"  // asks whether the code was used
	LoadLogin      LoginCodeOp = "load"  // reads the login of a web session
	// StoreLogin writes the login of a web session if the stored revision is still Revision, which is 0
	// for a new login. Without Sealed it removes the login. The error is CONFLICT if another write came
	// first.
	StoreLogin LoginCodeOp = "store"
)

// LoginCode is a request about a code that logs an approver in to the web inbox, or the reply to such a
// request. A carrier requests a code for a person who has written to the carrier. The web inbox exchanges
// the code, only once, for the person's web identity. For codes that the web inbox signs itself, nod only
// marks a code as used, and every inbox refuses a marked code. A carrier marks the ids of handled
// messages in the same way, because its channel may deliver a message again.
type LoginCode struct {
	Type string      `json:"type"`
	Op   LoginCodeOp `json:"op,omitempty"`
	// Try identifies one attempt to use a code. A repetition of the attempt gets the same reply.
	Try string `json:"try,omitempty"`
	// Spent is set only in replies. In the reply to CheckLoginCode, it means that the code was used. In
	// the reply to SpendLoginCode, it means that the code was used by another Try, or has expired.
	Spent bool `json:"spent,omitempty"`
	// If From is set, the message requests a new code for that person. If Code is set, the message
	// exchanges that code for an identity.
	From *From  `json:"from,omitempty"`
	Code string `json:"code,omitempty"`
	// UserID is the person's web identity. URL is the address of the inbox.
	UserID string    `json:"user_id,omitempty"`
	URL    string    `json:"url,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	// Sealed is the login of a web session at an issuer, encrypted so that only the web inbox can read
	// it. Code is then the session's id, and Revision the revision of the stored login, or 0 if none is
	// stored.
	Sealed   string `json:"sealed,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	Later    Later  `json:"-"`
}
