package schemas

import "time"

// PassOp is what the web inbox asks of a code that it made itself, a login link's
// or a session's.
type PassOp string

// The operations on such codes.
const (
	PassSpend PassOp = "spend" // it counts no more, until it would end by itself
	PassLook  PassOp = "look"  // does it count still?
)

// Pass lets somebody in on the web whom another channel vouches for: a carrier
// asks for one for who wrote to it, and the web inbox exchanges its code, once, for
// that person's user there. The inbox's own codes are signed by it; nod remembers
// which of them count no more, for all gateways alike.
type Pass struct {
	Type string `json:"type"`
	Op   PassOp `json:"op,omitempty"`
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
