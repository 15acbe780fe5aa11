package schemas

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// canon returns the RFC 8785 form of data, which must be valid compact JSON. It does not use the RFC
// 8785 library for data that is in this form already, because the library takes five times as long as
// the rest of a digest.
func canon(data []byte) ([]byte, error) {
	if canonical(data) {
		return data, nil
	}
	return jcs.Transform(data)
}

// withSortedMembers returns the canonical form of data, if data differs from this form only in white
// space and in the order of members, as most input of agents does. It returns other data unchanged.
func withSortedMembers(data json.RawMessage) json.RawMessage {
	if canonical(data) {
		return data
	}
	var compact bytes.Buffer
	if json.Compact(&compact, data) != nil {
		return data
	}
	// A repeated member or an unusual spelling gives the sorted form a different length than data.
	if form, ok := sortMembers(compact.Bytes()); ok && len(form) == compact.Len() && canonical(form) {
		return form
	}
	return data
}

// sortMembers returns data with the members of its objects in ascending order. It returns false if it
// cannot sort them.
func sortMembers(data []byte) ([]byte, bool) {
	if !utf8.Valid(data) { // the JSON decoder would replace invalid bytes
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

// canonical reports whether data, which must be valid JSON, is certainly in RFC 8785 form. It may
// return false for data in RFC 8785 form, but never returns true for other data.
func canonical(data []byte) bool {
	s := canonicalScanner{data: data}
	return s.value() && s.at == len(data) && utf8.Valid(data)
}

// canonicalScanner reads JSON up to the first byte that may not be canonical.
type canonicalScanner struct {
	data []byte
	at   int
}

func (s *canonicalScanner) next(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *canonicalScanner) value() bool {
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

// object accepts an object whose names are unique and in ascending order. It refuses names with escapes
// or with characters beyond ASCII, because their order depends on the decoded text.
func (s *canonicalScanner) object() bool {
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

func (s *canonicalScanner) array() bool {
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

// text accepts a string without \u escapes, which are rare in RFC 8785 form.
func (s *canonicalScanner) text() (inside []byte, ok bool) {
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

// integer accepts a number of at most 15 digits without a sign, point or exponent.
func (s *canonicalScanner) integer() bool {
	from := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	n := s.at - from
	return n == 1 || n > 1 && n <= 15 && s.data[from] != '0'
}
