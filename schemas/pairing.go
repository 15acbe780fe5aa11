package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Pairing finds out a person's identity on a channel: nod shows the owner a code, and the
// owner sends it on the channel. The channel's connector then claims the pairing for the
// identity that sent the code. A pairing gives no access. To give access, the owner adds the
// identity to the settings.
type Pairing struct {
	Type string `json:"type"`
	// Connector is the channel on which the code is expected. In a claim it is ignored,
	// because the claim's subject names the channel.
	Connector string `json:"connector,omitempty"`
	// Code is the code to expect or, in a claim, the code that was sent. It is never
	// stored or returned; the store has its hash.
	Code string `json:"code,omitempty"`
	// From is, in a claim, the identity that sent the code; in a reply, the identity that
	// has claimed the pairing, or nil.
	From *From `json:"from,omitempty"`
	// The engine sets CodeHash, Tries and Until.
	CodeHash string    `json:"code_hash,omitempty"`
	Tries    int       `json:"tries,omitempty"` // number of wrong codes that were sent so far
	Until    time.Time `json:"until,omitzero"`
}

// HashCode returns the stored form of a pairing code or a login code.
func HashCode(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}
