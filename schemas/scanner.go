package schemas

import "bytes"

// scanner reads JSON in one pass. Its methods return false at a syntax error. They also return false
// at parts that are rare or that JSON readers interpret in different ways. Such input needs the full
// check.
type scanner struct {
	data []byte
	at   int
	// strict makes the scanner refuse the input that parse refuses: repeated names, halves of surrogate
	// pairs, and numbers that RFC 8785 might change.
	strict bool
	// compact makes the scanner refuse white space between the parts of the input.
	compact  bool
	maxDepth int
}

func (s *scanner) space() {
	if s.compact {
		return
	}
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\n', '\r', '\t':
			s.at++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

func (s *scanner) next(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) literal(word string) bool {
	if end := s.at + len(word); end <= len(s.data) && string(s.data[s.at:end]) == word {
		s.at = end
		return true
	}
	return false
}

// plainText returns the content of a string without escapes. It refuses a string with escapes.
func (s *scanner) plainText() ([]byte, bool) {
	inside, plain, ok := s.text()
	return inside, plain && ok
}

// text returns the content of a string, with the escapes as they are written. The result plain is
// false if there are escapes.
func (s *scanner) text() (inside []byte, plain, ok bool) {
	if !s.next('"') {
		return nil, false, false
	}
	from := s.at
	for plain = true; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; {
		case c == '"':
			s.at++
			return s.data[from : s.at-1], plain, true
		case c == '\\':
			plain = false
			if !s.escape() {
				return nil, false, false
			}
		case c < ' ':
			return nil, false, false
		}
	}
	return nil, false, false
}

// escape moves to the last byte of an escape. If strict is set, it refuses \u escapes, because they may
// be halves of surrogate pairs.
func (s *scanner) escape() bool {
	s.at++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		if s.strict || s.at+4 >= len(s.data) {
			return false
		}
		for range 4 {
			s.at++
			if bytes.IndexByte([]byte("0123456789abcdefABCDEF"), s.data[s.at]) < 0 {
				return false
			}
		}
		return true
	}
	return false
}

// integer reads an integer of at most 15 digits.
func (s *scanner) integer() (n int64, ok bool) {
	negative := s.next('-')
	from := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		n = n*10 + int64(s.data[s.at]-'0')
		if s.at++; s.at-from > 15 {
			return 0, false
		}
	}
	digits := s.at - from
	if digits == 0 || digits > 1 && s.data[from] == '0' || negative && n == 0 {
		return 0, false
	}
	switch s.peek() {
	case '.', 'e', 'E':
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

// skip moves past any value. The parameter depth is the number of objects and lists around the value.
func (s *scanner) skip(depth int) bool {
	switch s.peek() {
	case '{':
		return s.skipObject(depth + 1)
	case '[':
		return s.skipList(depth + 1)
	case '"':
		_, _, ok := s.text()
		return ok
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

func (s *scanner) number() bool {
	from := s.at
	if _, ok := s.integer(); ok {
		return true
	}
	s.at = from
	s.next('-')
	zero := s.peek() == '0'
	if n := s.digits(); n == 0 || zero && n > 1 {
		return false
	}
	if s.next('.') && s.digits() == 0 {
		return false
	}
	if s.next('e') || s.next('E') {
		if !s.next('+') {
			s.next('-')
		}
		if s.digits() == 0 {
			return false
		}
	}
	if !s.strict {
		return true
	}
	exact := reader{data: string(s.data[from:s.at])}
	_, fault := exact.number()
	return fault == nil
}

func (s *scanner) digits() int {
	from := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at - from
}

// maxMembers is the greatest number of members of a skipped object. It is small, because skipObject
// compares each name with all others.
const maxMembers = 24

func (s *scanner) skipObject(depth int) bool {
	s.at++
	s.space()
	if depth > s.maxDepth {
		return false
	}
	if s.next('}') {
		return true
	}
	var names [maxMembers][]byte
	for n := 0; ; n++ {
		name, ok := s.plainText()
		if !ok || n == maxMembers {
			return false
		}
		for _, earlier := range names[:n] {
			if s.strict && bytes.Equal(earlier, name) {
				return false
			}
		}
		names[n] = name
		s.space()
		if !s.next(':') {
			return false
		}
		s.space()
		if !s.skip(depth) {
			return false
		}
		s.space()
		if s.next('}') {
			return true
		}
		if !s.next(',') {
			return false
		}
		s.space()
	}
}

func (s *scanner) skipList(depth int) bool {
	s.at++
	s.space()
	if depth > s.maxDepth {
		return false
	}
	if s.next(']') {
		return true
	}
	for {
		if !s.skip(depth) {
			return false
		}
		s.space()
		if s.next(']') {
			return true
		}
		if !s.next(',') {
			return false
		}
		s.space()
	}
}
