package people

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"

	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

// The longest runs that are shown unchanged. A mark with the run's length replaces a longer run, so that
// the run cannot push text out of view.
const (
	maxGap    = 24 // the largest number of spaces and tabs in a row
	maxBreaks = 4  // the largest number of line breaks in a row
	maxAccent = 3  // the largest number of combining marks on a letter
	maxRTL    = 18 // the largest number of characters in a ⟦rtl … ltr⟧ mark, which is always on a single row
)

const (
	lineBreak = "⏎"    // the mark for a line break; nod shows a ⏎ in the text as ⟦U+23CE⟧
	tab       = "⇥   " // the mark for a tab
)

// Line converts a text from an agent to one line that is safe to show. The result contains only
// printable characters and shows every character of s. Different texts have different results. The
// rules are:
//
//   - an invisible character, or one that merges with its neighbours, is shown as its
//     number, ⟦U+202E⟧, with a count if it repeats, ⟦U+200B ×180⟧; a byte that is not
//     UTF-8 is shown as ⟦0xFF⟧;
//   - a line break is shown as ⏎, a tab as ⇥;
//   - long runs of blanks, and spaces and tabs at the end of s, are shown as their number:
//     ⟦180 spaces⟧, ⟦12 line breaks⟧;
//   - right-to-left text is enclosed in ⟦rtl … ltr⟧, so that it cannot reorder the
//     text around it;
//   - ⟦, ⟧, ⏎ and ⇥ in s are shown as their numbers, so that s can forge no mark;
//   - a Cyrillic, Greek or similar letter in a word with Latin letters is shown as its number,
//     because it may look like a Latin one.
//
// Words of a single script are shown as they are.
func Line(s string) string { return strings.Join(Lines(s), "") }

// Lines sanitises a text as Line does, and splits it after its line breaks. Every line except the last
// ends with ⏎ or with a mark that counts line breaks. The caller must start each line with a prefix,
// so that people cannot mistake a line for a text of nod. An empty text has no lines.
func Lines(s string) []string {
	lines, _ := styledLines(s, nil)
	return lines
}

// styledLines returns the sanitised lines of s, and the spans of each line. The spans have the styles
// that the parameter styles gives to the pieces of s. The marks that nod adds have the style
// payload.Mark.
func styledLines(s string, styles []payload.Span) ([]string, [][]payload.Span) {
	m := marker{text: s}
	for at := 0; at < len(s); {
		m.style = payload.StyleAt(styles, at)
		if n := visibleASCII(s[at:styleEnd(styles, at, len(s))]); n > 0 {
			m.line.WriteString(s[at : at+n])
			m.cluster = s[at+n-1 : at+n]
			at += n
		} else {
			at += m.next(at)
		}
		m.paint(m.style)
	}
	m.end()
	return m.lines, m.spans
}

// visibleASCII returns the length of the run at the start of s of ASCII characters that are not blank.
// nod shows these characters unchanged.
func visibleASCII(s string) int {
	n := 0
	for n < len(s) && ' ' < s[n] && s[n] <= '~' {
		n++
	}
	return n
}

// styleEnd returns the offset up to which all bytes have the style of the byte at the offset at. The
// parameter end is the length of the text.
func styleEnd(styles []payload.Span, at, end int) int {
	i, _ := slices.BinarySearchFunc(styles, at, func(s payload.Span, at int) int { return cmp.Compare(s.To, at+1) })
	switch {
	case i == len(styles):
		return end
	case styles[i].From > at:
		return min(styles[i].From, end)
	}
	return min(styles[i].To, end)
}

// quotation returns the sanitised lines of a text, for a Part whose field Quote is set. Only the last
// line keeps its ⏎, because each line is a row of its own.
func quotation(s string, styles []payload.Span) ([]string, [][]payload.Span) {
	all, spans := styledLines(s, styles)
	for i := range all[:max(0, len(all)-1)] {
		all[i] = strings.TrimSuffix(all[i], lineBreak)
		for n := len(spans[i]); n > 0 && spans[i][n-1].To > len(all[i]); n = len(spans[i]) {
			spans[i][n-1].To = len(all[i])
			if spans[i][n-1].From >= len(all[i]) {
				spans[i] = spans[i][:n-1]
			}
		}
	}
	return all, spans
}

