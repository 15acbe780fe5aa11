package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nodbus/nod/schemas"
)

// Input maps the exact names of a tool's input fields to their values. Go's struct decoding would
// accept "Command" for "command", and nod might then check a command that does not run.
type Input map[string]json.RawMessage

// ReadInput decodes a tool's input. An empty input has no fields. The error means that raw is not a
// JSON object, or is too long.
func ReadInput(raw json.RawMessage) (Input, error) {
	in := Input{}
	if len(raw) == 0 {
		return in, nil
	}
	if flat := flatInput(raw); flat != nil {
		return flat, nil
	}
	if len(raw) > schemas.MaxRequestBytes {
		return nil, errors.New("its input is too long to check")
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, errors.New("its input is not a JSON object")
	}
	return in, nil
}

// flatInput reads a JSON object with plain keys and only string values, faster than a JSON decoder.
// Most inputs are of this kind. It does not decode the strings. For any other input it returns nil.
func flatInput(raw json.RawMessage) Input {
	if len(raw) < 2 || raw[0] != '{' || raw[len(raw)-1] != '}' || len(raw) > schemas.MaxRequestBytes {
		return nil
	}
	in := make(Input, 2)
	for at := 1; ; {
		key := stringEnd(raw, at)
		if key < 0 || key+1 >= len(raw) || raw[key] != ':' || bytes.IndexFunc(raw[at:key], func(r rune) bool { return r == '\\' || r >= utf8.RuneSelf }) >= 0 {
			return nil
		}
		from := skipSpaces(raw, key+1)
		value := stringEnd(raw, from)
		if value < 0 || bytes.IndexByte(raw[from:value], '\\') >= 0 && !json.Valid(raw[from:value]) {
			return nil
		}
		in[string(raw[at+1:key-1])] = raw[from:value]
		switch {
		case raw[value] == ',':
			at = skipSpaces(raw, value+1)
		case value == len(raw)-1:
			return in
		default:
			return nil
		}
	}
}

// skipSpaces returns the index of the first byte, from a given index on, that is not a space.
func skipSpaces(raw json.RawMessage, at int) int {
	for at < len(raw) && raw[at] == ' ' {
		at++
	}
	return at
}

// stringEnd returns the index after the JSON string that starts at a given index. If no string starts
// there, it returns -1.
func stringEnd(raw json.RawMessage, at int) int {
	if at >= len(raw) || raw[at] != '"' {
		return -1
	}
	for i := at + 1; i < len(raw)-1; i++ {
		switch c := raw[i]; {
		case c == '\\':
			i++
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		}
	}
	return -1
}

// Text returns the string under one of the keys. It returns false if the input has none or several
// of the keys, or if the value is not a string.
func (in Input) Text(keys ...string) (string, bool) {
	out, found := "", false
	for _, k := range keys {
		raw, ok := in[k]
		if !ok {
			continue
		}
		s, isText := unquote(raw)
		if found || !isText {
			return "", false
		}
		out, found = s, true
	}
	return out, found
}

// unquote returns the text of a JSON string, or false if raw is not a JSON string. A string without
// escapes is not decoded.
func unquote(raw json.RawMessage) (string, bool) {
	if n := len(raw); n >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : n-1]), true
	}
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// FilePaths returns the paths in the input of a file tool. If the paths are unknown, it returns false.
func (in Input) FilePaths(t Tool) ([]string, bool) {
	var out []string
	if t.Name == "Edit" && (in["patch"] != nil || in["input"] != nil) {
		patched, ok := in.patchPaths()
		if !ok {
			return nil, false
		}
		out = patched
	}
	for _, k := range []string{"file_path", "filePath", "path", "notebook_path", "absolute_path", "dir_path"} {
		raw, ok := in[k]
		if !ok {
			continue
		}
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return nil, false
		}
		out = append(out, s)
	}
	return out, len(out) > 0
}

// fields lists the text fields that an input may have, for each kind of tool. Any other field may
// contain another path or address.
var fields = map[Kind]map[string]bool{
	File:   set("file_path filePath path notebook_path absolute_path dir_path cwd pages description explanation"),
	Search: set("path filePath dir_path cwd pattern glob include include_pattern includePattern query regex type output_mode ignore exclude exclude_pattern excludePattern description explanation"),
	Web:    set("url prompt query format type description explanation allowed_domains blocked_domains cwd"),
	Edit: set("file_path filePath path notebook_path absolute_path patch input cwd content contents file_text old_string new_string oldString newString old_str new_str " +
		"edits new_source cell_id cell_type edit_mode insert_text instruction description explanation"),
}

func set(names string) map[string]bool {
	out := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		out[n] = true
	}
	return out
}

// UnknownField returns a field that is not known for this kind of tool, or "". If there are several, it
// returns the alphabetically first one. It ignores numbers and booleans, because they cannot be paths.
func (in Input) UnknownField(k Kind) string {
	listed := func(name string) bool {
		raw := string(in[name])
		return fields[k][name] || strings.Trim(raw, "0123456789.,+-eE[] \t\r\n") == "" || raw == "true" || raw == "false" || raw == "null"
	}
	if name := firstUnlisted(in, listed); name != "" {
		return name
	}
	var edits []map[string]json.RawMessage
	if raw, ok := in["edits"]; k == Edit && ok && json.Unmarshal(raw, &edits) != nil {
		return "edits"
	}
	listed = func(name string) bool {
		return !strings.HasSuffix(strings.ToLower(name), "path") && (fields[k][name] || name == "replace_all" || name == "replaceAll")
	}
	for _, e := range edits {
		if name := firstUnlisted(e, listed); name != "" {
			return "edits." + name
		}
	}
	return ""
}

// firstUnlisted returns the alphabetically first field that is not listed, or "". Because of this
// order, the same input always gets the same reason.
func firstUnlisted(fields map[string]json.RawMessage, listed func(name string) bool) string {
	first := ""
	for name := range fields {
		if (first == "" || name < first) && !listed(name) {
			first = name
		}
	}
	return first
}

// In an apply_patch envelope, lines with a file's path begin with one of patchHeads. patchMarks are
// the other lines that begin with ***.
var (
	patchHeads = []string{"*** Add File", "*** Update File", "*** Delete File", "*** Move to"}
	patchMarks = []string{"*** Begin Patch", "*** End Patch", "*** End of File"}
)

// patchPaths returns the files that an apply_patch envelope changes. If the files are unknown, it
// returns false.
func (in Input) patchPaths() ([]string, bool) {
	patch, ok := in.Text("patch", "input")
	if !ok {
		return nil, false
	}
	var out []string
	for line := range strings.SplitSeq(patch, "\n") {
		head, p, named := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case named && slices.Contains(patchHeads, head):
			out = append(out, p)
		case strings.HasPrefix(line, "***") && !slices.Contains(patchMarks, strings.TrimSpace(line)):
			return nil, false
		}
	}
	return out, len(out) > 0
}
