package schemas

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Later has the members of a stored object that this version of nod does not know, as JSON without
// the braces: a later version wrote them. Load keeps them and Encode writes them again, so that
// an older engine that changes a record or a grant loses nothing of it. Every struct that engines
// store and change has a Later. A member may narrow what the object allows, so an engine allows
// nothing by an object that HasLater.
type Later string

var laterType = reflect.TypeFor[Later]()

// HasLater reports whether a message, or a part of it, has members that this version of nod does
// not know.
func HasLater(message any) bool { return hasLater(reflect.ValueOf(message)) }

func hasLater(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && hasLater(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			if !hasParts(v.Type().Elem()) {
				return false
			}
			if hasLater(v.Index(i)) {
				return true
			}
		}
	case reflect.Struct:
		if !hasParts(v.Type()) {
			return false
		}
		for i := range v.NumField() {
			f := v.Field(i)
			if f.Type() == laterType && f.Len() > 0 || hasLater(f) {
				return true
			}
		}
	}
	return false
}

// hasParts reports whether a value of this type may contain a Later.
func hasParts(t reflect.Type) bool {
	return t != timeType && t != rawType && (t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer)
}

// keepLater sets each Later in v, which was decoded from data.
func keepLater(data []byte, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			keepLater(data, v.Elem())
		}
	case reflect.Slice:
		var items []json.RawMessage
		if !hasParts(v.Type().Elem()) || json.Unmarshal(data, &items) != nil || len(items) != v.Len() {
			return
		}
		for i, item := range items {
			keepLater(item, v.Index(i))
		}
	case reflect.Struct:
		var members map[string]json.RawMessage
		if !hasParts(v.Type()) || json.Unmarshal(data, &members) != nil {
			return
		}
		keepMembers(members, v)
	}
}

// keepMembers is keepLater for a struct. It removes the known members from members.
func keepMembers(members map[string]json.RawMessage, v reflect.Value) {
	later := reflect.Value{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Type == laterType {
			later = v.Field(i)
			continue
		}
		known, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		for name, value := range members {
			if strings.EqualFold(name, known) { // encoding/json takes such a name for the field
				keepLater(value, v.Field(i))
				delete(members, name)
			}
		}
	}
	if !later.IsValid() || len(members) == 0 {
		return
	}
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if text.Len() > 0 {
			text.WriteByte(',')
		}
		text.Write(append(appendText(nil, name), ':'))
		_ = json.Compact(&text, members[name]) // json.Unmarshal has checked the value
	}
	later.SetString(text.String())
}
