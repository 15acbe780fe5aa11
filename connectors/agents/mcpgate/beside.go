package mcpgate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
	"github.com/tailscale/hujson"
)

// besideField is a field in the details of a request. It contains the parameters of a tools/call other
// than the arguments. People see these parameters, and an allow counts only for exactly these.
const besideField = "beside the arguments"

// plainMeta are the fields of _meta that only identify the call, its client or its trace. People do not
// see such a field, unless its value has more than maxPlain bytes.
var plainMeta = map[string]bool{
	"progressToken": true, "claudecode/toolUseId": true, "traceparent": true, "tracestate": true,
	"io.modelcontextprotocol/protocolVersion": true, "io.modelcontextprotocol/clientInfo": true,
	"io.modelcontextprotocol/clientCapabilities": true, "io.modelcontextprotocol/logLevel": true,
}

const maxPlain = 1024

// beside returns the parameters of the call, other than its arguments, that people must see. It returns
// nil if there are none.
func (c *call) beside() (json.RawMessage, error) {
	shown := map[string]json.RawMessage{}
	for _, name := range []string{"task", "inputResponses", "requestState"} {
		if raw, there := c.params[name]; there {
			shown[name] = raw
		}
	}
	if raw, there := c.params["_meta"]; there {
		meta := map[string]json.RawMessage{}
		if json.Unmarshal(raw, &meta) != nil {
			return nil, errors.New("params._meta: must be a JSON object")
		}
		for name, value := range meta {
			if plainMeta[name] && len(value) <= maxPlain {
				delete(meta, name)
			}
		}
		if len(meta) > 0 {
			var err error
			if shown["_meta"], err = schemas.Encode(meta); err != nil {
				return nil, err
			}
		}
	}
	if len(shown) == 0 {
		return nil, nil
	}
	return schemas.Encode(shown)
}

// details returns the call as people and rules see it: the arguments and, in the field besideField, the
// parameters that beside returns.
func (c *call) details() (json.RawMessage, error) {
	details, err := agents.WithCwd(c.arguments(), "")
	beside, err2 := c.beside()
	if err = errors.Join(err, err2); err != nil || beside == nil {
		return details, err
	}
	v, obj, err := agents.ParseObject(details)
	if err != nil {
		return nil, err
	}
	if agents.Member(obj, besideField) >= 0 {
		return nil, fmt.Errorf("the arguments have a field %q, which nod reserves", besideField)
	}
	value, err := hujson.Parse(beside)
	if err != nil {
		return nil, err
	}
	obj.Members = append(obj.Members, hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(besideField)}, Value: value})
	return v.Pack(), nil
}

// edited returns the arguments for the server from the details that a person edited. It returns an error
// if the person changed besideField.
func (c *call) edited(details json.RawMessage) (json.RawMessage, error) {
	beside, err := c.beside()
	if err != nil {
		return nil, err
	}
	v, obj, err := agents.ParseObject(details)
	if err != nil {
		return nil, err
	}
	at := agents.Member(obj, besideField)
	switch {
	case beside == nil && at >= 0:
		return nil, fmt.Errorf("the field %q cannot be added", besideField)
	case beside != nil:
		if at < 0 || !sameValue(obj.Members[at].Value.Pack(), beside) {
			return nil, fmt.Errorf("the field %q cannot be changed", besideField)
		}
		obj.Members = append(obj.Members[:at:at], obj.Members[at+1:]...)
	}
	return agents.WithoutCwd(v.Pack(), c.arguments(), "")
}

func sameValue(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// maxWords is the largest length, in characters, of the text from the server in a prompt.
const maxWords = 200

// wordsOf returns the text of a request that the server makes to the client, cut to maxWords. For an
// elicitation, it is the message to the user. Otherwise it is the last text for the client's model.
func wordsOf(params json.RawMessage) string {
	var p struct {
		Message  string `json:"message"`
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal(params, &p) != nil {
		return ""
	}
	words := p.Message
	if n := len(p.Messages); n > 0 && words == "" {
		var content struct {
			Text string `json:"text"`
		}
		_ = json.Unmarshal(p.Messages[n-1].Content, &content) // content of another form has no text to show
		words = content.Text
	}
	if utf8.RuneCountInString(words) > maxWords {
		words = string([]rune(words)[:maxWords-1]) + "…"
	}
	return words
}
