package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Pairing finds a person's identity on a channel. nod shows a code to its owner, and the person sends
// this code on the channel. The channel's connector then claims the pairing for the identity that sent
// the code. A pairing gives no access, because nod's owner must still add the identity to the settings.
type Pairing struct {
	Type string `json:"type"`
	// Connector is the channel on which the code is expected. It is empty in a claim, because the claim's
	// subject names the channel.
	Connector string `json:"connector,omitempty"`
	// Code is the expected code or, in a claim, the code that the person sent. nod stores only the
	// code's hash, and sends the code in no reply.
	Code string `json:"code,omitempty"`
	// In a claim, From is the identity that sent the code. In a reply, From is the identity that has
	// claimed the pairing, or nil if no claim was made.
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
