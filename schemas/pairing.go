package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Pairing finds out a person's identity on a channel: nod shows a code to its owner, and the
// person sends the code on the channel. The channel's connector claims the pairing for the
// identity that sent the code. A pairing gives no access: nod's owner must add the identity to
// the settings.
type Pairing struct {
	Type string `json:"type"`
	// Connector is the channel on which the code is expected. A claim leaves Connector empty,
	// because the claim's subject names the channel.
	Connector string `json:"connector,omitempty"`
	// Code is the code to expect or, in a claim, the code that was sent. The store has only its
	// hash, and no reply has it.
	Code string `json:"code,omitempty"`
	// From is the identity that sent the code, in a claim; in a reply it is the identity that
	// has claimed the pairing, or nil.
	From     *From     `json:"from,omitempty"`
	CodeHash string    `json:"code_hash,omitempty"`
	Tries    int       `json:"tries,omitempty"` // the number of wrong codes so far
	Until    time.Time `json:"until,omitzero"`
}

// HashCode returns the stored form of a pairing code or a login code.
func HashCode(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}
