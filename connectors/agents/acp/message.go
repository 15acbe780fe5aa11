package acp

import (
	"bytes"
	"encoding/json"

	"github.com/nodbus/nod/connectors/agents/relay"
	"github.com/nodbus/nod/schemas"
)

// The JSON-RPC methods that the sidecar handles. It does not read messages with other methods.
const (
	methodPermission = "session/request_permission"
	methodUpdate     = "session/update"
	methodCancel     = "session/cancel"
	methodClose      = "session/close" // this request closes a session and cancels its turn
	methodCancelCall = "$/cancel_request"
	methodInitialize = "initialize"
	methodNew        = "session/new"
	methodLoad       = "session/load"
	methodResume     = "session/resume"
	methodFork       = "session/fork"
	methodPrompt     = "session/prompt" // the response to this request ends the agent's turn
)

// message contains the fields of a JSON-RPC message that the sidecar reads. If a line is not a JSON
// object, its message is the zero value.
type message struct {
	method string
	id     json.RawMessage // exactly as the peer wrote it; nil for a notification
	key    string          // the normalised id (see relay.IDKey); "" for a notification
	params json.RawMessage
	result json.RawMessage
	failed bool // the message is an error response
}

// parseMessage parses a line. It distinguishes upper and lower case in names of members, which decoding
// into a struct would not do.
func parseMessage(line []byte) message {
	fields := object(line)
	m := message{method: text(fields["method"]), id: fields["id"], params: fields["params"], result: fields["result"]}
	m.key = relay.IDKey(m.id)
	if m.key == "" {
		m.id = nil
	}
	if e := fields["error"]; e != nil && string(e) != "null" {
		m.failed = true
	}
	return m
}

// response reports whether m is a response to a request.
func (m *message) response() bool {
	return m.method == "" && m.key != "" && (m.result != nil || m.failed)
}

// object returns the members of a JSON object, or nil for any other value.
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

// list returns the elements of a JSON array, or nil for any other value.
func list(raw json.RawMessage) []json.RawMessage {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// text returns the value of a JSON string, or "" for any other value.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// outcome is ACP's answer to a permission request: a chosen option, or "cancelled".
type outcome struct {
	Outcome  string          `json:"outcome"`
	OptionID json.RawMessage `json:"optionId,omitempty"`
	allows   bool
}

// reply encodes the response to the request with this id as one line.
func reply(id json.RawMessage, o outcome) ([]byte, error) {
	return encodeLine(struct {
		Version string             `json:"jsonrpc"`
		ID      json.RawMessage    `json:"id"`
		Result  map[string]outcome `json:"result"`
	}{"2.0", id, map[string]outcome{"outcome": o}})
}

// withdrawal returns a line for the editor: the message that closes the editor's prompt for the request
// with this id.
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
