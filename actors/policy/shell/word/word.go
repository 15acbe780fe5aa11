// Package word decodes words of a shell command that Bash and Zsh read in the same way. It refuses
// a word whose value depends on the shell, on a variable or on another command.
package word

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Word is a shell word without its quotes. Bash and Zsh read the word in the same way. The shell
// still expands a leading ~ and file name patterns in the word.
type Word struct {
	Text  string
	Glob  bool // contains an unquoted *, ? or [
	Lead  bool // starts with a wildcard, so the shell may expand the word to a flag
	Bare  bool // written without quotes, backslashes or expansions
	Tilde bool // starts with ~, the home directory
	// Expands means that the shell replaces a part of the word by an unknown number. Text has 0 in
	// place of this number.
	Expands bool
}

// Read decodes w, a word of the line src, or returns the reason why its value is unknown.
func Read(w *syntax.Word, src string) (Word, string) {
	if lit := w.Parts[0]; len(w.Parts) == 1 {
		if l, ok := lit.(*syntax.Lit); ok && Plain(l.Value) {
			return Word{Text: l.Value, Bare: true}, ""
		}
	}
	dec := decoder{src: src}
	for i, part := range w.Parts {
		if why := dec.part(part, i == 0, i == len(w.Parts)-1); why != "" {
			return Word{}, why
		}
	}
	dec.out.Text = dec.text.String()
	return dec.out, ""
}

// Known decodes as much as possible of w, a word of the line src. The second result reports whether
// this is the whole word.
func Known(w *syntax.Word, src string) (string, bool) {
	if w == nil || len(w.Parts) == 0 {
		return "", false
	}
	if d, why := Read(w, src); why == "" {
		return d.Text, true
	}
	dec := decoder{src: src}
	all := true
	for i, part := range w.Parts {
		if dec.part(part, i == 0, i == len(w.Parts)-1) != "" {
			all = false
			if s, ok := part.(*syntax.SglQuoted); ok {
				dec.text.WriteString(s.Value)
			}
			if d, ok := part.(*syntax.DblQuoted); ok {
				for _, in := range d.Parts {
					if l, ok := in.(*syntax.Lit); ok {
						dec.text.WriteString(l.Value)
					}
				}
			}
		}
	}
	return dec.text.String(), all
}

// Literals returns words, without patterns, with these texts.
func Literals(texts []string) []Word {
	words := make([]Word, len(texts))
	for i, t := range texts {
		words[i] = Word{Text: t}
	}
	return words
}

// Plain reports whether every shell takes an unquoted s literally.
func Plain(s string) bool {
	if s == "" || s[0] == '~' || s[0] == '=' {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("-_./,:=+@%", c) >= 0:
		default:
			return false
		}
	}
	return true
}

type decoder struct {
	src  string
	text strings.Builder
	out  Word
}

func (dec *decoder) part(part syntax.WordPart, first, last bool) string {
	switch p := part.(type) {
	case *syntax.Lit:
		return dec.unquoted(p.Value, first, last)
	case *syntax.SglQuoted:
		if p.Dollar {
			return "$'…' hides its value"
		}
		if strings.HasSuffix(p.Value, `\`) || strings.Contains(p.Value, `\\`) {
			return "fish reads a backslash before a quote or a backslash differently"
		}
		dec.text.WriteString(p.Value)
		return ""
	case *syntax.DblQuoted:
		if p.Dollar {
			return `$"…" is translated before it is used`
		}
		return dec.quoted(p)
	case *syntax.ParamExp:
		return dec.param(p)
	case *syntax.CmdSubst:
		return "runs a command inside another"
	case *syntax.ProcSubst:
		return "runs a command as a file"
	case *syntax.ArithmExp:
		return "arithmetic can run commands"
	case *syntax.ExtGlob:
		return "Bash and Zsh read this pattern differently"
	}
	return "a form that nod does not know"
}

// param decodes $?, which is a number, as 0. It refuses every other variable, because its value may
// be any text. It refuses $? before [ or :, because Zsh reads these as a subscript or a modifier.
func (dec *decoder) param(p *syntax.ParamExp) string {
	end := int(p.End().Offset())
	next := byte(0)
	if end < len(dec.src) {
		next = dec.src[end]
	}
	if !p.Short || p.Param == nil || p.Param.Value != "?" || end != int(p.Pos().Offset())+2 || next == '[' || next == ':' {
		return "a variable may hold anything"
	}
	dec.text.WriteByte('0')
	dec.out.Expands = true
	return ""
}

// fishEscapes are letters and digits that, in fish, stand for another character after a backslash,
// as in \x2e. Bash and Zsh only remove the backslash.
const fishEscapes = "abcefnrtuvxUX01234567"

// unquoted decodes text outside quotes, in which a backslash makes the next character literal.
func (dec *decoder) unquoted(s string, first, last bool) string {
	for i := 0; i < len(s); i++ {
		c := s[i]
		atStart := first && i == 0
		switch c {
		case '\\':
			i++
			if i == len(s) {
				return "ends in a backslash"
			}
			if strings.IndexByte(fishEscapes, s[i]) >= 0 {
				return "fish takes a backslash and a letter for another character"
			}
			if s[i] != '\n' {
				dec.text.WriteByte(s[i])
			}
			continue
		case '*', '?', '[':
			dec.out.Glob = true
			if dec.text.Len() == 0 {
				dec.out.Lead = true
			}
		case '~':
			if why := dec.tilde(s, i, atStart, last); why != "" {
				return why
			}
		case '^':
			if atStart {
				return "Zsh may read a leading ^ as all files except these"
			}
		case '=':
			if atStart {
				return "Zsh replaces a leading = by a program's path"
			}
		case '{', '}':
			n := upstream(s[i:], dec.text.String())
			if n == 0 {
				return "braces expand to several words"
			}
			dec.text.WriteString(s[i : i+n])
			i += n - 1
			continue
		case '!':
			// An interactive shell replaces !x by an earlier command that begins with x.
			if i+1 < len(s) && s[i+1] != '=' || i+1 == len(s) && !last {
				return "! may recall an earlier command"
			}
		case '$', '`', '(', ')', '<', '>', '|', '&', ';', '\n':
			return "an expansion that nod does not know"
		}
		dec.text.WriteByte(c)
	}
	return ""
}

