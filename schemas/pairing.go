package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Pairing finds a person's identity on a channel: the owner gets a code here and sends it
// from there. It gives no access; for that the owner writes the identity into the
// settings.
type Pairing struct {
	Type string `json:"type"`
	// Connector is the channel on which the code is expected. In a claim, the subject
	// names it.
	Connector string `json:"connector,omitempty"`
	// Code opens a pairing, or claims it. It is never stored or sent on.
	Code string `json:"code,omitempty"`
	// From is the claiming identity; in a reply, the identity that claimed the code.
	From *From `json:"from,omitempty"`
	// The engine sets CodeHash, Tries and Until.
	CodeHash string    `json:"code_hash,omitempty"`
	Tries    int       `json:"tries,omitempty"` // wrong codes so far
	Until    time.Time `json:"until,omitzero"`
}

// HashCode returns the stored form of a pairing code.
func HashCode(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}
