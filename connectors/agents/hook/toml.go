package hook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// tomlFile is a TOML file: its text, its values and the positions of its keys. The TOML library does not
// tell positions, and would drop comments and layout if it wrote the file.
type tomlFile struct {
	text   []byte
	values map[string]any
	keys   []tomlKey
}

// tomlKey is a key and its value in a file. They are text[start:end], without the white space and the
// comment around them.
type tomlKey struct {
	path              []string // the path of the table, followed by that of the key in it
	start, value, end int      // the value is text[value:end]
	line              int      // the position of the first byte of its line
	next              int      // the position after its last line
}

var errTOMLShape = errors.New("it has a form that nod cannot read")

// parseTOML parses a TOML file. It refuses every file that the TOML library refuses.
func parseTOML(path string, text []byte) (*tomlFile, error) {
	f := &tomlFile{text: text}
	if err := toml.Unmarshal(text, &f.values); err != nil {
		return nil, fmt.Errorf("%s is not valid TOML: %w; correct it first, nothing was changed", path, err)
	}
	if err := f.scan(); err != nil {
		return nil, fmt.Errorf("read %s: %w; nothing was changed", path, err)
	}
	return f, nil
}

func (f *tomlFile) scan() error {
	var table []string
	for at := 0; at < len(f.text); {
		at = f.skip(at)
		if at == len(f.text) {
			return nil
		}
		start := at
		if f.text[at] == '[' {
			path, after, err := f.header(at)
			if err != nil {
				return err
			}
			table, at = path, after
		} else {
			key, err := f.key(table, at)
			if err != nil {
				return err
			}
			f.keys, at = append(f.keys, key), key.end
		}
		at = f.lineEnd(at)
		if n := len(f.keys); n > 0 && f.keys[n-1].start == start {
			f.keys[n-1].next = at
		}
	}
	return nil
}

// skip returns the position of the next text after white space and comments. The search begins at the
// position at.
func (f *tomlFile) skip(at int) int {
	for at < len(f.text) {
		switch c := f.text[at]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			at++
		case c == '#':
			at = f.lineEnd(at)
		case at == 0 && bytes.HasPrefix(f.text, []byte("\ufeff")):
			at = len("\ufeff")
		default:
			return at
		}
	}
	return at
}

func (f *tomlFile) lineEnd(at int) int {
	if i := bytes.IndexByte(f.text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(f.text)
}

// header reads the header of a table and returns the table's path. If the header begins an element of a
// list of tables, the path ends with [], so that it differs from the path of a table with the same name.
func (f *tomlFile) header(at int) (path []string, after int, err error) {
	list := bytes.HasPrefix(f.text[at:], []byte("[["))
	if at++; list {
		at++
	}
	path, at, err = f.words(at)
	if err == nil && (at >= len(f.text) || f.text[at] != ']') {
		err = errTOMLShape
	}
	if list {
		path = append(path, "[]")
	}
	return path, at, err
}

// key reads a key of a table, and finds the end of the key's value.
func (f *tomlFile) key(table []string, at int) (k tomlKey, err error) {
	k.start, k.line = at, bytes.LastIndexByte(f.text[:at], '\n')+1
	words, at, err := f.words(at)
	if err != nil {
		return k, err
	}
	if at >= len(f.text) || f.text[at] != '=' {
		return k, errTOMLShape
	}
	k.path = slices.Concat(table, words)
	for at++; at < len(f.text) && (f.text[at] == ' ' || f.text[at] == '\t'); at++ {
	}
	k.value = at
	k.end, err = f.valueEnd(at)
	return k, err
}

// words reads the parts of a key, which may have dots and quotation marks, and skips the white space
// after the key.
func (f *tomlFile) words(at int) (words []string, after int, err error) {
	start := at
	for at < len(f.text) && f.text[at] != '=' && f.text[at] != ']' && f.text[at] != '\n' {
		if c := f.text[at]; c == '"' || c == '\'' {
			if at, err = f.stringEnd(at); err != nil {
				return nil, at, err
			}
			continue
		}
		at++
	}
	meta, err := toml.Decode(string(f.text[start:at])+" = 0", new(map[string]any))
	if err != nil || len(meta.Keys()) == 0 {
		return nil, at, errTOMLShape
	}
	all := meta.Keys()
	return all[len(all)-1], at, nil
}

// valueEnd returns the position after the value that begins at at.
func (f *tomlFile) valueEnd(at int) (int, error) {
	depth := 0
	for at < len(f.text) {
		switch c := f.text[at]; {
		case c == '"' || c == '\'':
			after, err := f.stringEnd(at)
			if err != nil || depth == 0 {
				return after, err
			}
			at = after
		case c == '[' || c == '{':
			depth++
			at++
		case c == ']' || c == '}':
			depth--
			if at++; depth <= 0 {
				return at, nil
			}
		case depth > 0 && c == '#':
			at = f.lineEnd(at)
		case depth == 0 && (c == '\n' || c == '\r' || c == '#'):
			return len(bytes.TrimRight(f.text[:at], " \t")), nil
		default:
			at++
		}
	}
	if depth > 0 {
		return at, errTOMLShape
	}
	return len(bytes.TrimRight(f.text[:at], " \t")), nil
}

// stringEnd returns the position after the quoted text that begins at at.
func (f *tomlFile) stringEnd(at int) (int, error) {
	mark := f.text[at : at+1]
	if triple := bytes.Repeat(mark, 3); bytes.HasPrefix(f.text[at:], triple) {
		mark = triple
	}
	for i := at + len(mark); i < len(f.text); i++ {
		switch {
		case mark[0] == '"' && f.text[i] == '\\':
			i++
		case bytes.HasPrefix(f.text[i:], mark):
			i += len(mark)
			for len(mark) == 3 && i < len(f.text) && f.text[i] == mark[0] { // up to two quotation marks may belong to the text
				i++
			}
			return i, nil
		}
	}
	return at, errTOMLShape
}

// elements returns the positions of the texts in the list that is the value of k. If the list contains
// anything else, elements returns an error.
func (f *tomlFile) elements(k tomlKey) (all [][2]int, err error) {
	for at := k.value + 1; ; {
		at = f.skip(at)
		if at >= k.end-1 {
			return all, nil
		}
		if f.text[at] == ',' {
			at++
			continue
		}
		if c := f.text[at]; c != '"' && c != '\'' {
			return nil, errTOMLShape
		}
		end, err := f.stringEnd(at)
		if err != nil {
			return nil, err
		}
		all, at = append(all, [2]int{at, end}), end
	}
}

// find returns the key with this path.
func (f *tomlFile) find(path ...string) (tomlKey, bool) {
	i := slices.IndexFunc(f.keys, func(k tomlKey) bool { return slices.Equal(k.path, path) })
	if i < 0 {
		return tomlKey{}, false
	}
	return f.keys[i], true
}

func (f *tomlFile) of(k tomlKey) string { return string(f.text[k.start:k.end]) }

// tomlEdit replaces a part of the file's text.
type tomlEdit struct {
	start, end int
	text       string
}

// edited returns the file's text after all the edits.
func (f *tomlFile) edited(edits []tomlEdit) []byte {
	slices.SortFunc(edits, func(a, b tomlEdit) int { return cmp.Or(a.start-b.start, a.end-b.end) })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, f.text[at:e.start]...), e.text...)
		at = e.end
	}
	return append(out, f.text[at:]...)
}

