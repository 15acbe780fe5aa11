package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// schema is a JSON Schema of draft 2020-12. It supports only the keywords that nod's schemas use, and
// decoding a schema with any other keyword fails. A library for all keywords would cost each process
// 3 ms at its start, and each hook is a process.
type schema struct {
	Ref  string             `json:"$ref"`
	Defs map[string]*schema `json:"$defs"`

	Type  types   `json:"type"`
	Enum  []any   `json:"enum"`
	Const any     `json:"const"`
	If    *schema `json:"if"`
	Then  *schema `json:"then"`

	Properties           map[string]*schema `json:"properties"`
	Required             []string           `json:"required"`
	AdditionalProperties *additional        `json:"additionalProperties"`
	MinProperties        int                `json:"minProperties"`

	Items    *schema `json:"items"`
	MinItems int     `json:"minItems"`
	MaxItems *int    `json:"maxItems"`

	MinLength int      `json:"minLength"`
	MaxLength *int     `json:"maxLength"`
	Pattern   *pattern `json:"pattern"`
	Format    format   `json:"format"`

	Minimum *int64 `json:"minimum"`
	Maximum *int64 `json:"maximum"`

	// These keywords are annotations, which check nothing.
	Dialect     string `json:"$schema"`
	ID          string `json:"$id"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Comment     string `json:"$comment"`
	Default     any    `json:"default"`
	Examples    []any  `json:"examples"`
}

// types are the JSON types that a value may have. An empty list accepts every type.
type types []string

func (t *types) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = types{one}
	} else if err := json.Unmarshal(data, (*[]string)(t)); err != nil {
		return err
	}
	known := []string{"null", "boolean", "object", "array", "number", "integer", "string"}
	for _, name := range *t {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%q is no type of JSON", name)
		}
	}
	slices.SortFunc(*t, func(a, b string) int { return slices.Index(known, a) - slices.Index(known, b) })
	return nil
}

// additional describes the members of an object that the schema does not list. All such members must
// match the schema in the field schema. If that field is nil, the object must not have such members.
type additional struct{ schema *schema }

func (a *additional) UnmarshalJSON(data []byte) error {
	var allowed bool
	if json.Unmarshal(data, &allowed) == nil {
		if allowed {
			a.schema = &schema{}
		}
		return nil
	}
	return decodeSchema(data, &a.schema)
}

// pattern is a regular expression that a text must match.
type pattern struct {
	text    string
	matches func(string) bool
}

// UnmarshalJSON compiles the expression. Instead of the expression for ids, it uses ValidID, which needs
// a tenth of the time. This matters because every message contains ids.
func (p *pattern) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &p.text); err != nil {
		return err
	}
	if p.matches = ValidID; p.text == idPattern {
		return nil
	}
	expression, err := regexp.Compile(p.text)
	if err != nil {
		return err
	}
	p.matches = expression.MatchString
	return nil
}

// format is the name of a text format. nod's schemas use only date-time.
type format string

const dateTime format = "date-time"

func (f *format) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, (*string)(f)); err != nil {
		return err
	}
	if *f != dateTime {
		return fmt.Errorf("%q is no format that nod checks", *f)
	}
	return nil
}

// decodeSchema decodes a schema. An unknown keyword is an error, because nod would not check the keyword.
func decodeSchema(data []byte, into **schema) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// faults are the faults that the validation has found in a message so far. Their paths begin at the
// value that is being validated.
type faults []*fault

func (f *faults) add(format string, args ...any) {
	*f = append(*f, &fault{text: fmt.Sprintf(format, args...)})
}

// The method below puts a step in front of the paths of some faults: those from the index in the
// parameter start on.
func (f faults) below(start int, step func() string) {
	for _, one := range f[start:] {
		one.in(step())
	}
}

// validate appends the faults of v, a value in the tree that parse returns.
func (s *schema) validate(v any, f *faults) {
	if s.If != nil && s.Then != nil && s.If.accepts(v) {
		s.Then.validate(v, f)
	}
	if len(s.Type) > 0 && !s.Type.include(v) {
		f.add("must be of type %s, not %s", strings.Join(s.Type, " or "), typeOf(v))
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(one any) bool { return equal(one, v) }) {
		f.add("must be one of %s", list(s.Enum))
	}
	if s.Const != nil && !equal(s.Const, v) {
		f.add("must be %v", s.Const)
	}
	switch v := v.(type) {
	case string:
		s.validateText(v, f)
	case json.Number:
		s.validateNumber(v, f)
	case []any:
		s.validateArray(v, f)
	case map[string]any:
		s.validateObject(v, f)
	}
}

func (s *schema) accepts(v any) bool {
	var f faults
	s.validate(v, &f)
	return len(f) == 0
}

func (s *schema) validateText(v string, f *faults) {
	if len(v) < s.MinLength*utf8.UTFMax || s.MaxLength != nil && len(v) > *s.MaxLength { // a character has 1 to UTFMax bytes, so only a text with such a length in bytes can break a limit in characters
		switch n := utf8.RuneCountInString(v); {
		case n < s.MinLength && s.MinLength == 1:
			f.add("must not be empty")
		case n < s.MinLength:
			f.add("has %d characters; the least is %d", n, s.MinLength)
		case s.MaxLength != nil && n > *s.MaxLength:
			f.add("has %d characters; the most is %d", n, *s.MaxLength)
		}
	}
	if s.Pattern != nil && !s.Pattern.matches(v) {
		f.add("must be %s", wordsForPattern(s.Pattern.text))
	}
	if s.Format == dateTime && !isTime(v) {
		f.add("must be a time such as 2026-01-18T00:00:00Z")
	}
}

// isTime reports whether time.Time can decode the text, so that the schema accepts the same times as the
// struct.
func isTime(text string) bool {
	var t time.Time
	return t.UnmarshalText([]byte(text)) == nil
}

func (s *schema) validateNumber(v json.Number, f *faults) {
	if s.Minimum == nil && s.Maximum == nil {
		return
	}
	n, err := v.Float64() // the number is exact, because parse refuses numbers that a double cannot hold exactly
	switch {
	case err != nil:
		f.add("is no number")
	case s.Minimum != nil && n < float64(*s.Minimum):
		f.add("must be at least %d", *s.Minimum)
	case s.Maximum != nil && n > float64(*s.Maximum):
		f.add("must be at most %d", *s.Maximum)
	}
}

func (s *schema) validateArray(v []any, f *faults) {
	switch {
	case len(v) < s.MinItems && s.MinItems == 1:
		f.add("must not be empty")
	case len(v) < s.MinItems:
		f.add("has %d entries; the least is %d", len(v), s.MinItems)
	case s.MaxItems != nil && len(v) > *s.MaxItems:
		f.add("has %d entries; the most is %d", len(v), *s.MaxItems)
	}
	if s.Items == nil {
		return
	}
	for i, item := range v {
		start := len(*f)
		s.Items.validate(item, f)
		f.below(start, func() string { return "[" + strconv.Itoa(i) + "]" })
	}
}

func (s *schema) validateObject(v map[string]any, f *faults) {
	switch {
	case len(v) < s.MinProperties && s.MinProperties == 1:
		f.add("must not be empty")
	case len(v) < s.MinProperties:
		f.add("has %d members; the least is %d", len(v), s.MinProperties)
	}
	for _, name := range s.Required {
		if _, there := v[name]; !there {
			*f = append(*f, (&fault{text: "is missing"}).in(step(name)))
			break // a message gets only one error, so the search ends at the first missing field
		}
	}
	var unknown []string
	for name, value := range v {
		field := s.Properties[name]
		switch {
		case field != nil:
		case s.AdditionalProperties == nil:
			continue
		case s.AdditionalProperties.schema == nil:
			unknown = append(unknown, name)
			continue
		default:
			field = s.AdditionalProperties.schema
		}
		start := len(*f)
		field.validate(value, f)
		f.below(start, func() string { return step(name) })
	}
	if len(unknown) > 0 {
		name := slices.Min(unknown)
		*f = append(*f, s.unknown(name).in(step(name)))
	}
}

// unknown returns the fault for a member that the schema does not list. The fault also names the
// listed member with the most similar name.
func (s *schema) unknown(name string) *fault {
	if meant := Nearest(name, slices.Collect(maps.Keys(s.Properties))); meant != "" {
		return &fault{text: "is not known here; did you mean " + meant + "?"}
	}
	return &fault{text: "is not known here; look for a typing mistake"}
}

func (t types) include(v any) bool {
	for _, name := range t {
		if hasType(v, name) {
			return true
		}
	}
	return false
}

func hasType(v any, name string) bool {
	if name == "integer" {
		n, ok := v.(json.Number)
		return ok && isInteger(string(n))
	}
	return typeOf(v) == name
}

// isInteger reports whether a number has no fraction, as 1, 1.0 and 1e2.
func isInteger(literal string) bool {
	d := decimalOf(literal)
	return d.exponent >= len(d.digits)
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// equal reports whether v equals a value of the keywords enum or const. In nod's schemas, these values
// are texts.
func equal(listed, v any) bool {
	switch listed := listed.(type) {
	case string, bool, nil:
		return listed == v
	}
	return false
}

func list(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, ", ")
}

func wordsForPattern(pattern string) string {
	switch {
	case pattern == idPattern:
		return "1 to 128 letters, digits, - or _"
	case strings.HasPrefix(pattern, "^@"):
		return tagWords
	case strings.HasPrefix(pattern, "^/"), strings.HasPrefix(pattern, "^(/"):
		return "an absolute path without control characters"
	case strings.HasPrefix(pattern, "^[0-9a-f]"):
		return "64 lower-case hexadecimal digits"
	default:
		return "like " + pattern
	}
}
