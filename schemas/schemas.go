// Package schemas holds every noun and message that crosses the bus, the
// subjects they travel on, and the rules that make one valid.
//
// The Go structs are written by hand beside the JSON Schemas in v1/; a parity
// test ties structs, schemas and golden files together. Messages are JSON with
// snake_case fields and a leading "type" such as "nod.v1.request". Unknown
// fields are tolerated, unknown versions are refused.
package schemas

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// Limits of what nod carries. They are checked at intake, so that a record
// that could be created and never decided cannot exist.
const (
	MaxRequestBytes = 256 << 10 // a request as asked
	MaxAnswerBytes  = 256 << 10 // an answer's message and updated_input together
	MaxAwaited      = 500       // requests named by one await
	// MaxSettingsBytes is the longest settings.json.
	MaxSettingsBytes = 256 << 10
	// MaxPath is how many characters the path of a permission may have.
	MaxPath = 4096
	// MaxDirs is how many directories a session may hold of each sort.
	MaxDirs = 256
	// MaxDepth is how deep a request or an answer may nest: what nod wraps
	// around them must still be readable.
	MaxDepth = 100
	// MaxPayloadBytes is what the bus must be able to carry in one message: a
	// request, an answer and what nod adds to them, in one record.
	MaxPayloadBytes = 768 << 10
)

// idPattern is what the JSON Schemas say of ids; ValidID says the same.
const idPattern = `^[A-Za-z0-9_-]{1,128}$`

// ValidID reports whether s can name a session, a request, an agent, a
// connector or a recipient: such ids are tokens of subjects and keys. It is a
// loop because every hop of every message asks it several times.
func ValidID(s string) bool {
	if len(s) < 1 || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// Key is the record's key of a request: "<session_id>.<pending_id>".
func Key(sessionID, pendingID string) string { return sessionID + "." + pendingID }

// SplitKey is the reverse of Key.
func SplitKey(key string) (sessionID, pendingID string) {
	sessionID, pendingID, _ = strings.Cut(key, ".")
	return sessionID, pendingID
}

// Encode writes v as JSON without HTML escaping: 256 KiB of "<" would become
// 1.5 MB with it.
func Encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// TypeOf is what a message says it is. Messages that nod writes say it first, so
// that the rest need not be read.
func TypeOf(data []byte) (string, error) {
	if rest, ok := bytes.CutPrefix(data, []byte(`{"type":"`)); ok {
		if end := bytes.IndexByte(rest, '"'); end >= 0 && bytes.IndexByte(rest[:end], '\\') < 0 {
			return string(rest[:end]), nil
		}
	}
	var head struct {
		Type string `json:"type"`
	}
	err := json.Unmarshal(data, &head)
	return head.Type, err
}

// Token is s where that is a valid id, and otherwise "h-" and 32 hex digits of
// its SHA-256: ids of other systems become tokens of subjects and keys so.
func Token(s string) string {
	if ValidID(s) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "h-" + hex.EncodeToString(sum[:16])
}