// removal returns the edit that removes a key together with its line.
func (f *tomlFile) removal(k tomlKey) tomlEdit {
	if bytes.HasSuffix(f.text[:k.next], []byte("\n")) || k.line == 0 {
		return tomlEdit{k.line, k.next, ""}
	}
	start := k.line - 1
	if start > 0 && f.text[start-1] == '\r' {
		start--
	}
	return tomlEdit{start, k.next, ""}
}

// prepended returns the key k and its list, with words added before the list's elements. The new
// elements have the layout of the first element.
func (f *tomlFile) prepended(k tomlKey, words []string) (string, error) {
	places, err := f.elements(k)
	if err != nil {
		return "", err
	}
	list := strings.Trim(tomlList(words), "[]")
	if len(places) == 0 {
		return string(f.text[k.start:k.value+1]) + list + string(f.text[k.value+1:k.end]), nil
	}
	first, between := places[0][0], ", "
	if line := bytes.LastIndexByte(f.text[k.value:first], '\n'); line >= 0 {
		indent := f.text[k.value+line+1 : first]
		if len(bytes.TrimSpace(indent)) == 0 {
			between = "," + f.newline() + string(indent)
		}
	}
	var added strings.Builder
	for _, word := range words {
		added.WriteString(tomlText(word) + between)
	}
	return string(f.text[k.start:first]) + added.String() + string(f.text[first:k.end]), nil
}

// keyText returns the text of a key and of the sign = after it.
func (f *tomlFile) keyText(k tomlKey) string { return string(f.text[k.start:k.value]) }

// renamed returns the text of another key of k's table and of the sign = after it, in the layout of k.
func (f *tomlFile) renamed(k tomlKey, name string) string {
	text := f.keyText(k)
	last := k.path[len(k.path)-1]
	if i := strings.LastIndex(text, last); i >= 0 {
		before, after := text[:i], text[i+len(last):]
		if n := len(before); n > 0 && (before[n-1] == '"' || before[n-1] == '\'') {
			before, after = before[:n-1], after[1:]
		}
		return before + name + after
	}
	return name + " = "
}

func (f *tomlFile) newline() string {
	if bytes.Contains(f.text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

func tomlText(s string) string {
	out, _ := json.Marshal(s) // a text can always be encoded
	return strings.ReplaceAll(string(out), "\x7f", `\u007f`)
}

func tomlList(words []string) string {
	var all []string
	for _, word := range words {
		all = append(all, tomlText(word))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// texts returns the elements of v, which must be a list of texts. A missing list is empty. ok is false
// if v is anything else.
func texts(v any) (all []string, ok bool) {
	if v == nil {
		return nil, true
	}
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	for _, e := range list {
		s, isText := e.(string)
		if !isText {
			return nil, false
		}
		all = append(all, s)
	}
	return all, true
}

func anys(words []string) []any {
	all := make([]any, 0, len(words))
	for _, word := range words {
		all = append(all, word)
	}
	return all
}