// marker computes the sanitised form of a text; see Line.
type marker struct {
	text  string
	word  wordSpan
	lines []string
	spans [][]payload.Span
	line  strings.Builder
	style payload.Style  // the style of the next character that marker writes
	open  []payload.Span // the styles of the unfinished line so far
	// cluster contains the last letter of the line with its combining marks. Another combining mark
	// would attach to that letter. After a ⟦…⟧ mark or a blank, cluster is empty.
	cluster string
}

// paint gives a style to the bytes at the end of the line that have no style yet.
func (m *marker) paint(style payload.Style) {
	from, to := 0, m.line.Len()
	last := len(m.open) - 1
	if last >= 0 {
		from = m.open[last].To
	}
	switch {
	case from >= to:
	case last >= 0 && m.open[last].Style == style:
		m.open[last].To = to
	default:
		m.open = append(m.open, payload.Span{From: from, To: to, Style: style})
	}
}

// next writes the sanitised form of the character at an offset of the text, or of a run of characters
// that starts there. It returns the number of bytes of text that it has handled.
func (m *marker) next(at int) int {
	s := m.text[at:]
	if n := len(s) - len(strings.TrimLeft(s, " \t\n")); n > 0 {
		m.blanks(s[:n], n == len(s))
		return n
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case m.mustMark(r, size), looksLatin(r) && m.inLatinWord(at):
		return m.hidden(s[:size], s)
	case rightToLeft(r):
		return m.rightToLeft(s)
	}
	m.show(r)
	return size
}

func (m *marker) show(r rune) {
	m.line.WriteRune(r)
	if startsCluster(r) {
		m.cluster = ""
	}
	m.cluster += string(r)
}

func (m *marker) mark(format string, args ...any) {
	m.paint(m.style)
	fmt.Fprintf(&m.line, "⟦"+format+"⟧", args...)
	m.paint(payload.Mark)
	m.cluster = ""
}

func (m *marker) end() {
	m.paint(m.style)
	if m.line.Len() > 0 {
		m.lines = append(m.lines, m.line.String())
		m.spans = append(m.spans, slices.DeleteFunc(m.open, func(s payload.Span) bool { return s.Style == payload.Plain }))
	}
	m.open = nil
	m.line.Reset()
	m.cluster = ""
}

// hidden writes a ⟦…⟧ mark for char and its repetitions at the start of s. It returns the length of
// the repetitions in bytes.
func (m *marker) hidden(char, s string) int {
	n := 1
	for strings.HasPrefix(s[n*len(char):], char) {
		n++
	}
	name := fmt.Sprintf("0x%02X", char[0])
	if r, size := utf8.DecodeRuneInString(char); r != utf8.RuneError || size > 1 {
		name = fmt.Sprintf("U+%04X", r)
	}
	if n > 1 {
		name = fmt.Sprintf("%s ×%d", name, n)
	}
	m.mark("%s", name)
	return n * len(char)
}

// blanks writes a run of spaces, tabs and line breaks. The parameter last is true if the text ends with
// this run.
func (m *marker) blanks(s string, last bool) {
	m.cluster = ""
	if strings.Count(s, "\n") > maxBreaks {
		first, end := strings.IndexByte(s, '\n'), strings.LastIndexByte(s, '\n')+1
		m.gap(s[:first], false)
		m.counted(s[first:end])
		m.end()
		m.gap(s[end:], last)
		return
	}
	for {
		before, rest, found := strings.Cut(s, "\n")
		m.gap(before, last && !found)
		if !found {
			return
		}
		m.line.WriteString(lineBreak)
		m.end()
		s = rest
	}
}

func (m *marker) gap(s string, last bool) {
	if last || len(s) > maxGap {
		m.counted(s)
		return
	}
	m.line.WriteString(strings.ReplaceAll(s, "\t", tab))
}

var blankNames = map[byte]string{' ': "space", '\t': "tab", '\n': "line break"}

func (m *marker) counted(s string) {
	for s != "" {
		rest := strings.TrimLeft(s, s[:1])
		m.mark("%s", schemas.Count(len(s)-len(rest), blankNames[s[0]]))
		s = rest
	}
}

