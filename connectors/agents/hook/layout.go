package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// The functions below insert and remove entries of a settings file, and keep the layout of the file.

// siblingExtra returns the white space before the name of obj's last member, and after the colon of
// that member.
func siblingExtra(obj *hujson.Object) (before, colon hujson.Extra) {
	last := obj.Members[len(obj.Members)-1] // the caller guarantees that obj has members
	return slices.Clone(last.Name.BeforeExtra), slices.Clone(last.Value.BeforeExtra)
}

func (d *document) addMember(obj *hujson.Object, depth int, name string, value any) error {
	before, inline := d.space(len(obj.Members), depth, func(i int) hujson.Extra { return obj.Members[i].Name.BeforeExtra })
	v, err := d.render(value, before, inline)
	if err != nil {
		return err
	}
	v.BeforeExtra = hujson.Extra(" ")
	if inline {
		_, v.BeforeExtra = siblingExtra(obj)
	}
	if len(obj.Members) == 0 {
		obj.AfterExtra = d.line(depth - 1)
	}
	obj.Members = append(obj.Members, hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: before, Value: hujson.String(name)},
		Value: v,
	})
	return nil
}

func (d *document) addElement(arr *hujson.Array, depth int, value any) error {
	before, inline := d.space(len(arr.Elements), depth, func(i int) hujson.Extra { return arr.Elements[i].BeforeExtra })
	v, err := d.render(value, before, inline)
	if err != nil {
		return err
	}
	v.BeforeExtra = before
	if len(arr.Elements) == 0 {
		arr.AfterExtra = d.line(depth - 1)
	}
	arr.Elements = append(arr.Elements, v)
	return nil
}

// space returns the white space for a new last entry of a container with n entries. If n is 0, it is a
// new line. Otherwise it is the white space before the present last entry, without comments. inline is
// true if the present last entry does not begin a line.
func (d *document) space(n, depth int, extra func(int) hujson.Extra) (before hujson.Extra, inline bool) {
	if n == 0 {
		return d.line(depth), false
	}
	before = d.withoutComments(extra(n - 1))
	_, multi := lastLine(before)
	return before, !multi
}

// withoutComments returns the white space of extra. If extra has comments and line breaks, the
// result is one line break and the indentation that follows the last line break of extra.
func (d *document) withoutComments(extra hujson.Extra) hujson.Extra {
	plain := hujson.Extra(blankComments(extra))
	if indent, multi := lastLine(plain); multi && !bytes.Equal(plain, extra) {
		return hujson.Extra(d.newline + indent)
	}
	return plain
}

func (d *document) line(depth int) hujson.Extra {
	return hujson.Extra(d.newline + strings.Repeat(d.indent, depth))
}

// render formats value in the style of the file. If inline is true, the result is one line. Otherwise
// it has several lines, with the indentation at the end of the white space before.
func (d *document) render(value any, before hujson.Extra, inline bool) (hujson.Value, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if !inline {
		prefix, _ := lastLine(before)
		enc.SetIndent(prefix, d.indent)
	}
	if err := enc.Encode(value); err != nil {
		return hujson.Value{}, fmt.Errorf("write nod's hook: %w", err)
	}
	text := bytes.ReplaceAll(bytes.TrimSpace(buf.Bytes()), []byte("\n"), []byte(d.newline))
	return hujson.Parse(text)
}

// lastLine returns the text after the last line break of extra. multi is false if there is no line
// break.
func lastLine(extra hujson.Extra) (indent string, multi bool) {
	i := bytes.LastIndexByte(extra, '\n')
	return string(extra[i+1:]), i >= 0
}

func removeElement(arr *hujson.Array, i int) {
	first := arr.Elements[i].BeforeExtra
	arr.Elements = slices.Delete(arr.Elements, i, i+1)
	switch {
	case len(arr.Elements) == 0:
		arr.AfterExtra = nil
	case i == 0:
		arr.Elements[0].BeforeExtra = first
	}
}

func removeMember(obj *hujson.Object, i int) {
	first := obj.Members[i].Name.BeforeExtra
	obj.Members = slices.Delete(obj.Members, i, i+1)
	switch {
	case len(obj.Members) == 0:
		obj.AfterExtra = nil
	case i == 0:
		obj.Members[0].Name.BeforeExtra = first
	}
}
