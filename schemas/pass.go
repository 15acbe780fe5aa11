package schemas

import "time"

// Pass lets somebody in on the web whom another channel vouches for: a carrier
// asks for one for who wrote to it, and the web inbox exchanges its code, once, for
// that person's user there.
type Pass struct {
	Type string `json:"type"`
	// From asks for a pass; Code is what it is exchanged by.
	From *From  `json:"from,omitempty"`
	Code string `json:"code,omitempty"`
	// UserID is the person's identity on the web, URL where the inbox is reached.
	UserID string    `json:"user_id,omitempty"`
	URL    string    `json:"url,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}