// rightToLeft writes the right-to-left text at the start of s as a ⟦rtl … ltr⟧ mark. The Latin letters at
// both ends of the mark keep the surrounding text in its order on the screen.
func (m *marker) rightToLeft(s string) int {
	m.line.WriteString("⟦rtl ")
	m.cluster = ""
	n := 0
	for chars := 0; chars < maxRTL && n < len(s); chars++ {
		r, size := utf8.DecodeRuneInString(s[n:])
		if r == ' ' {
			after, afterSize := utf8.DecodeRuneInString(s[n+1:])
			if chars > maxRTL/2 || !rightToLeft(after) || m.mustMark(after, afterSize) {
				break
			}
		} else if m.mustMark(r, size) || !rightToLeft(r) && !unicode.IsMark(r) {
			break
		}
		m.show(r)
		n += size
	}
	m.line.WriteString(" ltr⟧")
	m.cluster = ""
	return n
}

func rightToLeft(r rune) bool {
	p, _ := bidi.LookupRune(r)
	return p.Class() == bidi.R || p.Class() == bidi.AL
}

// looksBlank contains characters that are invisible although unicode.IsPrint accepts them: the Braille
// blank, a musical null note, the placeholder of an embedded object.
var looksBlank = map[rune]bool{0x2800: true, 0x1D159: true, 0xFFFC: true}

// mustMark reports whether a ⟦…⟧ mark must replace r if r follows the current cluster. size is the length
// of r in bytes.
func (m *marker) mustMark(r rune, size int) bool {
	if r < utf8.RuneSelf {
		return !unicode.IsPrint(r)
	}
	if r == utf8.RuneError && size <= 1 {
		return true
	}
	switch r {
	case '⟦', '⟧', '⏎', '⇥':
		return true
	}
	// IsPrint is false for control, format, private-use and unassigned characters, and for all spaces
	// except the ASCII space.
	if !unicode.IsPrint(r) || looksBlank[r] ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
		return true
	}
	if p, _ := bidi.LookupRune(r); p.Class() == bidi.AN {
		return true // Arabic digits may change places with their neighbours on a screen
	}
	return m.looksDifferent(r)
}

// looksDifferent reports whether r could mislead if nod showed it unchanged. It is true if r looks like
// another character (U+212A looks like K), changes the character before it (e and U+0301 become é), or is
// a combining mark without a character before it. It is true for every combining mark that belongs to no
// particular script, because such marks can be stacked to cover other text.
func (m *marker) looksDifferent(r rune) bool {
	char := string(r)
	if !norm.NFC.IsNormalString(char) {
		return true
	}
	if unicode.IsMark(r) {
		if unicode.Is(unicode.Inherited, r) || utf8.RuneCountInString(m.cluster) > maxAccent {
			return true
		}
		if base, _ := utf8.DecodeRuneInString(m.cluster); !unicode.IsLetter(base) {
			return true
		}
	}
	if startsCluster(r) {
		return false
	}
	return m.cluster == "" || !norm.NFC.IsNormalString(m.cluster+char)
}

// startsCluster reports whether r never combines with the character before it.
func startsCluster(r rune) bool {
	return r < utf8.RuneSelf || !unicode.IsMark(r) && norm.NFC.PropertiesString(string(r)).BoundaryBefore()
}

// wordSpan is the end of a word in the text, and tells whether the word contains a Latin letter.
type wordSpan struct {
	end   int
	latin bool
}

// inLatinWord reports whether the word at an offset of the text contains a Latin letter. The offset
// must be that of a letter, and calls must be in the order of the text.
func (m *marker) inLatinWord(at int) bool {
	if at < m.word.end {
		return m.word.latin
	}
	inWord := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	start := len(strings.TrimRightFunc(m.text[:at], inWord))
	m.word.end = len(m.text) - len(strings.TrimLeftFunc(m.text[at:], inWord))
	m.word.latin = strings.ContainsFunc(m.text[start:m.word.end], func(r rune) bool { return unicode.Is(unicode.Latin, r) })
	return m.word.latin
}

// looksLatin reports whether r belongs to a script with letters that look like Latin letters.
func looksLatin(r rune) bool {
	return r >= utf8.RuneSelf && unicode.IsLetter(r) && unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu)
}
