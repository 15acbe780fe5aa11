package acp

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/nodbus/nod/schemas"
)

// The methods that the sidecar handles.
const (
	methodPermission = "session/request_permission"
	methodUpdate     = "session/update"
	methodCancel     = "session/cancel"
	methodClose      = "session/close" // also cancels the session's turn
	methodCancelCall = "$/cancel_request"
	methodInitialize = "initialize"
	methodNew        = "session/new"
	methodLoad       = "session/load"
	methodResume     = "session/resume"
	methodFork       = "session/fork"
)

// message is a JSON-RPC message with the fields that the sidecar reads. A line that
// is not such a message becomes the zero message.
type message struct {
	method string
	id     json.RawMessage // as written; nil for a notification
	key    string          // normalised id (see idKey); "" for a notification
	params json.RawMessage
	result json.RawMessage
	failed bool // it is an error response
}

// parseMessage parses a line. It matches member names exactly; encoding/json's
// structs would ignore case.
func parseMessage(line []byte) message {
	fields := object(line)
	m := message{method: text(fields["method"]), id: fields["id"], params: fields["params"], result: fields["result"]}
	m.key = idKey(m.id)
	if m.key == "" {
		m.id = nil
	}
	if e := fields["error"]; e != nil && string(e) != "null" {
		m.failed = true
	}
	return m
}

// response reports whether m answers a request.
func (m *message) response() bool {
	return m.method == "" && m.key != "" && (m.result != nil || m.failed)
}

// object returns a JSON object's members; nil for any other value.
func object(raw []byte) map[string]json.RawMessage {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

// list returns a JSON array's elements; nil for any other value.
func list(raw json.RawMessage) []json.RawMessage {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// text returns a JSON string; "" for any other value.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// idKey normalises an id: 1 equals 1.0 and "a" equals "\u0061", but 1 differs from
// "1". It returns "" for a value that cannot be an id, such as null.
func idKey(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return ""
		}
		return `"` + s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) != nil || n == "" {
		return ""
	}
	const exact = 1 << 53
	if f, err := n.Float64(); err == nil && f == float64(int64(f)) && f > -exact && f < exact {
		return strconv.FormatInt(int64(f), 10)
	}
	return n.String()
}

// outcome is the result of a permission request.
type outcome struct {
	Outcome  string          `json:"outcome"`
	OptionID json.RawMessage `json:"optionId,omitempty"`
}

// reply encodes the response to the request with this id, as one line.
func reply(id json.RawMessage, o outcome) ([]byte, error) {
	return encodeLine(struct {
		Version string             `json:"jsonrpc"`
		ID      json.RawMessage    `json:"id"`
		Result  map[string]outcome `json:"result"`
	}{"2.0", id, map[string]outcome{"outcome": o}})
}

// withdrawal encodes the message that tells the editor to close its prompt for the
// request with this id.
func withdrawal(id json.RawMessage) ([]byte, error) {
	return encodeLine(struct {
		Version string                     `json:"jsonrpc"`
		Method  string                     `json:"method"`
		Params  map[string]json.RawMessage `json:"params"`
	}{"2.0", methodCancelCall, map[string]json.RawMessage{"requestId": id}})
}

func encodeLine(v any) ([]byte, error) {
	line, err := schemas.Encode(v)
	return append(line, '\n'), err
}
