package schemas

import "time"

// LoginCodeOp is what the web inbox asks of a code that it made itself, a login link's
// or a session's.
type LoginCodeOp string

// The operations on such codes.
const (
	SpendLoginCode LoginCodeOp = "spend" // it counts no more, until it would end by itself
	CheckLoginCode  LoginCodeOp = "look"  // does it count still?
)

// LoginCode lets somebody in on the web whom another channel vouches for: a carrier
// asks for one for who wrote to it, and the web inbox exchanges its code, once, for
// that person's user there. The inbox's own codes are signed by it; nod remembers
// which of them count no more, for all gateways alike.
type LoginCode struct {
	Type string `json:"type"`
	Op   LoginCodeOp `json:"op,omitempty"`
	// Try tells apart those who spend a code: whoever asks again is answered as
	// before.
	Try string `json:"try,omitempty"`
	// Spent answers an Op: the code was spent before, by another Try.
	Spent bool `json:"spent,omitempty"`
	// From asks for a pass; Code is what it is exchanged by.
	From *From  `json:"from,omitempty"`
	Code string `json:"code,omitempty"`
	// UserID is the person's identity on the web, URL where the inbox is reached.
	UserID string    `json:"user_id,omitempty"`
	URL    string    `json:"url,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}
