package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Pairing finds out who somebody is on a channel: the owner reads a code here and
// sends it from there. It lets nobody in: that is the owner's to write into the
// settings.
type Pairing struct {
	Type string `json:"type"`
	// Connector is where the code is awaited; of a claim the subject says it.
	Connector string `json:"connector,omitempty"`
	// Code opens a pairing, or claims it. It is stored and told nowhere.
	Code string `json:"code,omitempty"`
	// From is who claims; in an answer, who has claimed.
	From *From `json:"from,omitempty"`
	// CodeHash, Tries and Until are the engine's.
	CodeHash string    `json:"code_hash,omitempty"`
	Tries    int       `json:"tries,omitempty"` // wrong codes so far
	Until    time.Time `json:"until,omitzero"`
}

// HashCode is a pairing's code as it is stored.
func HashCode(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}
