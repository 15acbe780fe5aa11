package acp

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/nodbus/nod/schemas"
)

// The methods that mean something to the sidecar.
const (
	methodPermission = "session/request_permission"
	methodUpdate     = "session/update"
	methodCancel     = "session/cancel"
	methodClose      = "session/close" // cancels, too
	methodCancelCall = "$/cancel_request"
	methodInitialize = "initialize"
	methodNew        = "session/new"
	methodLoad       = "session/load"
	methodResume     = "session/resume"
	methodFork       = "session/fork"
)

// message is one JSON-RPC message as far as the sidecar looks into it. What is
// none is the zero message.
type message struct {
	method string
	id     json.RawMessage // as it was written; nil for a notification
	key    string          // equal for equal ids, however they are written; "" without one
	params json.RawMessage
	result json.RawMessage
	failed bool // it is a response that says that the request failed
}

// read understands a line. Members count by their exact names, which
// encoding/json's structs would not hold to.
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

// object is a JSON object's members; nil for anything else.
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

// list is a JSON array's elements; nil for anything else.
func list(raw json.RawMessage) []json.RawMessage {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// text is a JSON string; "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// idKey tells ids apart: 1 is 1.0 and "a" is "\u0061", but 1 is not "1". It is
// "" for what can be no id, null among that.
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

// reply answers the request of this id, in one line.
func reply(id json.RawMessage, o outcome) ([]byte, error) {
	return encodeLine(struct {
		Version string             `json:"jsonrpc"`
		ID      json.RawMessage    `json:"id"`
		Result  map[string]outcome `json:"result"`
	}{"2.0", id, map[string]outcome{"outcome": o}})
}

// withdrawal tells the editor that nobody waits for its answer any more.
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
