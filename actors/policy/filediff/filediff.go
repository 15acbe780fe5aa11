// Package filediff compares the edits of a call with the text of a file. Its results are bounded and
// contain no line in which schemas/redact finds a secret.
package filediff

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/schemas/redact"
)

const (
	contextLines = 3
	maxContext   = 500       // the longest line of context, in bytes
	maxPartial   = 2000      // the longest line of which an edit replaces a part
	maxEdited    = 4 << 20   // the longest text between two edits of a call
	maxEdits     = 64        // the largest number of edits of a call
	maxStored    = 12 << 10  // the texts of a result, in bytes; with their names and escapes they fit into schemas.MaxDiskFile
	perPiece     = 48        // the names and numbers around a piece of text
	scanLines    = 20        // the lines before and after a place in which a secret may begin or end
	maxScanned   = 128 << 10 // the text of a call that is searched for secrets
)

// Comparison compares one call with a file. Its limits hold for all its results together.
type Comparison struct {
	redactor        redact.Redactor
	stored, scanned int
	exposed         map[string]bool // lines from which an edit replaced a part, although they may hold a secret
}

// New returns a Comparison whose results contain no secret that r finds.
func New(r redact.Redactor) *Comparison {
	return &Comparison{redactor: r, exposed: map[string]bool{}}
}

// Edits tells where each edit applies in a text, after the edits before it. Hosts write the line
// breaks of an edit as \n, also if the file has \r\n; then those of the file are read as \n.
func (c *Comparison) Edits(text string, edits []tools.TextEdit) []schemas.DiskEdit {
	out := make([]schemas.DiskEdit, len(edits))
	failed := ""
	for i, e := range edits {
		switch {
		case failed != "":
		case i == maxEdits:
			failed = "there are too many edits"
		default:
			if strings.Contains(text, "\r\n") && !strings.Contains(text, e.Old) && !strings.Contains(e.Old+e.New, "\r") {
				text = strings.ReplaceAll(text, "\r\n", "\n")
			}
			if failed = misfit(text, e); failed == "" {
				out[i], text = c.edit(text, e)
				continue
			}
		}
		out[i].Note = failed
		if i+1 < len(edits) && i != maxEdits {
			failed = "an edit above does not fit the file"
		}
	}
	return out
}

// misfit returns the reason why an edit does not apply to a text, or "".
func misfit(text string, e tools.TextEdit) string {
	switch n := strings.Count(text, e.Old); {
	case e.Old == "" && text != "":
		return "the old text is empty, and the file is not"
	case e.Old == "":
	case n == 0:
		return "the old text is not in the file"
	case n > 1 && !e.All:
		return fmt.Sprintf("the old text occurs %d times in the file", n)
	case len(text)+n*(len(e.New)-len(e.Old)) > maxEdited:
		return "the file becomes too large"
	}
	return ""
}

// edit returns the places of an edit that fits the text, and the text after the edit.
func (c *Comparison) edit(text string, e tools.TextEdit) (schemas.DiskEdit, string) {
	if text == "" {
		return schemas.DiskEdit{Count: 1, Hunks: []schemas.DiskHunk{{Line: 1, Around: []string{"", ""}}}}, e.New
	}
	f := newFile(text)
	places := f.places(e.Old)
	c.scan(f, places)
	hunks, note := c.hunks(f, places)
	if note != "" {
		for _, p := range places { // what remains of these lines is no more fit to be shown than the lines were
			c.expose(f.text[f.start(p.first):p.from] + e.New + f.text[p.to:f.end(p.last)])
		}
	}
	out := schemas.DiskEdit{Note: note, Count: len(places), Hunks: hunks}
	if note != "" {
		out.Count = 0
	}
	return out, strings.ReplaceAll(text, e.Old, e.New)
}

func (c *Comparison) expose(text string) {
	for line := range strings.Lines(text) {
		c.exposed[line] = true
	}
}

