package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/nodbus/nod/actors/policy/filediff"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/schemas/redact"
)

// writesFile is the reason of a verdict on a tool that writes one or more files.
const writesFile = "writes a file"

// maxReplaced bounds, in bytes, the files with which ReadWritten compares a call.
const maxReplaced = 1 << 20

// Written is what the disk tells about the file that a call writes, at the time of the request. The
// file may change before a person answers. The zero Written tells nothing.
type Written struct {
	effect string // replaces the reason "writes a file"; or ""
	// File compares the call with the file; nil if the call changes no one file in a way that nod knows.
	File *schemas.DiskFile
}

// Describe makes the reason "writes a file" of a verdict more precise: the call creates the file, or
// replaces one with so many lines.
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

// ReadWritten reads the file that a call writes, and compares the call with it. It reads no file that
// the policy counts as a secret, and no hidden file outside the project. It waits for no named pipe or
// device, but the file system itself may block.
func (ThisDisk) ReadWritten(p *Policy, c Call) Written {
	in, err := tools.ReadInput(c.Input)
	if err != nil {
		return Written{}
	}
	change, ok := in.FileWrite(tools.Named(c.ToolName))
	if !ok {
		return Written{}
	}
	text, linked, err := p.readFile(&c, change.Path)
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
	case linked && (change.Content != nil || change.Source != nil): // a prompt folds what stays, but the link may lead to another file later
		file.Note = "its path leads through a link"
	default:
		p.compare(&change, text, file)
	}
	if data, err := schemas.Encode(file); err != nil || len(data) > schemas.MaxDiskFile {
		file = &schemas.DiskFile{Note: "there is too much to show"}
	}
	w := Written{File: file}
	switch {
	case change.Content == nil:
	case errors.Is(err, fs.ErrNotExist):
		w.effect = "creates a file"
	case err == nil:
		w.effect = replacement(file, filediff.CountLines(text))
	}
	return w
}

// replacement describes a call that writes a whole file anew, which had so many lines: how many of them
// go, if the call was compared with the file.
func replacement(file *schemas.DiskFile, lines int) string {
	gone := 0
	for _, c := range file.Changes {
		gone += filediff.CountLines(c.Removed) + c.More
	}
	whole := fmt.Sprintf("replaces a file of %s", plural(lines, "line"))
	switch {
	case file.Note != "" || gone == lines:
		return whole
	case len(file.Changes) == 0:
		return "writes a file as it is"
	case gone == 0:
		return fmt.Sprintf("adds lines to a file of %s", plural(lines, "line"))
	}
	return fmt.Sprintf("replaces %d of the %s of a file", gone, plural(lines, "line"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// compare compares a change with the text of its file.
func (p *Policy) compare(change *tools.FileWrite, text string, file *schemas.DiskFile) {
	with := filediff.New(redact.Redactor{SecretFile: p.IsSecretFile})
	after := change.Content
	if change.Source != nil {
		cell, ok := cellSource(text, change.Cell)
		if !ok {
			file.Note = "the cell is not in the notebook"
			return
		}
		text, after, file.Cell = cell, change.Source, true
	}
	if file.Lines = filediff.CountLines(text); after == nil {
		file.Edits = with.Edits(text, change.Edits)
		return
	}
	changes, ok := with.Changes(text, *after)
	if file.Changes = changes; !ok {
		*file = schemas.DiskFile{Note: "it changes too many places to show"}
	}
}

// unreadError says in a few words why a file is not read.
type unreadError string

func (e unreadError) Error() string { return string(e) }

// readFile returns the text of the file that a call names, and whether its path leads through a link.
func (p *Policy) readFile(c *Call, name string) (text string, linked bool, err error) {
	loc := c.location()
	spelled := loc.Spelled(name)
	if len(spelled) != 1 || !path.IsAbs(spelled[0]) {
		return "", false, unreadError("nod does not know which file it is")
	}
	full := spelled[0]
	real, err := OnDisk(full)
	if err != nil {
		return "", false, err
	}
	loc.LeadsToSecret = p.shell.Secrets.MayLeadFrom(&loc)
	for _, at := range append([]string{name, full, real}, loc.Follow(full)...) {
		if p.IsSecretFile(at) || p.shell.Secrets.MayBe(at, &loc, false) {
			return "", false, unreadError("nod does not read files that may hold secrets")
		}
	}
	if strings.Contains("/"+name+"/", "/../") && !strings.HasPrefix(name, "~") { // a program may follow links before it goes up
		at := name
		if !path.IsAbs(at) {
			at = loc.Dirs[0] + "/" + name
		}
		if other, err := OnDisk(at); err != nil || other != real {
			return "", false, unreadError("nod does not know which file it is")
		}
	}
	text, err = readText(real)
	return text, real != full, err
}

// readText returns the text of a regular file of up to maxReplaced bytes. It does not follow a link,
// and does not wait for a named pipe.
func readText(file string) (string, error) {
	before, err := os.Lstat(file)
	switch {
	case err != nil:
		return "", err
	case !before.Mode().IsRegular():
		return "", unreadError("it is no ordinary file")
	case before.Size() > maxReplaced:
		return "", unreadError("the file is larger than 1 MiB")
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // the file was only read, so an error of Close loses nothing
	if info, err := f.Stat(); err != nil || !os.SameFile(before, info) {
		return "", unreadError("the file has just been replaced")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxReplaced+1))
	text := string(data)
	switch {
	case err != nil:
		return "", err
	case len(data) > maxReplaced:
		return "", unreadError("the file is larger than 1 MiB")
	case !utf8.Valid(data) || strings.Contains(text, "\x00"):
		return "", unreadError("the file is not text")
	case strings.Contains(text, "PRIVATE KEY-----") || strings.Contains(text, "PRIVATE KEY BLOCK-----"):
		return "", unreadError("the file holds a private key")
	}
	return text, nil
}

// cellSource returns the text of a notebook's cell. Hosts name a cell by its id or, as cell-N, by its
// place from 0.
func cellSource(notebook, id string) (string, bool) {
	var all struct {
		Cells []struct {
			ID     string          `json:"id"`
			Source json.RawMessage `json:"source"`
		} `json:"cells"`
	}
	if json.Unmarshal([]byte(notebook), &all) != nil {
		return "", false
	}
	place := -1
	if n, err := strconv.Atoi(strings.TrimPrefix(id, "cell-")); err == nil && id == "cell-"+strconv.Itoa(n) {
		place = n
	}
	for i := range all.Cells {
		if all.Cells[i].ID == id {
			place = i
			break
		}
	}
	if place < 0 || place >= len(all.Cells) {
		return "", false
	}
	source := all.Cells[place].Source
	var lines []string
	if json.Unmarshal(source, &lines) == nil {
		return strings.Join(lines, ""), true
	}
	var text string
	err := json.Unmarshal(source, &text)
	return text, err == nil
}

// obeyed reports whether other programs run or obey one of the files, such as a workflow of a build
// server, a hook or an agent's settings.
func (ev *evaluation) obeyed(paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return slices.ContainsFunc(ev.location.Resolve(p), func(full string) bool {
			rel := strings.TrimPrefix(ev.location.Relative(full), "/")
			return rel != "" && ev.pol.protected.Has(rel)
		})
	})
}
