// Package filediff compares the edits of a call with the text of a file. Its results are bounded and
// contain no line in which schemas/redact finds a secret.
package filediff

import (
	"context"
	"fmt"
	"slices"
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
	maxWork      = 8 << 20   // the texts that the edits of a call search and change, in bytes
	maxLines     = 200_000   // the lines of a file and of the text that replaces it
	maxPlaces    = 512       // the places of one edit, more than a result can have
	maxStored    = 12 << 10  // the texts of a result, in bytes; with their names and escapes they fit into schemas.MaxDiskFile
	maxRepeated  = 32 << 10  // the texts of an edit in its places after the first, in bytes
	perPiece     = 48        // the names and numbers around a piece of text
	scanLines    = 20        // the lines before and after a place in which a secret may begin or end
	maxScanned   = 128 << 10 // the text of a call that is searched for secrets
)

// NoTime is the note of a comparison that took too long.
const NoTime = "nod had no time to compare"

// Comparison compares one call with a file. Its limits hold for all its results together.
type Comparison struct {
	stored, scanned int
	repeated        int             // the bytes of edits' texts in places after the first
	work            int             // the bytes of the texts that were compared so far
	blurred         bool            // an edit changed lines that were not searched for secrets, so that nod no longer knows which lines may hold one
	exposed         map[string]bool // lines that may hold a secret, or may be what an edit left of one
}

// New returns a Comparison with full limits.
func New() *Comparison { return &Comparison{exposed: map[string]bool{}} }

// Edits tells where each edit applies in a text, after the edits before it. Hosts write the line
// breaks of an edit as \n, also if the file has \r\n; then those of the file are read as \n. A file
// with both is not compared, because hosts differ in the places that they find. Edits compares no more
// edits once ctx has ended.
func (c *Comparison) Edits(ctx context.Context, text string, edits []tools.TextEdit) []schemas.DiskEdit {
	out := make([]schemas.DiskEdit, len(edits))
	rest := "" // the note of all further edits
	switch n := strings.Count(text, "\r\n"); {
	case n > 0 && n < strings.Count(text, "\n"):
		rest = "the file has two kinds of line breaks"
	case n > 0 && !slices.ContainsFunc(edits, func(e tools.TextEdit) bool { return strings.Contains(e.Old+e.New, "\r") }):
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	for i, e := range edits {
		if rest == "" {
			rest = c.refusal(ctx, i, text)
		}
		if rest != "" {
			out[i].Note = rest
			continue
		}
		if out[i].Note = misfit(text, e); out[i].Note != "" {
			rest = "an edit above does not fit the file"
			continue
		}
		out[i], text = c.edit(text, e)
	}
	return out
}

// refusal returns the reason why the edits from the one with this index on are not compared with a
// text, or "".
func (c *Comparison) refusal(ctx context.Context, index int, text string) string {
	switch c.work += len(text); {
	case index == maxEdits:
		return "there are too many edits"
	case ctx.Err() != nil, c.work > maxWork:
		return NoTime
	case c.blurred:
		return "an edit above changes too many places"
	}
	return ""
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
	hunks, note := c.hunks(f, places, len(e.Old)+len(e.New))
	c.exposeRests(f, places, e.New)
	c.blurred = c.blurred || len(places) == maxPlaces
	out := schemas.DiskEdit{Note: note, Hunks: hunks}
	if note == "" {
		out.Count = strings.Count(text, e.Old)
	}
	return out, strings.ReplaceAll(text, e.Old, e.New)
}

// exposeRests notes what an edit leaves of lines that may hold a secret: the rest is no more fit to be
// shown than the lines were.
func (c *Comparison) exposeRests(f *file, places []place, with string) {
	for i := 0; i < len(places); {
		var made strings.Builder
		first, last, at := places[i].first, places[i].first, f.start(places[i].first)
		for ; i < len(places) && places[i].first <= last; i++ {
			made.WriteString(f.text[at:places[i].from] + with)
			if at, last = places[i].to, places[i].last; at == f.end(last) && last+1 < len(f.lines) && !strings.HasSuffix(with, "\n") {
				last++ // the next line is joined to this one
			}
		}
		made.WriteString(f.text[at:f.end(last)])
		if slices.Contains(f.clean[first:last+1], false) {
			for line := range strings.Lines(made.String()) {
				c.exposed[line] = true
			}
		}
	}
}

// hunks returns the first places with the lines around them. Places whose lines meet share a hunk.
// Each place is shown with the edit's own texts, which have so many bytes. note says why there are no
// hunks.
func (c *Comparison) hunks(f *file, places []place, texts int) (hunks []schemas.DiskHunk, note string) {
	last, end := -1, 0 // the last line of the newest hunk, and the end of its last place
	for i, p := range places {
		if note := c.partial(f, p); note != "" {
			if i == 0 {
				return nil, note
			}
			break
		}
		if i > 0 {
			if c.repeated += texts; c.repeated > maxRepeated {
				break
			}
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

// Changes returns the differences between a file and the text that replaces it, or a note that says
// why there are none.
func (c *Comparison) Changes(ctx context.Context, before, after string) (changes []schemas.DiskChange, note string) {
	if CountLines(before)+CountLines(after) > maxLines || ctx.Err() != nil {
		return nil, NoTime
	}
	edits := udiff.Lines(before, after)
	switch {
	case ctx.Err() != nil:
		return nil, NoTime
	case len(edits)*2*perPiece > maxStored || !applies(before, after, edits):
		return nil, "it changes too many places to show"
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
	return changes, ""
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
