package schemas

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Later has those members of a stored object that this version of nod does not know, because a later
// version has written them. They are stored as JSON without the braces. Load keeps these members and
// Encode writes them again, so that an older engine loses none of them when it changes a record or a
// grant. Every struct that engines store and change has a Later. An engine allows nothing by an
// object for which HasLater is true, because an unknown member may narrow what the object allows.
type Later string

var laterType = reflect.TypeFor[Later]()

// HasLater reports whether a message, or a part of a message, has members that this version of nod does
// not know.
func HasLater(message any) bool { return hasLater(reflect.ValueOf(message)) }

func hasLater(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && hasLater(v.Elem())
	case reflect.Slice:
		if !hasParts(v.Type().Elem()) {
			return false
		}
		for i := range v.Len() {
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

// hasParts reports whether values of this type may contain a Later.
func hasParts(t reflect.Type) bool {
	return t != timeType && t != rawType && (t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer)
}

// keepLater sets each Later in v, which encoding/json has already decoded from data. It returns false if
// data has something that nod never writes, for example a name that occurs twice.
func (p *plan) keepLater(data []byte, v reflect.Value) bool {
	d := planDecoder{scanner{data: data}}
	d.space()
	return d.keep(p, v)
}

// keep does the work of keepLater for the JSON value at the current offset.
func (d *planDecoder) keep(p *plan, v reflect.Value) bool {
	for p.kind == planPointer && !v.IsNil() {
		p, v = p.item, v.Elem()
	}
	switch {
	case p.kind == planStruct && d.next('{'):
		return d.keepMembers(p, v)
	case p.kind == planList && p.item.kind >= planStruct && d.next('['):
		n := 0
		return d.each(']', func() bool {
			if n++; n > v.Len() {
				return false
			}
			return d.keep(p.item, v.Index(n-1))
		})
	}
	return d.past()
}

// keepMembers does the work of keepLater for the members of the object at the current offset.
func (d *planDecoder) keepMembers(p *plan, v reflect.Value) bool {
	var later bytes.Buffer
	at := 0
	ok := d.each('}', func() bool {
		name, _, ok := d.text()
		if d.space(); !ok || !d.next(':') {
			return false
		}
		d.space()
		if i := p.field(string(name), at); i >= 0 {
			at = i + 1
			return d.keep(p.fields[i].plan, v.Field(p.fields[i].index))
		}
		from := d.at
		if !d.past() {
			return false
		}
		if later.Len() > 0 {
			later.WriteByte(',')
		}
		later.WriteString(`"` + string(name) + `":`)
		return json.Compact(&later, d.data[from:d.at]) == nil
	})
	if ok && later.Len() > 0 && p.later >= 0 {
		v.Field(p.later).SetString(later.String())
	}
	return ok
}

// each calls the given function at each item of a list or an object, until the list or object ends.
func (d *planDecoder) each(end byte, one func() bool) bool {
	d.space()
	if d.next(end) {
		return true
	}
	for {
		if !one() {
			return false
		}
		d.space()
		if d.next(end) {
			return true
		}
		if !d.next(',') {
			return false
		}
		d.space()
	}
}

// past moves past any valid value. Unlike the method skip, it accepts any depth and any number of
// members.
func (d *planDecoder) past() bool {
	for open := 0; ; {
		switch d.peek() {
		case 0:
			return false
		case '"':
			if _, _, ok := d.text(); !ok {
				return false
			}
		case '{', '[':
			open++
			d.at++
		case '}', ']':
			open--
			d.at++
		case ',', ':', ' ', '\t', '\n', '\r':
			d.at++
			continue
		default:
			for d.at < len(d.data) && !strings.ContainsRune(",]} \t\n\r", rune(d.data[d.at])) {
				d.at++
			}
		}
		if open == 0 {
			return true
		}
	}
}
