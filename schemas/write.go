package schemas

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// writer encodes the values of one type in one pass. Its output equals that of encoding/json without
// HTML escaping. A writer is faster, because encoding/json checks its own output.
type writer struct {
	kind   planKind
	fields []writerField // set only for a struct
	later  int           // the index of the struct's field Later; -1 if it has none
	item   *writer       // the writer for the items of a list, or for the target of a pointer
	length atomic.Int64  // the length of the last encoded value, at most maxBuffer
}

type writerField struct {
	head      string // the field's name in quotation marks, with a colon
	index     int
	omitEmpty bool
	omitZero  bool
	writer    *writer
}

// writers caches the writer of each type. The value is nil for a type that writers do not support.
var writers sync.Map

// writerOf returns the writer for a type. It returns nil if writers do not support the type or a part of
// it.
func writerOf(t reflect.Type) *writer {
	if known, ok := writers.Load(t); ok {
		return known.(*writer)
	}
	w := newWriter(t)
	writers.Store(t, w)
	return w
}

func newWriter(t reflect.Type) *writer {
	if t != timeType && t != rawType {
		for _, own := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
			if t.Implements(own) || reflect.PointerTo(t).Implements(own) {
				return nil
			}
		}
	}
	p := &plan{}
	if _, own := t.MethodByName("IsZero"); own && t != timeType || !p.setKind(t) {
		return nil
	}
	w := &writer{kind: p.kind, later: -1}
	switch w.kind {
	case planStruct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				if f.Type == laterType {
					w.later = i
				}
				continue
			}
			field := writerField{index: i, omitEmpty: options == "omitempty", omitZero: options == "omitzero", writer: newWriter(f.Type)}
			if f.Anonymous || !f.IsExported() || name == "" || field.writer == nil || options != "" && !field.omitEmpty && !field.omitZero {
				return nil
			}
			field.head = string(appendText(nil, name)) + ":"
			w.fields = append(w.fields, field)
		}
	case planList, planPointer:
		if w.item = newWriter(t.Elem()); w.item == nil {
			return nil
		}
	}
	return w
}

// encode returns v as JSON. It returns false if writers cannot encode v, so that encoding/json must
// do it.
func (w *writer) encode(v reflect.Value) ([]byte, bool) {
	if !v.CanAddr() { // from an addressable struct, a time can be read without a copy on the heap
		addressable := reflect.New(v.Type()).Elem()
		addressable.Set(v)
		v = addressable
	}
	last := int(w.length.Load())
	data, ok := w.append(make([]byte, 0, last+last/8+minBuffer), v) // the buffer gets the size of the last value, because values of one type mostly have similar lengths
	w.length.Store(int64(min(len(data), maxBuffer)))
	return data, ok
}

// The first buffer for a value has at least minBuffer bytes, and not much more than maxBuffer.
const (
	minBuffer = 64
	maxBuffer = 4 << 10
)

func (w *writer) append(to []byte, v reflect.Value) ([]byte, bool) {
	switch w.kind {
	case planText:
		return appendText(to, v.String()), true
	case planBool:
		return strconv.AppendBool(to, v.Bool()), true
	case planInt:
		return strconv.AppendInt(to, v.Int(), 10), true
	case planUint:
		return strconv.AppendUint(to, v.Uint(), 10), true
	case planTime:
		to, err := v.Addr().Interface().(*time.Time).AppendText(append(to, '"'))
		return append(to, '"'), err == nil
	case planRaw:
		return appendRaw(to, v.Bytes())
	case planStruct:
		return w.appendStruct(to, v)
	case planList:
		return w.appendList(to, v)
	}
	if v.IsNil() {
		return append(to, "null"...), true
	}
	return w.item.append(to, v.Elem())
}

func (w *writer) appendStruct(to []byte, v reflect.Value) (_ []byte, ok bool) {
	to = append(to, '{')
	first := true
	for i := range w.fields {
		f := &w.fields[i]
		value := v.Field(f.index)
		if f.omitEmpty && isEmpty(value) || f.omitZero && isZero(value) {
			continue
		}
		if !first {
			to = append(to, ',')
		}
		first = false
		if to, ok = f.writer.append(append(to, f.head...), value); !ok {
			return nil, false
		}
	}
	if w.later >= 0 {
		if later := v.Field(w.later).String(); later != "" {
			if !first {
				to = append(to, ',')
			}
			to = append(to, later...)
		}
	}
	return append(to, '}'), true
}

func (w *writer) appendList(to []byte, v reflect.Value) (_ []byte, ok bool) {
	if v.IsNil() {
		return append(to, "null"...), true
	}
	to = append(to, '[')
	for i := range v.Len() {
		if i > 0 {
			to = append(to, ',')
		}
		if to, ok = w.item.append(to, v.Index(i)); !ok {
			return nil, false
		}
	}
	return append(to, ']'), true
}

// isZero reports whether the option omitzero of a field's tag leaves the value out.
func isZero(v reflect.Value) bool {
	if v.Type() == timeType {
		return v.Addr().Interface().(*time.Time).IsZero()
	}
	return v.IsZero()
}

// isEmpty reports whether the option omitempty of a field's tag leaves the value out. A struct is
// never empty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// appendRaw appends JSON without white space between its parts. It returns false if the JSON is not
// valid.
func appendRaw(to []byte, raw json.RawMessage) ([]byte, bool) {
	if raw == nil {
		return append(to, "null"...), true
	}
	s := scanner{data: raw, compact: true, maxDepth: plannedDepth}
	if s.skip(0) && s.at == len(raw) {
		return append(to, raw...), true
	}
	compact := bytes.NewBuffer(to)
	if err := json.Compact(compact, raw); err != nil {
		return nil, false
	}
	return compact.Bytes(), true
}

const hexDigits = "0123456789abcdef"

// appendText appends a text as a JSON string, with the escapes of encoding/json.
func appendText(to []byte, s string) []byte {
	to = append(to, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			to = append(to, s[from:i]...)
			to = appendEscape(to, c)
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029' {
			to = append(append(to, s[from:i]...), `\u`...)
			to = append(to, hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
			from = i + size
		}
		i += size
	}
	return append(append(to, s[from:]...), '"')
}

func appendEscape(to []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(to, '\\', c)
	case '\b':
		return append(to, '\\', 'b')
	case '\f':
		return append(to, '\\', 'f')
	case '\n':
		return append(to, '\\', 'n')
	case '\r':
		return append(to, '\\', 'r')
	case '\t':
		return append(to, '\\', 't')
	}
	return append(to, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
