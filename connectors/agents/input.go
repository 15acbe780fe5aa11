package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tailscale/hujson"
)

// cwdField is the field in which the host names the directory of a call. Rules rely on this field. If
// the tool's own input has a field "cwd", nod renames that field to ownCwdField. No rule matches
// ownCwdField, so that nod asks a person.
const (
	cwdField    = "cwd"
	ownCwdField = "cwd, in the input"
)

// IsObject reports whether raw is a JSON object without white space before it.
func IsObject(raw json.RawMessage) bool {
	return len(raw) > 0 && raw[0] == '{' && json.Valid(raw)
}

// WithCwd returns a tool's input as people and rules see it. It adds the host's "cwd" as the last field, so
// that a person sees where a command runs, but adds nothing if cwd is empty. It keeps all other bytes,
// because a number that was decoded and encoded again could differ from the number that the tool gets.
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
			return nil, fmt.Errorf("the tool's input has a field %q, which nod reserves", ownCwdField)
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

// WithoutCwd reverses WithCwd for an input that a person has edited, and returns the input for the
// tool. If the person changed the host's "cwd", it returns an error, because the tool would still run
// in the original directory.
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

// ParseObject parses a JSON object into a tree that keeps every byte. It returns an error for any
// other JSON value.
func ParseObject(raw json.RawMessage) (hujson.Value, *hujson.Object, error) {
	if !IsObject(raw) {
		return hujson.Value{}, nil, errors.New("it is not a JSON object")
	}
	v, err := hujson.Parse(raw)
	if err != nil {
		return hujson.Value{}, nil, err
	}
	return v, v.Value.(*hujson.Object), nil // raw has this type, because IsObject has checked it
}

// Member returns the index of the member with this name, or -1. If several members have the name, it
// returns the index of the last, because hosts use the last value.
func Member(obj *hujson.Object, name string) int {
	for i, m := range slices.Backward(obj.Members) {
		if m.Name.Value.(hujson.Literal).String() == name { // member names are always literals
			return i
		}
	}
	return -1
}
