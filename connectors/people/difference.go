package people

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"

	"github.com/nodbus/nod/connectors/people/payload"
)

// Difference compares the original input of a tool with the input that a person has edited. It returns
// each changed field, as a diff of its text or of its JSON. If the fields of one of the two inputs do not
// contain the whole input, it returns the diff of the whole JSON.
func Difference(original, edited json.RawMessage) []Part {
	before, err1 := fieldsOf(bytes.TrimSpace(original))
	after, err2 := fieldsOf(bytes.TrimSpace(edited))
	if err1 != nil || err2 != nil || len(before) == 0 {
		return []Part{diffPart("The input (JSON)", readable(original), readable(edited))}
	}
	var parts []Part
	for _, name := range fieldNames(before, after) {
		was, is := rawField(before, name), rawField(after, name)
		old, isText1 := textOf(was)
		new, isText2 := textOf(is)
		label := fieldName(name)
		if was != nil && !isText1 || is != nil && !isText2 {
			old, new = readable(was), readable(is)
			label += " (JSON)"
		}
		if old != new || was == nil || is == nil {
			parts = append(parts, diffPart(label, old, new))
		}
	}
	return parts
}

func diffPart(label, before, after string) Part {
	part := Part{Label: label, Field: true, Quote: true}
	part.Lines, part.Spans = diffLines(unnumbered(payload.Diff(before, after)))
	return part
}

// fieldNames returns the names of the fields in all lists, each name once, in the order of the lists.
func fieldNames(lists ...[]field) (names []string) {
	for _, list := range lists {
		for _, f := range list {
			if !slices.Contains(names, f.name) {
				names = append(names, f.name)
			}
		}
	}
	return names
}

func rawField(fields []field, name string) json.RawMessage {
	if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 {
		return fields[i].raw
	}
	return nil
}

// readable formats JSON with one value per line. If raw is not JSON, it returns raw itself.
func readable(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// ProjectName returns the name of a project's directory, sanitised for display. The name is empty if the
// project is unknown.
func ProjectName(project string) string {
	if project == "" {
		return ""
	}
	return Line(path.Base(project))
}
