package schemas

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A plan decodes the usual form of a value in one pass: it checks syntax and schema while it fills
// the struct. A plan never refuses a value. If it cannot decode a value, the full check by
// encoding/json and the JSON Schema accepts the value or describes its error. If a plan accepts a
// value, the full check accepts it, too, with the same result (FuzzPlansAgreeWithTheFullCheck).
type plan struct {
	kind    planKind
	typ     reflect.Type
	fields  []planField // the fields of a struct, in the order of its definition
	later   int         // the index of the struct's field Later; -1 if it has none
	require uint64      // a bit for each field of the struct, set if a message must have the field
	item    *plan       // the plan for the items of a list, or for the target of a pointer
	null    bool        // whether the plan accepts null, as a nil list or pointer

	// These limits come from the schema. A plan without a schema has none.
	checked            bool
	minLength          int // in characters for a text, in items for a list
	maxLength          int // 0 means no limit
	texts              []string
	pattern            func(string) bool
	minimum            int64
	maximum            int64
	hasMinimum, hasMax bool
}

type planKind int

const (
	planText planKind = iota
	planBool
	planInt
	planUint
	planTime
	planRaw
	planStruct
	planList
	planPointer
)

type planField struct {
	name  string
	index int
	plan  *plan
}

// maxPlanFields is the greatest number of fields of a struct, which is the number of bits in
// plan.require.
const maxPlanFields = 64

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
)

// newPlan returns the plan for a type. If s is not nil, the plan checks values by this schema. newPlan
// returns nil if the type or the schema has a part that plans do not support.
func newPlan(t reflect.Type, s *schema) *plan {
	p := &plan{typ: t, later: -1, checked: s != nil}
	if s != nil {
		var ok bool
		if s, ok = p.limit(s); !ok {
			return nil
		}
	}
	if !p.setKind(t) || s != nil && !p.matches(s) {
		return nil
	}
	switch p.kind {
	case planStruct:
		if !p.addFields(t, s) {
			return nil
		}
	case planList, planPointer:
		item := s
		if p.kind == planList && s != nil {
			if item = s.Items; item == nil {
				return nil
			}
		}
		if p.item = newPlan(t.Elem(), item); p.item == nil {
			return nil
		}
	}
	return p
}

// setKind sets the plan's kind for a type. The result is false for a type that plans do not support.
func (p *plan) setKind(t reflect.Type) bool {
	switch t {
	case timeType:
		p.kind = planTime
		return true
	case rawType:
		p.kind = planRaw
		return true
	}
	if pointer := reflect.PointerTo(t); pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return false
	}
	switch t.Kind() {
	case reflect.String:
		p.kind = planText
	case reflect.Bool:
		p.kind = planBool
	case reflect.Int, reflect.Int64:
		p.kind = planInt
	case reflect.Uint64:
		p.kind = planUint
	case reflect.Struct:
		p.kind = planStruct
	case reflect.Slice:
		p.kind = planList
		p.null = !p.checked || p.null
		return t.Elem().Kind() != reflect.Uint8
	case reflect.Pointer:
		p.kind = planPointer
		p.null = !p.checked || p.null
	default:
		return false
	}
	return true
}

func (p *plan) addFields(t reflect.Type, s *schema) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			if f.Type == laterType {
				p.later = i
			}
			continue
		}
		if f.Anonymous || !f.IsExported() || name == "" || strings.Contains(f.Tag.Get("json"), ",string") {
			return false
		}
		var part *schema
		if s != nil {
			if part = s.Properties[name]; part == nil {
				return false
			}
		}
		field := newPlan(f.Type, part)
		if field == nil {
			return false
		}
		p.fields = append(p.fields, planField{name, i, field})
	}
	if len(p.fields) > maxPlanFields || s != nil && len(s.Properties) != len(p.fields) {
		return false
	}
	if s == nil {
		return true
	}
	for _, name := range s.Required {
		i := p.field(name, 0)
		if i < 0 {
			return false
		}
		p.require |= 1 << i
	}
	return true
}

// field returns the index of the field with this name, or -1. It begins its search at the index in
// the parameter next, because most messages have their fields in order.
func (p *plan) field(name string, next int) int {
	for i := range p.fields {
		at := next + i
		if at >= len(p.fields) {
			at -= len(p.fields)
		}
		if p.fields[at].name == name {
			return at
		}
	}
	return -1
}

// limit copies the limits of a schema into the plan. It returns the schema with the remaining rules:
// s itself or, if the value may be an object or null, the schema of the object. The result ok is
// false if the schema has a keyword that plans do not support. The compiler has already replaced all
// references.
func (p *plan) limit(s *schema) (_ *schema, ok bool) {
	if s.Then != nil { // the value may be null, or an object with the schema in Then
		if !s.Type.are("null", "object") || s.If == nil || !s.If.Type.are("object") {
			return nil, false
		}
		p.null = true
		return p.limit(s.Then)
	}
	if s.If != nil || s.MinProperties != 0 || s.AdditionalProperties != nil && s.AdditionalProperties.schema != nil {
		return nil, false
	}
	p.null = p.null || s.Type.are("null", "array")
	for _, value := range s.Enum {
		if !p.addText(value) {
			return nil, false
		}
	}
	if s.Const != nil && !p.addText(s.Const) {
		return nil, false
	}
	if s.Pattern != nil {
		p.pattern = s.Pattern.matches
	}
	p.minLength = max(s.MinLength, s.MinItems)
	for _, n := range []*int{s.MaxLength, s.MaxItems} {
		if n != nil {
			if p.maxLength = *n; *n == 0 {
				return nil, false
			}
		}
	}
	p.minimum, p.hasMinimum = bound(s.Minimum)
	p.maximum, p.hasMax = bound(s.Maximum)
	return s, true
}

// addText adds a text to the accepted texts. It returns false if the given value is no text.
func (p *plan) addText(value any) bool {
	text, ok := value.(string)
	if ok {
		p.texts = append(p.texts, text)
	}
	return ok
}

func bound(n *int64) (_ int64, set bool) {
	if n == nil {
		return 0, false
	}
	return *n, true
}

// The method are reports whether t consists of exactly these types. The caller must pass them in
// sorted order.
func (t types) are(names ...string) bool { return slices.Equal(t, names) }

// matches reports whether the schema requires the type that the plan's kind checks.
func (p *plan) matches(s *schema) bool {
	switch p.kind {
	case planText:
		return s.Format == "" && (s.Type.are("string") || s.Type == nil && p.texts != nil)
	case planTime:
		return s.Type.are("string") && s.Format == dateTime && s.Pattern == nil && p.texts == nil && p.maxLength == 0
	case planBool:
		return s.Type.are("boolean")
	case planInt, planUint:
		return s.Type.are("integer") && p.texts == nil
	case planRaw:
		return s.Type.are("object") && len(s.Properties) == 0 && len(s.Required) == 0 && !p.null && s.AdditionalProperties == nil
	case planStruct:
		return s.Type.are("object")
	case planList:
		return s.Type.are("array") || s.Type.are("null", "array")
	case planPointer:
		return true // the schema is for the plan of the target
	}
	return false
}
