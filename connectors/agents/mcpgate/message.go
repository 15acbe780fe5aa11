package mcpgate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/nodbus/nod/connectors/agents/relay"
	"github.com/nodbus/nod/schemas"
)

// The JSON-RPC methods that the gate handles. It only passes on messages with other methods.
const (
	methodCall       = "tools/call"
	methodList       = "tools/list"
	methodInitialize = "initialize"
	methodReady      = "notifications/initialized"
	methodCancelled  = "notifications/cancelled"
	methodProgress   = "notifications/progress"
	methodSampling   = "sampling/createMessage"
	methodElicit     = "elicitation/create"
)

// The error codes of JSON-RPC that the gate sends.
const (
	codeParse   = -32700
	codeRequest = -32600
	codeParams  = -32602
	codeServer  = -32000
)

// message is one JSON-RPC message. All readers of JSON understand it in the same way.
type message struct {
	method string
	id     json.RawMessage // exactly as the peer wrote it; nil for a notification
	key    string          // the normalised id (see relay.IDKey); "" for a notification
	params json.RawMessage
	result json.RawMessage
	line   []byte // the whole message in one line, without its line break
}

// refusal is an error, with the code and the id for the response to the peer.
type refusal struct {
	code int
	id   json.RawMessage
	error
}

// split returns the messages in a line. It is one message, unless the line is a batch.
func split(line []byte) ([]json.RawMessage, error) {
	line = bytes.TrimSpace(line)
	if !json.Valid(line) {
		return nil, refusal{code: codeParse, error: errors.New("the message is not valid JSON")}
	}
	if line[0] != '[' {
		return []json.RawMessage{line}, nil
	}
	var all []json.RawMessage
	if err := json.Unmarshal(line, &all); err != nil || len(all) == 0 {
		return nil, refusal{code: codeRequest, error: errors.New("the batch is empty")}
	}
	return all, nil
}

// parse reads a valid JSON value as a message. It returns a refusal if readers of JSON could understand
// the value in different ways, because the peer could then read another call than the gate. This is so
// if a name occurs twice, if a name of the protocol has another case, if the text is not UTF-8, or if
// the method is not plain text.
func parse(raw json.RawMessage) (m message, err error) {
	if !utf8.Valid(raw) {
		return m, refusal{code: codeParse, error: errors.New("the message is not UTF-8")}
	}
	if len(raw) == 0 || raw[0] != '{' {
		return m, refusal{code: codeRequest, error: errors.New("the message is not a JSON object")}
	}
	fields, err := members(raw, "jsonrpc", "id", "method", "params", "result", "error")
	m.id = fields["id"]
	if m.key = relay.IDKey(m.id); m.key == "" {
		m.id = nil
	}
	if err == nil {
		err = onceEach(raw)
	}
	if method, there := fields["method"]; err == nil && there {
		m.method, err = methodOf(method)
		if err == nil && (fields["result"] != nil || fields["error"] != nil) {
			err = errors.New("the message is a request and a response at once")
		}
	}
	if id := fields["id"]; err == nil && m.method == "" && m.key == "" && id != nil && string(id) != "null" {
		err = errors.New("the id of the response is neither a text nor a number")
	}
	if err != nil {
		return m, refusal{code: codeRequest, id: m.id, error: err}
	}
	m.params, m.result, m.line = fields["params"], fields["result"], oneLine(raw)
	return m, nil
}

// methodOf decodes the name of a method. It refuses another name that contains tools/call, in any case,
// because a careless reader could take it for tools/call.
func methodOf(raw json.RawMessage) (method string, err error) {
	if json.Unmarshal(raw, &method) != nil || raw[0] != '"' {
		return "", errors.New("the method is not a string")
	}
	for _, c := range []byte(method) {
		if c <= ' ' || c > '~' {
			return "", errors.New("the method is not plain text without spaces")
		}
	}
	if strings.Contains(strings.ToLower(method), methodCall) && method != methodCall {
		return "", fmt.Errorf("the method %s is not %s", method, methodCall)
	}
	return method, nil
}

// members returns the members of a JSON object. If a name is the same as a known name except for the
// case, or contains a zero, the error is not nil, because some readers would take it for the known name.
// The members are complete even after an error.
func members(raw json.RawMessage, known ...string) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return nil, errors.New("it is not a JSON object")
	}
	for name := range fields {
		if strings.ContainsRune(name, 0) {
			return fields, fmt.Errorf("the field %q contains a zero, at which some readers end it", name)
		}
		for _, k := range known {
			if name != k && strings.EqualFold(name, k) {
				return fields, fmt.Errorf("the field %q is not a field: write %s", name, k)
			}
		}
	}
	return fields, nil
}

// onceEach returns an error if an object in a valid JSON value has two members with the same name,
// because readers differ in which of them they use.
func onceEach(raw json.RawMessage) error {
	type level struct {
		names map[string]bool // nil for an array
		value bool            // the next token is a member's value
	}
	var open []level
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return nil // the value has ended, because raw is valid
		}
		at := len(open) - 1
		switch {
		case token == json.Delim('}') || token == json.Delim(']'):
			open = open[:at]
			continue
		case at >= 0 && open[at].names != nil && !open[at].value:
			name := token.(string) // the first token of a member is its name
			if open[at].names[name] {
				return fmt.Errorf("the field %q is given twice", name)
			}
			open[at].names[name], open[at].value = true, true
			continue
		case at >= 0:
			open[at].value = false
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{names: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		}
	}
}

// oneLine returns a valid JSON value without the characters at which a reader could end a line. It
// removes the white space between tokens. In texts, it replaces U+0085, U+2028 and U+2029 by escapes.
func oneLine(raw json.RawMessage) []byte {
	var out bytes.Buffer
	_ = json.Compact(&out, raw) // cannot fail, because raw is valid
	line := out.Bytes()
	for char, escape := range map[string]string{"\u0085": `\u0085`, "\u2028": `\u2028`, "\u2029": `\u2029`} {
		line = bytes.ReplaceAll(line, []byte(char), []byte(escape))
	}
	return line
}

// envelope is a JSON-RPC message that the gate writes.
type envelope struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// encode returns e as one line with its line break.
func encode(e envelope) ([]byte, error) {
	e.Version = "2.0"
	line, err := schemas.Encode(e)
	return append(line, '\n'), err
}

// failure returns the error response that refuses a message.
func failure(id json.RawMessage, code int, why string) envelope {
	if id == nil {
		id = json.RawMessage("null")
	}
	return envelope{ID: id, Error: &rpcError{Code: code, Message: why}}
}

// toolResult is the result of a tools/call that does not reach the server.
type toolResult struct {
	Content []textContent `json:"content"`
	IsError bool          `json:"isError"`
}

type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func denial(id json.RawMessage, text string) envelope {
	return envelope{ID: id, Result: toolResult{Content: []textContent{{"text", text}}, IsError: true}}
}
