package schemas

import (
	"encoding/json"
	"reflect"
	"time"
	"unicode/utf8"
)

// decode fills v, a zero value of the plan's type, from one JSON value. The parameter maxDepth is the
// deepest nesting that the full check accepts; 0 means the limit of encoding/json.
func (p *plan) decode(data []byte, v reflect.Value, maxDepth int) bool {
	if !utf8.Valid(data) {
		return false
	}
	d := planDecoder{scanner: scanner{data: data, strict: p.checked, maxDepth: plannedDepth}}
	if maxDepth > 0 {
		d.maxDepth = min(maxDepth, plannedDepth)
	}
	d.space()
	if !d.value(p, v, 0) {
		return false
	}
	d.space()
	return d.at == len(data)
}

// plannedDepth is the deepest nesting that a plan accepts.
const plannedDepth = 100

type planDecoder struct {
	scanner
}

func (d *planDecoder) value(p *plan, v reflect.Value, depth int) bool {
	if p.null && d.peek() == 'n' {
		return d.literal("null")
	}
	switch p.kind {
	case planText:
		return d.setText(p, v)
	case planBool:
		if d.literal("true") {
			v.SetBool(true)
			return true
		}
		return d.literal("false")
	case planInt, planUint:
		return d.setInteger(p, v)
	case planTime:
		literal, ok := d.plainText()
		return ok && v.Addr().Interface().(*time.Time).UnmarshalText(literal) == nil
	case planRaw:
		return d.setRaw(p, v, depth)
	case planStruct:
		return d.setStruct(p, v, depth+1)
	case planList:
		return d.setList(p, v, depth+1)
	case planPointer:
		target := reflect.New(p.item.typ)
		v.Set(target)
		return d.value(p.item, target.Elem(), depth)
	}
	return false
}

func (d *planDecoder) setText(p *plan, v reflect.Value) bool {
	literal, ok := d.plainText()
	if !ok {
		return false
	}
	if p.texts != nil {
		for _, text := range p.texts {
			if text == string(literal) {
				v.SetString(text)
				return true
			}
		}
		return false
	}
	text := string(literal)
	if len(text) < p.minLength || p.minLength > 1 && utf8.RuneCountInString(text) < p.minLength {
		return false
	}
	if p.maxLength > 0 && len(text) > p.maxLength && utf8.RuneCountInString(text) > p.maxLength {
		return false
	}
	if p.pattern != nil && !p.pattern(text) {
		return false
	}
	v.SetString(text)
	return true
}

func (d *planDecoder) setInteger(p *plan, v reflect.Value) bool {
	n, ok := d.integer()
	if !ok || p.hasMinimum && n < p.minimum || p.hasMax && n > p.maximum {
		return false
	}
	if p.kind == planUint {
		if n < 0 {
			return false
		}
		v.SetUint(uint64(n))
		return true
	}
	v.SetInt(n)
	return true
}

func (d *planDecoder) setRaw(p *plan, v reflect.Value, depth int) bool {
	from := d.at
	if d.peek() == 'n' || p.checked && d.peek() != '{' || !d.skip(depth) {
		return false
	}
	v.SetBytes(append(json.RawMessage(nil), d.data[from:d.at]...))
	return true
}

func (d *planDecoder) setStruct(p *plan, v reflect.Value, depth int) bool {
	if depth > d.maxDepth || !d.next('{') {
		return false
	}
	var seen uint64
	d.space()
	if d.next('}') {
		return p.require == 0
	}
	for at := 0; ; {
		name, ok := d.plainText()
		if !ok {
			return false
		}
		i := p.field(string(name), at)
		if i < 0 || seen&(1<<i) != 0 {
			return false
		}
		seen |= 1 << i
		at = i + 1
		d.space()
		if !d.next(':') {
			return false
		}
		d.space()
		if !d.value(p.fields[i].plan, v.Field(p.fields[i].index), depth) {
			return false
		}
		d.space()
		if d.next('}') {
			return seen&p.require == p.require
		}
		if !d.next(',') {
			return false
		}
		d.space()
	}
}

func (d *planDecoder) setList(p *plan, v reflect.Value, depth int) bool {
	if depth > d.maxDepth || !d.next('[') {
		return false
	}
	d.space()
	v.Set(reflect.MakeSlice(p.typ, 0, 0))
	if d.next(']') {
		return p.minLength == 0
	}
	for n := 0; ; {
		v.Grow(1)
		n++
		v.SetLen(n)
		if p.maxLength > 0 && n > p.maxLength || !d.value(p.item, v.Index(n-1), depth) {
			return false
		}
		d.space()
		if d.next(']') {
			return n >= p.minLength
		}
		if !d.next(',') {
			return false
		}
		d.space()
	}
}