// upstream returns the length of {word} at the start of s, if the text before ends in @, as in HEAD@{1}.
// Otherwise it returns 0. The shell does not expand these braces, because they contain no list.
func upstream(s, before string) int {
	end := strings.IndexByte(s, '}')
	if !strings.HasSuffix(before, "@") || s[0] != '{' || end < 2 {
		return 0
	}
	for _, c := range []byte(s[1:end]) {
		if !isAlnum(c) && c != '-' {
			return 0
		}
	}
	return end + 1
}

func (dec *decoder) tilde(s string, i int, atStart, last bool) string {
	if !atStart {
		if i == 0 || s[i-1] == '=' || s[i-1] == ':' {
			return "Bash and Zsh read this ~ differently"
		}
		return ""
	}
	if len(s) > 1 && s[1] != '/' || len(s) == 1 && !last {
		return "~ with a name stands for a directory that nod does not know"
	}
	dec.out.Tilde = true
	return ""
}

// quoted decodes a string in double quotes. Before most characters in such a string, a backslash is
// literal.
func (dec *decoder) quoted(d *syntax.DblQuoted) string {
	for i, part := range d.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			if why := dec.part(part, false, false); why != "" {
				return why
			}
			continue
		}
		s := lit.Value
		for j := 0; j < len(s); j++ {
			next := byte(0)
			if j+1 < len(s) {
				next = s[j+1]
			}
			if next == 0 && i+1 < len(d.Parts) {
				if l, ok := d.Parts[i+1].(*syntax.Lit); ok && l.Value != "" {
					next = l.Value[0]
				}
			}
			end := next == 0 && i == len(d.Parts)-1
			switch s[j] {
			case '\\':
				switch {
				case j+1 == len(s):
				case next == '$' || next == '`' || next == '"' || next == '\\':
					j++
				case next == '\n':
					j++
					continue
				}
			case '$':
				// Zsh also expands $+name, $^name, $=name and $~name.
				if !end && next != ' ' && next != '\\' && next != '|' && next != ')' {
					return "a variable may hold anything"
				}
			case '!':
				if !dec.harmlessBang(next, end, int(d.End().Offset())) {
					return "! may recall an earlier command"
				}
			case '`':
				return "runs a command inside another"
			}
			dec.text.WriteByte(s[j])
		}
	}
	return ""
}

// harmlessBang reports whether a ! in double quotes is literal, even in an interactive shell. Zsh removes a
// quote that follows the !. This does no harm if the line has no later quote, because the line is then
// incomplete and does not run.
func (dec *decoder) harmlessBang(next byte, end bool, quoteEnd int) bool {
	if end {
		return quoteEnd <= len(dec.src) && !strings.ContainsAny(dec.src[quoteEnd:], `"'`+"`")
	}
	return next == ' ' || next == '\t' || next == '\n' || next == '='
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// Hidden returns the reason why a person may not see all of s, or "". The reason is a control
// character or an invisible character in s.
func Hidden(s string) string {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
				return "holds a control character"
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isIcon(r) && (r == utf8.RuneError || unicode.In(r, unicode.C, unicode.Z) || !unicode.IsGraphic(r)) {
			return "holds an invisible character"
		}
		i += n
	}
	return ""
}

// isIcon reports whether r is a character for private use that fonts of terminals show as an icon, and that nod's
// channels show by its number. fish uses the characters from U+F600 on for itself.
func isIcon(r rune) bool {
	return r >= 0xe000 && r < 0xf600 || r >= 0xf0000 && r <= 0xffffd
}
