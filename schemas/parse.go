package schemas

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// parse turns data, which must be a syntactically valid JSON object, into the maps and slices that a
// schema validates. It refuses input that JSON readers interpret in different ways, because otherwise
// a person could read one text and the host could run another. Such input has repeated names, a
// field's name in another case (which encoding/json accepts as the field), halves of surrogate pairs,
// or numbers that RFC 8785 would change. parse also refuses nesting deeper than maxDepth; 0 means no
// limit.
func parse(data []byte, s *schema, maxDepth int) (map[string]any, error) {
	r := reader{data: string(data), maxDepth: maxDepth}
	tree, f := r.object(s, 1)
	if f != nil {
		return nil, f.err()
	}
	return tree, nil
}

type reader struct {
	data     string
	at       int
	maxDepth int
}

// fault is an error in the input. At first its path has only the innermost part. Each parsing
// function that returns the fault puts the part that it parses in front.
type fault struct {
	path string
	text string
}

func (f *fault) in(step string) *fault {
	f.path = step + f.path
	return f
}

func (f *fault) err() error {
	return invalid(short(strings.TrimPrefix(f.path, "."), 200), "%s", f.text)
}

func (r *reader) value(s *schema, depth int) (any, *fault) {
	r.at = skipSpace(r.data, r.at)
	switch r.data[r.at] {
	case '{':
		return r.object(s, depth+1)
	case '[':
		return r.array(s, depth+1)
	case '"':
		return r.string()
	case 't':
		r.at += len("true")
		return true, nil
	case 'f':
		r.at += len("false")
		return false, nil
	case 'n':
		r.at += len("null")
		return nil, nil
	default:
		return r.number()
	}
}

func (r *reader) object(s *schema, depth int) (map[string]any, *fault) {
	if f := r.checkDepth(depth); f != nil {
		return nil, f
	}
	fields := fieldsOf(s)
	object := make(map[string]any, len(fields))
	for r.enter('}') {
		name, f := r.string()
		if f != nil {
			return nil, f
		}
		field, known := fields[name]
		if _, twice := object[name]; twice {
			return nil, (&fault{text: "is given twice"}).in(step(name))
		}
		if !known {
			if meant := otherCase(fields, name); meant != "" {
				return nil, (&fault{text: "is not a field; write " + meant}).in(step(name))
			}
		}
		r.at = skipSpace(r.data, r.at) + len(":")
		value, f := r.value(field, depth)
		if f != nil {
			return nil, f.in(step(name))
		}
		object[name] = value
	}
	return object, nil
}

func (r *reader) array(s *schema, depth int) ([]any, *fault) {
	if f := r.checkDepth(depth); f != nil {
		return nil, f
	}
	var items *schema
	if s != nil {
		items = s.Items
	}
	array := []any{}
	for r.enter(']') {
		item, f := r.value(items, depth)
		if f != nil {
			return nil, f.in("[" + strconv.Itoa(len(array)) + "]")
		}
		array = append(array, item)
	}
	return array, nil
}

// enter moves to the next member or item and returns true. If there is no further member or item, it
// moves past the closing bracket and returns false.
func (r *reader) enter(closing byte) bool {
	r.at = skipSpace(r.data, r.at)
	if r.data[r.at] != closing {
		r.at = skipSpace(r.data, r.at+1)
	}
	if r.data[r.at] != closing {
		return true
	}
	r.at++
	return false
}

func (r *reader) checkDepth(depth int) *fault {
	if r.maxDepth > 0 && depth > r.maxDepth {
		return &fault{text: "is nested more than " + strconv.Itoa(r.maxDepth) + " levels deep"}
	}
	return nil
}

func (r *reader) string() (string, *fault) {
	start := r.at
	plain := true
	for r.at++; r.data[r.at] != '"'; r.at++ {
		if r.data[r.at] == '\\' {
			plain = false
			r.at++
		}
	}
	r.at++
	literal := r.data[start:r.at]
	if plain {
		return literal[1 : len(literal)-1], nil
	}
	if halfSurrogate(literal) {
		return "", &fault{text: `holds half of a surrogate pair, such as \ud800 alone`}
	}
	var s string
	if err := json.Unmarshal([]byte(literal), &s); err != nil {
		return "", &fault{text: "is no string: " + err.Error()}
	}
	return s, nil
}

// halfSurrogate reports whether a JSON string has a \u escape for one half of a surrogate pair
// without the other half. encoding/json reads every such half as U+FFFD, so texts that other JSON
// readers distinguish would look the same and have the same digest.
func halfSurrogate(literal string) bool {
	for i := 0; i < len(literal); i++ {
		if literal[i] != '\\' {
			continue
		}
		i++
		first := escaped(literal[i:])
		if !utf16.IsSurrogate(first) {
			continue
		}
		i += len("ud800")
		if literal[i] != '\\' || utf16.DecodeRune(first, escaped(literal[i+1:])) == unicode.ReplacementChar {
			return true
		}
		i += len("udc00")
	}
	return false
}

// escaped returns the code unit of an escape "uXXXX" at the start of text. It returns -1 for any other
// escape.
func escaped(text string) rune {
	if text[0] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(text[1:5], 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// fieldsOf returns the properties that a schema lists for an object, or nil for an object with free
// names. If the schema also accepts null, its properties are under "then".
func fieldsOf(s *schema) map[string]*schema {
	switch {
	case s == nil:
		return nil
	case s.Then != nil:
		return s.Then.Properties
	default:
		return s.Properties
	}
}

// otherCase returns the field whose name differs from the given name only in upper and lower case, or
// "" if there is none. encoding/json would set that field.
func otherCase(fields map[string]*schema, name string) string {
	for field := range fields {
		if strings.EqualFold(field, name) {
			return field
		}
	}
	return ""
}

func skipSpace(data string, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}

// step returns a member's name as a part of a path. It quotes a name that is not a plain id.
func step(name string) string {
	if ValidID(name) {
		return "." + name
	}
	return "[" + quote(name) + "]"
}

// quote returns a text from an agent in quotation marks, on one line and cut to 64 bytes.
func quote(s string) string { return strconv.Quote(short(s, 64)) }

func short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
