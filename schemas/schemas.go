// Package schemas is nod's wire contract: every message on the bus, its subject, and the rules that make
// it valid.
//
// Both the Go structs and the JSON Schemas in v1/ are written by hand. Tests check that structs, schemas
// and golden files agree. Messages are JSON with snake_case fields and begin with a "type" such as
// "nod.v1.request". Messages of unknown versions are refused. Unknown fields of messages are ignored.
// Unknown fields of stored records are kept, and a record with such a field allows nothing (see Later).
// This package calls a message's struct a "noun".
package schemas

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
)

// These limits ensure that every stored request can be decided, because its record fits into one
// message, with any answer. nod checks a message against the limits when it arrives.
const (
	MaxRequestBytes = 256 << 10 // the greatest size of a request, in the agent's own encoding
	MaxAnswerBytes  = 256 << 10 // the greatest size of an answer's message and updated_input together
	MaxAwaited      = 500       // the greatest number of requests in one Await
	// MaxSettingsBytes is the greatest size of settings.json, in bytes.
	MaxSettingsBytes = 256 << 10
	// MaxPath is the greatest length of a path in a permission, in characters.
	MaxPath = 4096
	// MaxDirs is the greatest number of directories in each list of a session.
	MaxDirs = 256
	// MaxDepth is the deepest nesting of a request or an answer. nod's own messages contain requests and
	// answers, and so are nested deeper.
	MaxDepth = 100
	// MaxPayloadBytes is the message size that the NATS server must accept. A record of at most this
	// size has room for the longest request, the longest answer and nod's own fields.
	MaxPayloadBytes = 768 << 10
)

// idPattern is the pattern for ids in the JSON Schemas. ValidID accepts the same ids.
const idPattern = `^[A-Za-z0-9_-]{1,128}$`

// ValidID reports whether s is a valid id of a session, a request, an agent, a connector or a
// recipient. A valid id is one token of a subject or of a key. ValidID uses no regexp, because ids in
// each message are checked several times on every hop.
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

// Key returns the key of a request's record: "<session_id>.<pending_id>".
func Key(sessionID, pendingID string) string { return sessionID + "." + pendingID }

// SplitKey returns the two ids in a key that Key has made.
func SplitKey(key string) (sessionID, pendingID string) {
	sessionID, pendingID, _ = strings.Cut(key, ".")
	return sessionID, pendingID
}

// Encode returns v as JSON. It does not escape HTML, because that would turn 256 KiB of "<" into 1.5 MB.
func Encode(v any) ([]byte, error) {
	if data, ok := encode(reflect.ValueOf(v)); ok {
		return data, nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// encode encodes a struct, or the struct to which a pointer points. It returns false if there is no
// writer for the type.
func encode(v reflect.Value) ([]byte, bool) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil, false
	}
	w := writerOf(v.Type())
	if w == nil || w.kind != planStruct {
		return nil, false
	}
	return w.encode(v)
}

// TypeOf returns a message's type, or "" if the message has none. Messages of nod begin with the type, so
// TypeOf usually does not decode the rest. An error means that TypeOf had to decode the message, and that
// its JSON is invalid.
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

// SubjectToken returns a token for subjects and keys that stands for an id of another system. If that
// id is a valid id, the token is the id itself. Otherwise it is "h-" with 32 hex digits of the id's
// SHA-256.
func SubjectToken(s string) string {
	if ValidID(s) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "h-" + hex.EncodeToString(sum[:16])
}
