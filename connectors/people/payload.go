package people

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

// field is one field of a tool's input, as the agent sent it.
type field struct {
	name string
	raw  json.RawMessage
}

// mainFields lists the fields that contain the action itself. They are shown before other fields,
// which may only explain the action.
var mainFields = []string{"command", "cmd", "file_path", "filePath", "absolute_path", "notebook_path", "path", "url"}

// Exact returns the input of a request exactly as the agent sent it. It shows each field with all bytes
// and with marked line breaks and blanks, and then the JSON text. Exact is for people who doubt the
// output of Parts.
func Exact(p *schemas.Prompt) []Part {
	raw := bytes.TrimSpace(p.Request.ActionDetails)
	var parts []Part
	if fields, err := fieldsOf(raw); err == nil && len(fields) > 0 {
		parts = append(parts, Part{Label: "Input, exactly"})
		for _, f := range fields {
			parts = append(parts, exactField(f))
		}
	}
	return append(parts, Part{Label: "As sent", Quote: true, Lines: Lines(string(p.Request.ActionDetails))})
}

func exactField(f field) Part {
	part := Part{Label: fieldName(f.name), Field: true, Quote: true}
	if text, ok := textOf(f.raw); ok {
		part.Lines = Lines(text)
	} else {
		part.Label += " (JSON)"
		part.Lines = Lines(string(f.raw))
	}
	return part
}

func order(name string) int {
	if i := slices.Index(mainFields, name); i >= 0 {
		return i
	}
	return len(mainFields)
}

func fieldPart(f field) Part {
	part := Part{Label: fieldName(f.name), Field: true}
	text, ok := textOf(f.raw)
	switch {
	case ok && text == "":
		part.Lines = []string{"(empty)"}
	case ok && isShort(text):
		part.Lines = []string{"“" + Line(text) + "”"}
	case ok:
		part.Quote = true
		part.Lines, part.Spans = quotation(text, nil)
	case bytes.IndexByte([]byte(`{["`), f.raw[0]) < 0 && len(f.raw) <= 40:
		part.Lines = []string{Line(string(f.raw))} // the value is a number, true, false or null
	default:
		part.Label += " (JSON)"
		part.Quote = true
		part.Lines, part.Spans = jsonLines(f.raw)
	}
	return part
}

// maxShort is the largest width, in columns, of a text that is shown on the same line as its field's
// name.
const maxShort = 50

func isShort(text string) bool {
	return !strings.ContainsAny(text, "\n“”") && Cells(Line(text)) <= maxShort
}

// fieldsOf splits a JSON object into its fields, in their order. If the fields would not contain
// everything that the agent sent, for example because a name occurs twice, fieldsOf returns an error
// with the reason.
func fieldsOf(raw json.RawMessage) ([]field, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	members, err := schemas.Members(raw)
	if err != nil {
		return nil, err
	}
	var fields []field
	for _, m := range members {
		if strings.ContainsRune(m.Name, utf8.RuneError) {
			return nil, errors.New("a field's name is not valid text")
		}
		fields = append(fields, field{m.Name, m.Value})
	}
	return fields, nil
}

// textOf decodes raw if it is a JSON string. The result is false for any other value, and for a string
// that decoding would change. The caller then shows raw itself.
func textOf(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, !strings.ContainsRune(s, utf8.RuneError) || utf8.Valid(raw) && !hasHalfPair(raw)
}

// escape matches one escape sequence in a JSON string, or two that form a surrogate pair. Its group
// matches an unpaired surrogate, because decoding would turn all unpaired surrogates into the same
// character.
var escape = regexp.MustCompile(`\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)`)

func hasHalfPair(raw []byte) bool {
	for _, m := range escape.FindAllSubmatchIndex(raw, -1) {
		if m[2] >= 0 {
			return true
		}
	}
	return false
}

// maxIndented is the deepest nesting of JSON that jsonLines indents. Deeper JSON would become mostly
// blanks and brackets, in which the content is hard to find.
const maxIndented = 10

// jsonLines formats JSON with one value per line, each exactly as it was sent. It does not format JSON
// that is invalid or nested deeper than maxIndented.
func jsonLines(raw json.RawMessage) (all []string, spans [][]payload.Span) {
	var buf bytes.Buffer
	if depth(raw) > maxIndented || json.Indent(&buf, raw, "", "  ") != nil {
		return quotation(string(raw), nil)
	}
	// json.Indent has added every line break in buf, because JSON strings contain no line breaks.
	for line := range strings.Lines(buf.String()) {
		line = strings.TrimSuffix(line, "\n")
		text, styles := styledLine(line, payload.JSON(line))
		all, spans = append(all, text), append(spans, styles)
	}
	return all, spans
}

// depth returns the nesting depth of raw. Brackets inside strings do not count.
func depth(raw []byte) int {
	deepest, now, inText := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch b := raw[i]; {
		case b == '"':
			inText = !inText
		case inText && b == '\\':
			i++
		case inText:
		case b == '{', b == '[':
			now++
			deepest = max(deepest, now)
		case b == '}', b == ']':
			now--
		}
	}
	return deepest
}
