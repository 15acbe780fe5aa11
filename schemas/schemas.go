// Package schemas is nod's wire contract: every message on the bus, its subject, and the rules
// that make it valid.
//
// Go structs and the JSON Schemas in v1/ are both written by hand; tests check that structs,
// schemas and golden files agree. Messages are JSON with snake_case fields and a leading "type"
// such as "nod.v1.request". Unknown fields of messages are ignored. Unknown fields of stored records
// are kept, and a record that has one allows nothing (see Later). Unknown versions are refused.
// "Noun" is the package's word for a message's struct.
package schemas

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
)

// Size limits. Messages are checked when they arrive, so that every stored request can be
// decided: its record, with any answer, fits into one message.
const (
	MaxRequestBytes = 256 << 10 // the longest request, in the agent's encoding
	MaxAnswerBytes  = 256 << 10 // the longest message and updated_input of an answer, together
	MaxAwaited      = 500       // the most requests in one Await
	// MaxSettingsBytes is the maximum size of settings.json, in bytes.
	MaxSettingsBytes = 256 << 10
	// MaxPath is the maximum length of a path in a permission, in characters.
	MaxPath = 4096
	// MaxDirs is the largest number of directories in each list of a session.
	MaxDirs = 256
	// MaxDepth is the deepest nesting of a request or an answer. nod's own messages, which
	// contain them, nest deeper.
	MaxDepth = 100
	// MaxPayloadBytes is the message size that the NATS server must accept: a record with the
	// longest request, the longest answer and nod's own fields.
	MaxPayloadBytes = 768 << 10
)

// idPattern is the pattern of ids in the JSON Schemas; ValidID accepts the same ids.
const idPattern = `^[A-Za-z0-9_-]{1,128}$`

// ValidID reports whether s is valid as the id of a session, a request, an agent, a connector
// or a recipient. A valid id is one token of a subject or a key. The check is a loop and no
// regexp, because every message is checked several times on every hop.
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

// SplitKey returns the ids in a key that Key has made.
func SplitKey(key string) (sessionID, pendingID string) {
	sessionID, pendingID, _ = strings.Cut(key, ".")
	return sessionID, pendingID
}

// Encode returns v as JSON without HTML escaping, which would turn 256 KiB of "<" into 1.5 MB.
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

// encode encodes a struct, or a pointer to one, if a writer exists for its type.
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

// TypeOf returns a message's type, or "" if it has no type. Messages of nod begin with the
// type, so TypeOf need not decode the rest. The error means that TypeOf had to decode the
// message, and that its JSON is invalid.
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

// SubjectToken returns a token for subjects and keys that stands for s, an id of another
// system: s itself if it is a valid id, else "h-" and 32 hex digits of its SHA-256.
func SubjectToken(s string) string {
	if ValidID(s) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "h-" + hex.EncodeToString(sum[:16])
}
