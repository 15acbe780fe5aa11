package schemas

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// parse turns data, a JSON object of valid syntax, into the maps and slices
// that a schema validates, and refuses on the way what readers of JSON do not
// agree on: names given twice, names that differ from a field's in case alone
// (encoding/json would take them for the field), halves of surrogate pairs,
// numbers that RFC 8785 would change, and nesting deeper than maxDepth (0: no
// matter). What a person was shown, what was hashed and what the agent's host
// will run are the same only without them.
func parse(data []byte, schema *jsonschema.Schema, maxDepth int) (map[string]any, error) {
	p := reader{data: string(data), maxDepth: maxDepth}
	tree, fault := p.object(schema, 1)
	if fault != nil {
		return nil, fault.err()
	}
	return tree, nil
}

// reader reads JSON that json.Valid has accepted, so it checks no syntax.
type reader struct {
	data     string
	at       int
	maxDepth int
}

// A fault gathers its path from the inside out while parsing unwinds.
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

func (p *reader) value(schema *jsonschema.Schema, depth int) (any, *fault) {
	p.at = skipSpace(p.data, p.at)
	switch p.data[p.at] {
	case '{':
		return p.object(schema, depth+1)
	case '[':
		return p.array(schema, depth+1)
	case '"':
		return p.string()
	case 't':
		p.at += len("true")
		return true, nil
	case 'f':
		p.at += len("false")
		return false, nil
	case 'n':
		p.at += len("null")
		return nil, nil
	default:
		return p.number()
	}
}

func (p *reader) object(schema *jsonschema.Schema, depth int) (map[string]any, *fault) {
	if f := p.checkDepth(depth); f != nil {
		return nil, f
	}
	fields := fieldsOf(schema)
	object := make(map[string]any, len(fields))
	for p.enter('}') {
		name, f := p.string()
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
		p.at = skipSpace(p.data, p.at) + len(":")
		value, f := p.value(field, depth)
		if f != nil {
			return nil, f.in(step(name))
		}
		object[name] = value
	}
	return object, nil
}

func (p *reader) array(schema *jsonschema.Schema, depth int) ([]any, *fault) {
	if f := p.checkDepth(depth); f != nil {
		return nil, f
	}
	var items *jsonschema.Schema
	if schema != nil {
		items = schema.Items2020
	}
	array := []any{}
	for p.enter(']') {
		item, f := p.value(items, depth)
		if f != nil {
			return nil, f.in("[" + strconv.Itoa(len(array)) + "]")
		}
		array = append(array, item)
	}
	return array, nil
}

// enter steps over the bracket or comma before the next member or item and
// reports whether there is one; at the end it steps over the closing bracket.
func (p *reader) enter(closing byte) bool {
	p.at = skipSpace(p.data, p.at)
	if p.data[p.at] != closing {
		p.at = skipSpace(p.data, p.at+1)
	}
	if p.data[p.at] != closing {
		return true
	}
	p.at++
	return false
}

func (p *reader) checkDepth(depth int) *fault {
	if p.maxDepth > 0 && depth > p.maxDepth {
		return &fault{text: "is nested more than " + strconv.Itoa(p.maxDepth) + " levels deep"}
	}
	return nil
}

func (p *reader) string() (string, *fault) {
	start := p.at
	plain := true
	for p.at++; p.data[p.at] != '"'; p.at++ {
		if p.data[p.at] == '\\' {
			plain = false
			p.at++
		}
	}
	p.at++
	literal := p.data[start:p.at]
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

// halfSurrogate reports a \u escape of a surrogate without its other half.
// encoding/json reads each of them as U+FFFD, so that texts which differ for
// others would look and hash the same here.
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

// escaped is the code unit of the escape "uXXXX" at the start of text, or -1
// for another escape.
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

// fieldsOf are the properties that schema knows of an object, none for one
// that is free. Where null is allowed too, they stand behind "then".
func fieldsOf(schema *jsonschema.Schema) map[string]*jsonschema.Schema {
	switch {
	case schema == nil:
		return nil
	case schema.Then != nil:
		return schema.Then.Properties
	default:
		return schema.Properties
	}
}

// otherCase returns the field that encoding/json would take name for.
func otherCase(fields map[string]*jsonschema.Schema, name string) string {
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

// step is the path's step to a member, quoted where it would be ambiguous.
func step(name string) string {
	if ValidID(name) {
		return "." + name
	}
	return "[" + quote(name) + "]"
}

// quote shows a text that an agent chose: in one line, cut short.
func quote(s string) string { return strconv.Quote(short(s, 64)) }

func short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
