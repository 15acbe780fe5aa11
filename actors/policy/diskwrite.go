package policy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/nodbus/nod/actors/policy/filediff"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

// writesFile is the reason of a verdict on a tool that writes one or more files.
const writesFile = "writes a file"

// NoTime is the Note of a File whose comparison took too long.
const NoTime = filediff.NoTime

// Written describes the file that a call writes, as the file was at the time of the request. The file may
// change before a person answers. The zero Written describes nothing.
type Written struct {
	effect string // replaces the reason "writes a file"; or ""
	// File compares the call with the file. It is nil unless the call changes a single file in a way
	// that nod knows.
	File *schemas.DiskFile
}

// Describe replaces the reason "writes a file" of a verdict by a more precise one. The new reason says
// whether the call creates or overwrites the file, and how many of the file's lines are lost.
func (w Written) Describe(v *Verdict) {
	at := slices.Index(v.Reasons, writesFile)
	if at < 0 || w.effect == "" {
		return
	}
	v.Reasons, v.Targets = slices.Clone(v.Reasons), slices.Clone(v.Targets)
	v.Reasons[at] = w.effect
	for i := range v.Targets {
		if v.Targets[i].Does == writesFile {
			v.Targets[i].Does = w.effect
		}
	}
}

// WritesFile reports whether a call changes one file in a way that nod knows. Only then can ReadWritten
// compare the call with the file.
func WritesFile(c Call) bool {
	_, ok := fileWrite(c)
	return ok
}

func fileWrite(c Call) (tools.FileWrite, bool) {
	in, err := tools.ReadInput(c.Input)
	if err != nil {
		return tools.FileWrite{}, false
	}
	return in.FileWrite(tools.Named(c.ToolName))
}

// ReadWritten compares a call with the file that the call writes. It does not read a secret, a hidden file
// outside the project, or a file for which a rule denies or asks about reading. It does not wait for named
// pipes and devices, but the file system itself may block. It stops soon after ctx has ended.
func (ThisDisk) ReadWritten(ctx context.Context, p *Policy, c Call) Written {
	change, ok := fileWrite(c)
	if !ok {
		return Written{}
	}
	text, err := p.readFile(&c, change.Path)
	file := &schemas.DiskFile{}
	var unread unreadError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		file.New = true
		if change.Content == nil && (len(change.Edits) != 1 || change.Edits[0].Old != "") {
			file = &schemas.DiskFile{Note: "there is no such file"}
		}
	case errors.As(err, &unread):
		file.Note = string(unread)
	case err != nil:
		file.Note = "nod cannot read the file"
	default:
		compare(ctx, &change, text, file)
	}
	if data, err := schemas.Encode(file); err != nil || len(data) > schemas.MaxDiskFile {
		file = &schemas.DiskFile{Note: "there is too much to show"}
	}
	w := Written{File: file}
	switch {
	case change.Content == nil:
	case errors.Is(err, fs.ErrNotExist):
		w.effect = "creates a file"
	case err != nil:
		w.effect = unreadEffect(&c, change.Path)
	default:
		w.effect = replacement(file, filediff.CountLines(text), filediff.CountLines(*change.Content))
	}
	return w
}

// unreadEffect describes a call that writes a whole file which nod does not read. It returns "" if nod cannot
// tell whether the file exists.
func unreadEffect(c *Call, name string) string {
	loc := c.location()
	_, real, err := placeOf(&loc, name)
	if err != nil {
		return ""
	}
	switch info, err := os.Lstat(real); {
	case errors.Is(err, fs.ErrNotExist):
		return "creates a file"
	case err != nil || !info.Mode().IsRegular():
		return ""
	}
	return "overwrites a file"
}

// replacement describes a call that replaces the text of a file. The argument lines is the number of lines in
// the file, and the argument with is the number in the new text. If nod has compared the texts, the
// description says how many lines the call removes and adds.
func replacement(file *schemas.DiskFile, lines, with int) string {
	gone, added := 0, 0
	for _, c := range file.Changes {
		gone, added = gone+filediff.CountLines(c.Removed)+c.More, added+c.Added
	}
	switch {
	case lines == 0:
		return "writes an empty file"
	case file.Note != "" || gone == lines:
		return fmt.Sprintf("overwrites a file, replacing %s by %d", schemas.Count(lines, "line"), with)
	case len(file.Changes) == 0:
		return "writes a file as it is"
	case gone == 0:
		return fmt.Sprintf("overwrites a file, adding %s to its %d", schemas.Count(added, "line"), lines)
	case added == 0:
		return fmt.Sprintf("overwrites a file, removing %d of its %s", gone, schemas.Count(lines, "line"))
	}
	return fmt.Sprintf("overwrites a file, replacing %d of its %s by %d", gone, schemas.Count(lines, "line"), added)
}

// compare compares a change with the text of the file, and stores the result in the argument file.
func compare(ctx context.Context, change *tools.FileWrite, text string, file *schemas.DiskFile) {
	with := filediff.New()
	after := change.Content
	if change.Source != nil {
		cell, ok := cellSource(text, change.Cell)
		if !ok {
			file.Note = "nod does not know the cell"
			return
		}
		text, after, file.Cell = cell, change.Source, true
	}
	if file.Lines = filediff.CountLines(text); after == nil {
		file.Edits = with.Edits(ctx, text, change.Edits)
		return
	}
	changes, note := with.Changes(ctx, text, *after)
	if file.Changes = changes; note != "" {
		*file = schemas.DiskFile{Note: note}
	}
}
