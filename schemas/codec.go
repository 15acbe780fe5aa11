package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Decode reads one message into v. v is a pointer to a message's struct, which this package calls a
// noun. Decode refuses messages that break the noun's JSON Schema or the rules of its check method,
// and ignores unknown fields. It first empties v. After an error v is empty.
//
// An error is an *Error of one line with the code VALIDATION_ERROR. If a field is wrong, the error
// begins with the field's path, as in "options[1].kind: must be one of …". If v is not a pointer to a
// noun, the code is INTERNAL_ERROR.
func Decode(data []byte, v any) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return Errorf(CodeInternal, "decode into %T: a pointer to a noun is needed", v)
	}
	target.Elem().SetZero()
	n, ok := nouns()[target.Type()]
	if !ok {
		return Errorf(CodeInternal, "decode into %T: it is not a message type of nod", v)
	}
	if err := n.decode(data, v); err != nil {
		target.Elem().SetZero()
		return err
	}
	return nil
}

// Load decodes as Decode does, but only a message that nod itself wrote: a stored message, an
// engine's reply, or a message on a subject on which only engines may publish. Load checks the
// message's type and the rules of its check method. It does not check the JSON Schema, because nod
// builds these messages from valid parts, and this check would take as long as all other work on a
// request.
func Load(data []byte, v any) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return Errorf(CodeInternal, "load into %T: a pointer to a noun is needed", v)
	}
	target.Elem().SetZero()
	n, ok := nouns()[target.Type()]
	if !ok {
		return Errorf(CodeInternal, "load into %T: it is not a message type of nod", v)
	}
	if err := n.load(data, v); err != nil {
		target.Elem().SetZero()
		return err
	}
	return nil
}

// fill decodes data into v, a pointer to an empty struct. If fill returns false, it has left v empty.
func (p *plan) fill(data []byte, v any, maxDepth int) bool {
	if p == nil {
		return false
	}
	target := reflect.ValueOf(v).Elem()
	if p.decode(data, target, maxDepth) {
		return true
	}
	target.SetZero()
	return false
}

// ReadRequest decodes a request that an engine has accepted and stored. It checks no rules, because
// the engine may have accepted the request by rules that have changed since.
func ReadRequest(data []byte) (Request, error) {
	var r Request
	if nouns()[reflect.TypeFor[*Request]()].loose().fill(data, &r, 0) {
		return r, nil
	}
	err := json.Unmarshal(data, &r)
	return r, err
}

func (n *noun) load(data []byte, v any) error {
	if p := n.loose(); !p.fill(data, v, 0) {
		if err := json.Unmarshal(data, v); err != nil {
			return invalid(n.label, "is not as expected: %v", err)
		}
		if p != nil && !p.keepLater(data, reflect.ValueOf(v).Elem()) {
			return invalid(n.label, "is not as expected")
		}
	}
	if typ := reflect.ValueOf(v).Elem().FieldByName("Type").String(); typ != n.typ && (n.team == "" || typ != n.team) {
		return invalid("type", "is %s, but %s is expected", quote(typ), n.typ)
	}
	if c, ok := v.(checker); ok {
		return c.check()
	}
	return nil
}

type checker interface{ check() error }

func (n *noun) decode(data []byte, v any) error {
	if n.maxBytes > 0 && len(data) > n.maxBytes {
		return invalid(n.label, "is %d bytes long; the most is %d", len(data), n.maxBytes)
	}
	if p := n.strict(); !p.fill(data, v, n.maxDepth) {
		if err := n.checkFully(data, v); err != nil {
			return err
		}
	}
	if c, ok := v.(checker); ok {
		return c.check()
	}
	return nil
}

// checkFully decodes a message with encoding/json and checks it by its JSON Schema. It accepts every
// valid message, including those that the faster decoder (a plan) cannot decode. For an invalid
// message it describes the error.
func (n *noun) checkFully(data []byte, v any) error {
	schema, err := n.schema()
	if err != nil {
		return Errorf(CodeInternal, "%v", err)
	}
	unmarshalled := json.Unmarshal(data, v) // json.Unmarshal comes before parse, because parse needs valid syntax
	if err := n.checkObject(data, unmarshalled); err != nil {
		return err
	}
	tree, err := parse(data, schema, n.maxDepth)
	if err != nil {
		return err
	}
	if err := n.checkType(tree); err != nil {
		return err
	}
	if err := schema.check(tree); err != nil {
		return err
	}
	if unmarshalled != nil {
		return describeUnmarshal(unmarshalled)
	}
	return nil
}

// checkObject refuses data that is not one JSON object in UTF-8. The parameter unmarshalled is the
// error that json.Unmarshal returned for data.
func (n *noun) checkObject(data []byte, unmarshalled error) error {
	if !utf8.Valid(data) {
		return Errorf(CodeValidation, "%s is not valid UTF-8", n.label)
	}
	var syntax *json.SyntaxError
	if errors.As(unmarshalled, &syntax) {
		read := data[:min(int(syntax.Offset), len(data))]
		line := bytes.Count(read, []byte("\n")) + 1
		column := len(read) - (bytes.LastIndexByte(read, '\n') + 1)
		return Errorf(CodeValidation, "%s is not JSON: line %d, column %d: %v", n.label, line, column, syntax)
	}
	if bytes.TrimLeft(data, " \t\r\n")[0] != '{' {
		return Errorf(CodeValidation, "%s is not a JSON object", n.label)
	}
	return nil
}

// checkType refuses a message of an unexpected type. It does nothing for settings.json, which has no
// type.
func (n *noun) checkType(tree map[string]any) error {
	if n.typ == "" {
		return nil
	}
	got, ok := tree["type"].(string)
	switch {
	case !ok:
		return Errorf(CodeValidation, "type: is missing or no string; it must be %s", n.typ)
	case got == n.typ:
		return nil
	case strings.HasPrefix(got, prefix) || !versioned(got):
		return Errorf(CodeValidation, "type: is %s, but %s is expected", quote(got), n.typ)
	default:
		return invalid("type", "is %s, a version that nod does not know; send %s", quote(got), n.typ)
	}
}

// versioned reports whether a type has the form nod.<version>.<name>.
func versioned(typ string) bool {
	tokens := strings.Split(typ, ".")
	return len(tokens) == 3 && tokens[0] == "nod" && strings.HasPrefix(tokens[1], "v")
}

func invalid(path, format string, args ...any) *Error {
	return Errorf(CodeValidation, "%s: %s", path, fmt.Sprintf(format, args...))
}
