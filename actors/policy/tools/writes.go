package tools

import (
	"encoding/json"
	"slices"
)

// FileWrite describes how a tool changes one file. The tool replaces the whole file by Content, replaces
// one cell of a notebook by Source, or makes Edits. Exactly one of these three fields is not nil.
type FileWrite struct {
	Path    string
	Content *string
	Edits   []TextEdit
	Source  *string
	Cell    string // the id of the cell
}

// TextEdit replaces the text Old by New. Old must be in one place, unless All is set; with All, every
// place is replaced.
type TextEdit struct {
	Old, New string
	All      bool
}

// oldAndNew are the field names for the two texts of an edit in the tools of various hosts.
var oldAndNew = [][2]string{{"old_string", "new_string"}, {"oldString", "newString"}, {"old_str", "new_str"}}

// editFields are the fields that one edit may have. writeFields are the fields that a call for
// FileWrite may have. Another field, such as mode, may change the effect of the call.
var (
	editFields  = set("old_string new_string oldString newString old_str new_str replace_all replaceAll allow_multiple")
	writeFields = set("file_path filePath path notebook_path absolute_path cwd content contents file_text edits new_source cell_id cell_type edit_mode instruction description explanation")
)

// FileWrite returns the change that a call of the tool t makes to a file. ok is false if the call
// makes another kind of change, or if the call can be read in several ways.
func (in Input) FileWrite(t Tool) (w FileWrite, ok bool) {
	paths, known := in.FilePaths(t)
	if t.Kind != Edit || !known || len(paths) != 1 || !in.hasOnly(writeFields, editFields) {
		return w, false
	}
	w.Path = paths[0]
	found := 0
	if text, ok := in.Text("content", "contents", "file_text"); ok {
		w.Content = &text
		found++
	}
	if e, ok := in.textEdit(); ok {
		w.Edits = []TextEdit{e}
		found++
	}
	if raw := in["edits"]; raw != nil {
		if w.Edits = textEdits(raw); w.Edits == nil {
			return w, false
		}
		found++
	}
	if source, ok := in.Text("new_source"); ok {
		mode, _ := in.Text("edit_mode")
		if w.Cell, _ = in.Text("cell_id"); in["notebook_path"] == nil || w.Cell == "" || in["edit_mode"] != nil && mode != "replace" {
			return w, false
		}
		w.Source = &source
		found++
	}
	return w, found == 1
}

func (in Input) textEdit() (e TextEdit, ok bool) {
	found := 0
	for _, names := range oldAndNew {
		if in[names[0]] != nil || in[names[1]] != nil {
			old, ok1 := in.Text(names[0])
			text, ok2 := in.Text(names[1])
			if !ok1 || !ok2 {
				return e, false
			}
			e.Old, e.New = old, text
			found++
		}
	}
	e.All = in.isTrue("replace_all") || in.isTrue("replaceAll") || in.isTrue("allow_multiple")
	return e, found == 1
}

// hasOnly reports whether each field is on one of the lists.
func (in Input) hasOnly(lists ...map[string]bool) bool {
	for name := range in {
		if !slices.ContainsFunc(lists, func(list map[string]bool) bool { return list[name] }) {
			return false
		}
	}
	return true
}

func (in Input) isTrue(name string) bool {
	var is bool
	return json.Unmarshal(in[name], &is) == nil && is
}

func textEdits(raw json.RawMessage) (all []TextEdit) {
	var edits []Input
	if json.Unmarshal(raw, &edits) != nil {
		return nil
	}
	for _, in := range edits {
		e, ok := in.textEdit()
		if !ok || !in.hasOnly(editFields) {
			return nil
		}
		all = append(all, e)
	}
	return all
}