// hunks returns the first places with the lines around them. Places whose lines meet share a hunk.
// note says why there are none.
func (c *Comparison) hunks(f *file, places []place) (hunks []schemas.DiskHunk, note string) {
	last, end := -1, 0 // the last line of the newest hunk, and the end of its last place
	for i, p := range places {
		if note := c.partial(f, p); note != "" {
			if i == 0 {
				return nil, note
			}
			break
		}
		from, to := p.first, p.last
		for from > 0 && from > p.first-contextLines && f.shows(from-1) {
			from--
		}
		for to+1 < len(f.lines) && to < p.last+contextLines && f.shows(to+1) {
			to++
		}
		after := f.text[p.to:f.end(to)]
		if len(hunks) > 0 && last >= from-1 {
			h := &hunks[len(hunks)-1]
			if !c.store(p.from - end + len(after) + perPiece) {
				break
			}
			h.Around[len(h.Around)-1] = f.text[end:p.from]
			h.Around = append(h.Around, after)
		} else {
			before := f.text[f.start(from):p.from]
			if !c.store(len(before) + len(after) + 2*perPiece) {
				if i == 0 {
					return nil, "there is too much to show"
				}
				break
			}
			hunks = append(hunks, schemas.DiskHunk{Line: from + 1, Around: []string{before, after}})
		}
		last, end = to, p.to
	}
	return hunks, ""
}

// partial returns the reason why a line must not be shown of which the edit replaces only a part,
// or "".
func (c *Comparison) partial(f *file, p place) string {
	for _, one := range []struct {
		line int
		part string
	}{{p.first, f.text[f.start(p.first):p.from]}, {p.last, strings.TrimRight(f.text[p.to:f.end(p.last)], "\r\n")}} {
		switch {
		case one.part == "":
		case len(f.lines[one.line]) > maxPartial:
			return "the rest of its line is too long to show"
		case !f.clean[one.line]:
			return "the rest of its line may hold a secret"
		}
	}
	return ""
}

// store reports whether n further bytes fit into the result, and counts them.
func (c *Comparison) store(n int) bool {
	if c.stored+n > maxStored {
		return false
	}
	c.stored += n
	return true
}

// Changes returns the differences between a file and the text that replaces it. ok is false if they
// are too many.
func (c *Comparison) Changes(before, after string) (changes []schemas.DiskChange, ok bool) {
	edits := udiff.Lines(before, after)
	if len(edits)*2*perPiece > maxStored || !applies(before, after, edits) {
		return nil, false
	}
	c.stored = len(edits) * 2 * perPiece
	f := newFile(before)
	var removed []place
	for _, e := range edits {
		removed = append(removed, f.place(e.Start, e.End))
	}
	c.scan(f, removed)
	for i, e := range edits {
		change := schemas.DiskChange{Line: f.lineAt(e.Start) + 1, Added: CountLines(e.New)}
		var kept strings.Builder
		full := false
		for n := f.lineAt(e.Start); n < len(f.lines) && f.start(n) < removed[i].to; n++ {
			line := f.lines[n]
			if !f.clean[n] {
				line = redact.Mark + "\n"
			}
			if full = full || !f.scanned[n] || !c.store(len(line)); full {
				change.More++
				continue
			}
			kept.WriteString(line)
		}
		change.Removed = kept.String()
		changes = append(changes, change)
	}
	return changes, true
}

// applies reports whether the edits are whole lines, in order, and turn before into after.
func applies(before, after string, edits []udiff.Edit) bool {
	var made strings.Builder
	at := 0
	for _, e := range edits {
		if e.Start < at || e.End < e.Start || e.End > len(before) || e.Start > 0 && before[e.Start-1] != '\n' {
			return false
		}
		if e.End < len(before) && (e.End > 0 && before[e.End-1] != '\n' || e.New != "" && !strings.HasSuffix(e.New, "\n")) {
			return false
		}
		made.WriteString(before[at:e.Start] + e.New)
		at = e.End
	}
	return made.String()+before[at:] == after
}

// CountLines returns the number of lines of a text.
func CountLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}
