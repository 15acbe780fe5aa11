package logchain

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/nodbus/nod/schemas"
)

// A report lists at most maxFaults faults, and counts all of them.
const maxFaults = 20

// Verifier checks the lines of an exported log in order. The log may begin at any entry, because nod
// drops the oldest entries.
type Verifier struct {
	// Keys are the trusted public nkeys of engines. If Keys is empty, a checkpoint may be unsigned or
	// signed with any key.
	Keys []string

	report   Report
	last     uint64 // the sequence number in the last line that was added
	previous string // the Hash of the last checkpoint
	open     []openLine
}

// openLine is a line that no checkpoint has covered so far.
type openLine struct {
	sequence uint64
	digest   [sha256.Size]byte
	at       time.Time
}

// Report is the result of a verification.
type Report struct {
	Entries     int       `json:"entries"`
	First       uint64    `json:"first"` // the sequence of the first entry
	Last        uint64    `json:"last"`
	Checkpoints []Head    `json:"checkpoints"`
	Keys        []string  `json:"keys"`                // the keys that signed checkpoints
	Unsigned    int       `json:"unsigned"`            // the number of checkpoints without a signature
	Open        int       `json:"open"`                // the number of entries after the last checkpoint, and it itself
	OpenSince   time.Time `json:"open_since,omitzero"` // the time of the first of these entries
	Faults      []Fault   `json:"faults"`              // the first ones, in the order of the log
	FaultCount  int       `json:"fault_count"`
}

// Head names a checkpoint.
type Head struct {
	Sequence uint64    `json:"sequence"`
	Hash     string    `json:"hash"`
	At       time.Time `json:"at"`
}

// Fault is one disagreement between the log and its checkpoints.
type Fault struct {
	Sequence uint64 `json:"sequence"` // the first entry that is affected
	What     string `json:"what"`
}

// Add checks the next line of the log. The line has no line break.
func (v *Verifier) Add(line []byte) {
	sequence, entry, err := split(line)
	if err != nil {
		v.fault(v.last+1, "the line after entry %d %v", v.last, err)
		return
	}
	switch {
	case v.report.Entries == 0:
		v.report.First = sequence
	case sequence <= v.last:
		v.fault(sequence, "entry %d stands after entry %d", sequence, v.last)
		return
	case sequence != v.last+1:
		v.missing(v.last+1, sequence-1)
	}
	v.report.Entries++
	v.last = sequence
	var e schemas.LogEntry
	if err := schemas.Load(entry, &e); err != nil {
		v.fault(sequence, "entry %d is not readable: %v", sequence, err)
	} else if e.Checkpoint != nil {
		v.checkpoint(sequence, &e)
	}
	v.open = append(v.open, openLine{sequence, sha256.Sum256(line), e.At})
}

// checkpoint compares the open lines with a checkpoint. If the checkpoint is damaged or untrusted,
// this is a fault, and the checkpoint covers no line.
func (v *Verifier) checkpoint(sequence uint64, e *schemas.LogEntry) {
	c := e.Checkpoint
	digests, err := base64.StdEncoding.DecodeString(c.Lines)
	n := uint64(len(digests)) / sha256.Size // in a forged checkpoint, a number computed from First and Last could overflow
	sized := err == nil && n > 0 && n <= MaxEntries && len(digests)%sha256.Size == 0 && c.First <= c.Last && c.Last-c.First == n-1
	if e.Kind != schemas.LogCheckpoint || !sized || hash(e) != c.Hash {
		v.fault(sequence, "the checkpoint %d was changed: its hash does not fit its content", sequence)
		return
	}
	if !v.trusts(sequence, c) {
		return
	}
	if c.Last >= sequence {
		v.fault(sequence, "the checkpoint %d is not in its place: entries before it were removed", sequence)
	}
	if v.previous != "" && c.Previous != v.previous {
		v.fault(sequence, "the checkpoint %d does not follow the one before: a checkpoint between them was removed or changed", sequence)
	}
	v.previous = c.Hash
	v.report.Checkpoints = append(v.report.Checkpoints, Head{sequence, c.Hash, e.At})
	v.skip(sequence, c.First)
	for len(v.open) > 0 && v.open[0].sequence <= c.Last {
		line := v.open[0]
		v.open = v.open[1:]
		at := (line.sequence - c.First) * sha256.Size
		if !slices.Equal(line.digest[:], digests[at:at+sha256.Size]) {
			v.fault(line.sequence, "entry %d was changed after its checkpoint", line.sequence)
		}
	}
}

// skip removes those open lines that come before the first entry of a checkpoint, and reports them as
// a fault, because no valid checkpoint covers them. The parameter sequence is the checkpoint's own
// sequence number.
func (v *Verifier) skip(sequence, first uint64) {
	n := 0
	for n < len(v.open) && v.open[n].sequence < first {
		n++
	}
	if n > 0 {
		v.fault(sequence, "entries %d to %d are in no valid checkpoint", v.open[0].sequence, v.open[n-1].sequence)
	}
	v.open = v.open[n:]
}

// trusts reports whether a checkpoint counts. It counts if it has a valid signature by a trusted key. If
// the Verifier has no trusted keys, any valid signature and a missing signature count, too.
func (v *Verifier) trusts(sequence uint64, c *schemas.Checkpoint) bool {
	if c.Key == "" && c.Signature == "" && len(v.Keys) == 0 {
		v.report.Unsigned++
		return true
	}
	switch {
	case !isSigned(c):
		v.fault(sequence, "the checkpoint %d has no valid signature", sequence)
		return false
	case len(v.Keys) > 0 && !slices.Contains(v.Keys, c.Key):
		v.fault(sequence, "the checkpoint %d is signed with the key %s, which is not trusted", sequence, c.Key)
		return false
	}
	if !slices.Contains(v.report.Keys, c.Key) {
		v.report.Keys = append(v.report.Keys, c.Key)
	}
	return true
}

func (v *Verifier) missing(from, to uint64) {
	if from == to {
		v.fault(from, "entry %d is missing", from)
		return
	}
	v.fault(from, "entries %d to %d are missing", from, to)
}

func (v *Verifier) fault(sequence uint64, format string, args ...any) {
	v.report.FaultCount++
	if len(v.report.Faults) < maxFaults {
		v.report.Faults = append(v.report.Faults, Fault{sequence, fmt.Sprintf(format, args...)})
	}
}

// Report returns the result for all lines so far. If head is not empty, Report checks that head is
// the Hash of one of the checkpoints in these lines. A caller passes a Hash that it noted earlier, to
// learn whether the log has lost its end since then.
func (v *Verifier) Report(head string) Report {
	r := v.report
	r.Last, r.Open = v.last, len(v.open)
	if r.Open > 0 {
		r.OpenSince = v.open[0].at
	}
	if head != "" && !slices.ContainsFunc(r.Checkpoints, func(h Head) bool { return h.Hash == head }) {
		r.FaultCount++
		r.Faults = append(r.Faults, Fault{v.last, "no checkpoint has the hash " + head + ": the end of the log was removed or written again, or the log has dropped that checkpoint by its age"})
	}
	slices.SortStableFunc(r.Faults, func(a, b Fault) int { return int(min(max(int64(a.Sequence)-int64(b.Sequence), -1), 1)) })
	return r
}
