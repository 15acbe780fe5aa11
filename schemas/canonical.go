package schemas

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// canon is the canonical form of RFC 8785 of data, compact JSON of valid syntax. The
// library that makes it is what costs, five times as much as all else about a
// digest.
func canon(data []byte) ([]byte, error) {
	if canonical(data) {
		return data, nil
	}
	return jcs.Transform(data)
}

// inOrder is data in canonical form, where it lacks no more than the order of its
// members, as what agents send mostly does; else as it is.
func inOrder(data json.RawMessage) json.RawMessage {
	if canonical(data) {
		return data
	}
	var compact bytes.Buffer
	if json.Compact(&compact, data) != nil {
		return data
	}
	// As long as before: nothing was given twice, or spelled otherwise.
	if form, ok := ordered(compact.Bytes()); ok && len(form) == compact.Len() && canonical(form) {
		return form
	}
	return data
}

// ordered is data with the members of its objects in ascending order.
func ordered(data []byte) ([]byte, bool) {
	if !utf8.Valid(data) { // the decoder would mend it
		return nil, false
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&tree) != nil {
		return nil, false
	}
	form, err := Encode(tree)
	return form, err == nil
}

// canonical reports whether data, JSON of valid syntax, certainly is in the
// canonical form of RFC 8785 already. Of some that is it says no.
func canonical(data []byte) bool {
	s := scan{data: data}
	return s.value() && s.at == len(data) && utf8.Valid(data)
}

// scan reads JSON for as long as it is canonical.
type scan struct {
	data []byte
	at   int
}

func (s *scan) next(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scan) value() bool {
	if s.at >= len(s.data) {
		return false
	}
	switch s.data[s.at] {
	case '{':
		return s.object()
	case '[':
		return s.array()
	case '"':
		_, ok := s.text()
		return ok
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.data[s.at:], []byte(word)) {
			s.at += len(word)
			return true
		}
	}
	return s.integer()
}

// object has its names in ascending order, each once. Names with escapes or
// beyond ASCII are ordered by what they stand for, which this does not tell.
func (s *scan) object() bool {
	s.at++
	if s.next('}') {
		return true
	}
	for last := (json.RawMessage)(nil); ; {
		name, ok := s.text()
		plain := ok && bytes.IndexByte(name, '\\') < 0 && bytes.IndexFunc(name, func(r rune) bool { return r >= 0x80 }) < 0
		if !plain || last != nil && bytes.Compare(last, name) >= 0 || !s.next(':') || !s.value() {
			return false
		}
		if s.next('}') {
			return true
		}
		if last = name; !s.next(',') {
			return false
		}
	}
}

func (s *scan) array() bool {
	s.at++
	if s.next(']') {
		return true
	}
	for s.value() {
		if s.next(']') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
	return false
}

// text is a string with the escapes that RFC 8785 writes and no others.
func (s *scan) text() (inside []byte, ok bool) {
	if !s.next('"') {
		return nil, false
	}
	for from := s.at; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; {
		case c == '"':
			s.at++
			return s.data[from : s.at-1 : s.at-1], true
		case c == '\\':
			if s.at++; s.at >= len(s.data) || strings.IndexByte(`"\bfnrt`, s.data[s.at]) < 0 {
				return nil, false
			}
		case c < ' ':
			return nil, false
		}
	}
	return nil, false
}

// integer is a number of at most 15 digits without sign, point or exponent.
func (s *scan) integer() bool {
	from := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	n := s.at - from
	return n == 1 || n > 1 && n <= 15 && s.data[from] != '0'
}
