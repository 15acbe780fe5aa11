// Package filediff compares the edits of a call with the text of a file. Its results have a limited
// size and contain no line in which schemas/redact finds a secret.
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
	maxPartial   = 2000      // the longest line, in bytes, if an edit replaces only a part of the line
	maxEdited    = 4 << 20   // the longest text, in bytes, that may result from an edit
	maxEdits     = 64        // the largest number of edits of a call
	maxWork      = 8 << 20   // the total length, in bytes, of the texts in which the edits of a call search
	maxLines     = 200_000   // the largest number of lines of a file and its replacement together
	maxPlaces    = 512       // the largest number of places of one edit, which is more than a result can have
	maxStored    = 12 << 10  // the length of a result's texts, in bytes; with names and escapes, they fit into schemas.MaxDiskFile
	maxRepeated  = 32 << 10  // the length, in bytes, of an edit's texts in its second and later places
	perPiece     = 48        // bytes for the names and numbers around a piece of text
	scanLines    = 20        // the number of lines before and after a place in which a secret may begin or end
	maxScanned   = 128 << 10 // bytes of a call's texts that are searched for secrets
)

// NoTime is the note of a comparison that took too long.
const NoTime = "nod had no time to compare"

// Comparison compares one call with a file. Its limits apply to all its results together.
type Comparison struct {
	stored, scanned int
	repeated        int             // bytes of edits' texts in second and later places
	work            int             // bytes of the texts that were compared so far
	blurred         bool            // an edit changed lines that were not searched for secrets, so that nod does not know which lines have secrets
	exposed         map[string]bool // lines that may contain a secret, or the rest of a secret after an edit
}

// New returns a Comparison that has used none of its limits.
func New() *Comparison { return &Comparison{exposed: map[string]bool{}} }

// Edits returns, for each edit of a call, its places in the text. Each edit applies to the result of the
// edits before it. Hosts write line breaks in an edit as \n even if the file has \r\n, so Edits reads \r\n
// in the file as \n. Edits does not compare a file with both kinds of line breaks, because hosts differ in
// the places that they find. Edits stops when the context ends.
func (c *Comparison) Edits(ctx context.Context, text string, edits []tools.TextEdit) []schemas.DiskEdit {
	out := make([]schemas.DiskEdit, len(edits))
	rest := "" // the note of all remaining edits
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

// refusal returns the reason not to compare the edit with this index, and all later edits, with a
// text. If there is no reason, it returns "".
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

// edit returns the places of an edit in a text, and the text after the edit. The edit must fit the text.
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

// exposeRests marks the lines that an edit makes from lines that may contain a secret. Such new lines must
// not be shown either.
func (c *Comparison) exposeRests(f *file, places []place, with string) {
	for i := 0; i < len(places); {
		var made strings.Builder
		first, last, at := places[i].first, places[i].first, f.start(places[i].first)
		for ; i < len(places) && places[i].first <= last; i++ {
			made.WriteString(f.text[at:places[i].from] + with)
			if at, last = places[i].to, places[i].last; at == f.end(last) && last+1 < len(f.lines) && !strings.HasSuffix(with, "\n") {
				last++ // the edit joins the next line to this line
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

// hunks returns the first places with the lines around them. Places with touching lines share a hunk. The
// argument texts is the length, in bytes, of the edit's own texts, which are shown at each place. If there
// are no hunks, the result note is the reason.
func (c *Comparison) hunks(f *file, places []place, texts int) (hunks []schemas.DiskHunk, note string) {
	last, end := -1, 0 // the last line of the newest hunk, and the end of the hunk's last place
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

// partial returns the reason not to show a line of which the edit replaces only a part. If there is no
// reason, it returns "".
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

// Changes returns the differences between a file and its replacement. If there are no differences to show,
// the result note is the reason.
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

// applies reports whether the edits replace whole lines, follow the order of the text, and turn the first
// text into the second.
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
