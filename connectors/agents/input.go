package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tailscale/hujson"
)

// cwdField is where the host says that a call runs. A field of this name in
// the tool's own input is shown under ownCwdField: only the host's word counts,
// and rules, which know no such field, ask.
const (
	cwdField    = "cwd"
	ownCwdField = "cwd, in the input"
)

// IsObject reports whether raw is a JSON object.
func IsObject(raw json.RawMessage) bool {
	return len(raw) > 0 && raw[0] == '{' && json.Valid(raw)
}

// WithCwd is a tool's input as people and rules are shown it: with the host's
// "cwd" at its end, if it says one, since people must see where a command runs.
// Everything else stays byte for byte, since a number that went through a float
// would no longer be what is run.
func WithCwd(input json.RawMessage, cwd string) (json.RawMessage, error) {
	v, obj, err := ParseObject(input)
	if err != nil {
		return nil, fmt.Errorf("read the tool's input: %w", err)
	}
	own := Member(obj, cwdField)
	if own < 0 && cwd == "" {
		return input, nil
	}
	if own >= 0 {
		if Member(obj, ownCwdField) >= 0 {
			return nil, fmt.Errorf("the tool's input has a field %q, which nod needs", ownCwdField)
		}
		obj.Members[own].Name.Value = hujson.String(ownCwdField)
	}
	if cwd != "" {
		obj.Members = append(obj.Members, hujson.ObjectMember{
			Name:  hujson.Value{Value: hujson.String(cwdField)},
			Value: hujson.Value{Value: hujson.String(cwd)},
		})
	}
	return v.Pack(), nil
}

// WithoutCwd is a person's edit of what WithCwd made of input, as the tool takes
// it. An edit of the host's "cwd" is refused, as the tool would run in the old
// directory all the same.
func WithoutCwd(edited, input json.RawMessage, cwd string) (json.RawMessage, error) {
	_, original, err := ParseObject(input)
	if err != nil {
		return nil, err
	}
	v, obj, err := ParseObject(edited)
	if err != nil {
		return nil, err
	}
	if i := Member(obj, cwdField); i >= 0 {
		if s, ok := obj.Members[i].Value.Value.(hujson.Literal); !ok || s.Kind() != '"' || s.String() != cwd {
			return nil, errors.New("the directory of a call cannot be changed")
		}
		obj.Members = slices.Delete(obj.Members, i, i+1)
	}
	if own := Member(obj, ownCwdField); own >= 0 && Member(original, cwdField) >= 0 {
		obj.Members[own].Name.Value = hujson.String(cwdField)
	}
	return v.Pack(), nil
}

// ParseObject reads a JSON object as a tree that keeps every byte of it. What is
// none is an error.
func ParseObject(raw json.RawMessage) (hujson.Value, *hujson.Object, error) {
	if !IsObject(raw) {
		return hujson.Value{}, nil, errors.New("it is not a JSON object")
	}
	v, err := hujson.Parse(raw)
	if err != nil {
		return hujson.Value{}, nil, err
	}
	return v, v.Value.(*hujson.Object), nil // IsObject has seen the brace
}

// Member is the index of a member by name, the last one where there are
// several, as hosts read them; -1 where there is none.
func Member(obj *hujson.Object, name string) int {
	for i, m := range slices.Backward(obj.Members) {
		if m.Name.Value.(hujson.Literal).String() == name { // names are literals
			return i
		}
	}
	return -1
}
