package logchain

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

var start = time.Date(2026, 1, 18, 0, 0, 0, 0, time.UTC)

func newKey(t *testing.T) (Signer, string) {
	pair, err := nkeys.CreateUser()
	require.NoError(t, err)
	seed, err := pair.Seed()
	require.NoError(t, err)
	public, err := pair.PublicKey()
	require.NoError(t, err)
	sign, err := NewSigner(append(seed, '\n'))
	require.NoError(t, err)
	return sign, public
}

// exported is the text of an exported log in which a checkpoint follows every few entries.
type exported struct {
	t        *testing.T
	sign     Signer
	entries  [][]byte
	previous string
	covered  int
}

func (l *exported) add(e schemas.LogEntry) {
	data, err := schemas.Encode(&e)
	require.NoError(l.t, err)
	l.entries = append(l.entries, data)
}

func (l *exported) happens(n int) {
	for range n {
		l.add(schemas.LogEntry{Type: schemas.TypeLogEntry, At: start.Add(time.Duration(len(l.entries)) * time.Second), Kind: schemas.LogDecided, SessionID: "S", PendingID: fmt.Sprint("p", len(l.entries)), Outcome: schemas.Denied})
	}
}

// checkpoint adds a checkpoint that leaves out the newest entries, as if they were stored while it
// was made. The parameter but is the number of entries that it leaves out.
func (l *exported) checkpoint(but int) {
	last := len(l.entries) - but
	var digests Digests
	for i := l.covered; i < last; i++ {
		digests.Add(uint64(i+1), l.entries[i])
	}
	e, err := l.sign.Make(uint64(l.covered+1), digests, l.previous, start.Add(time.Hour))
	require.NoError(l.t, err)
	l.add(e)
	l.previous, l.covered = e.Checkpoint.Hash, last
}

func (l *exported) lines() (lines [][]byte) {
	for i, entry := range l.entries {
		lines = append(lines, Line(uint64(i+1), entry))
	}
	return lines
}

// newLog returns a log of 32 entries with the checkpoints 11, 22 and 30. Two entries follow the last
// checkpoint.
func newLog(t *testing.T, sign Signer) *exported {
	l := &exported{t: t, sign: sign}
	l.happens(10)
	l.checkpoint(0)
	l.happens(10)
	l.checkpoint(3)
	l.happens(7)
	l.checkpoint(0)
	l.happens(2)
	return l
}

func verify(lines [][]byte, head string, keys ...string) Report {
	v := Verifier{Keys: keys}
	for _, line := range lines {
		v.Add(line)
	}
	return v.Report(head)
}

func TestAnUnchangedLogHasNoFault(t *testing.T) {
	sign, public := newKey(t)
	l := newLog(t, sign)
	r := verify(l.lines(), l.previous, public)
	require.Empty(t, r.Faults)
	require.Equal(t, []string{public}, r.Keys)
	require.Len(t, r.Checkpoints, 3)
	require.Equal(t, 32, r.Entries)
	require.Equal(t, 3, r.Open, "the last checkpoint and the two entries after it")
	for from := range l.entries { // a log may begin at any entry, because nod drops its oldest entries
		r := verify(l.lines()[from:], "", public)
		require.Empty(t, r.Faults, from)
		require.EqualValues(t, from+1, r.First)
	}
}

// A verification finds each of these changes, and names the first affected entry.
func TestAChangedLogIsFound(t *testing.T) {
	sign, public := newKey(t)
	other, _ := newKey(t)
	for name, c := range map[string]struct {
		change func(l *exported, lines [][]byte) [][]byte
		first  uint64
		says   string
	}{
		"an outcome": {func(_ *exported, lines [][]byte) [][]byte {
			lines[4] = bytes.Replace(lines[4], []byte(`"denied"`), []byte(`"allowed"`), 1)
			return lines
		}, 5, "entry 5 was changed after its checkpoint"},
		"a checkpoint": {func(_ *exported, lines [][]byte) [][]byte {
			lines[10] = bytes.Replace(lines[10], []byte(`"last":10`), []byte(`"last":9`), 1)
			return lines
		}, 11, "entries 1 to 10 are in no valid checkpoint"},
		"the time of a checkpoint": {func(_ *exported, lines [][]byte) [][]byte {
			lines[29] = bytes.Replace(lines[29], []byte(`01:00:00Z`), []byte(`02:00:00Z`), 1)
			return lines
		}, 30, "the checkpoint 30 was changed"},
		"one entry less": {func(_ *exported, lines [][]byte) [][]byte {
			return append(lines[:6], lines[7:]...)
		}, 7, "entry 7 is missing"},
		"several entries less, across a checkpoint": {func(_ *exported, lines [][]byte) [][]byte {
			return append(lines[:6], lines[14:]...)
		}, 7, "entries 7 to 14 are missing"},
		"a number less": {func(l *exported, _ [][]byte) [][]byte {
			l.entries = append(l.entries[:6], l.entries[7:]...)
			return l.lines()
		}, 7, "entry 7 was changed"},
		"one entry more": {func(l *exported, _ [][]byte) [][]byte {
			l.entries = append(l.entries[:3], append([][]byte{l.entries[5]}, l.entries[3:]...)...)
			return l.lines()
		}, 4, "entry 4 was changed"},
		"another order": {func(_ *exported, lines [][]byte) [][]byte {
			lines[2], lines[3] = lines[3], lines[2]
			return lines
		}, 3, "entry 3 "},
		"another order, numbered again": {func(l *exported, _ [][]byte) [][]byte {
			l.entries[2], l.entries[3] = l.entries[3], l.entries[2]
			return l.lines()
		}, 3, "entry 3 was changed"},
		"another key": {func(*exported, [][]byte) [][]byte {
			return newLog(t, other).lines()
		}, 11, "is signed with the key"},
		"no key": {func(*exported, [][]byte) [][]byte {
			return newLog(t, Signer{}).lines()
		}, 11, "no valid signature"},
		"no end": {func(_ *exported, lines [][]byte) [][]byte {
			return lines[:25]
		}, 25, "no checkpoint has the hash"},
		"a formatted line": {func(_ *exported, lines [][]byte) [][]byte {
			lines[8] = bytes.Replace(lines[8], []byte(`":`), []byte(`": `), 1)
			return lines
		}, 9, "formatted again"},
		"a line without an entry": {func(_ *exported, lines [][]byte) [][]byte {
			lines[31] = []byte(`{"sequence":32,"entry":{}}`)
			return lines
		}, 32, "is not readable"},
		"an entry twice": {func(_ *exported, lines [][]byte) [][]byte {
			return append(lines, lines[31])
		}, 32, "entry 32 stands after entry 32"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, sign)
			head := l.previous
			r := verify(c.change(l, l.lines()), head, public)
			require.NotEmpty(t, r.Faults)
			require.Equal(t, c.first, r.Faults[0].Sequence, r.Faults)
			var all strings.Builder
			for _, f := range r.Faults {
				fmt.Fprintln(&all, f.What)
			}
			require.Contains(t, all.String(), c.says)
		})
	}
}

// A verification finds a change of any single byte, unless the byte is in an entry after the last
// checkpoint.
func TestAChangeOfAnyByteIsFound(t *testing.T) {
	sign, public := newKey(t)
	l := newLog(t, sign)
	lines := l.lines()
	step := 1
	if testing.Short() {
		step = 16
		t.Log("-short: every 16th byte")
	}
	for i := range lines[:29] {
		for at := 0; at < len(lines[i]); at += step {
			changed := append([][]byte{}, lines...)
			changed[i] = bytes.Clone(lines[i])
			changed[i][at] ^= 1
			require.NotZero(t, verify(changed, "", public).FaultCount, "byte %d of %s", at, lines[i])
		}
	}
}

// Without a trusted key, a verification names the keys that signed the log.
func TestAnUntrustedLogNamesItsKeys(t *testing.T) {
	sign, public := newKey(t)
	r := verify(newLog(t, sign).lines(), "")
	require.Empty(t, r.Faults)
	require.Equal(t, []string{public}, r.Keys)
	r = verify(newLog(t, Signer{}).lines(), "")
	require.Empty(t, r.Faults)
	require.Equal(t, 3, r.Unsigned)
}

func FuzzVerifierNeverPanics(f *testing.F) {
	f.Add([]byte(`{"sequence":1,"entry":{"type":"nod.v1.log","at":"2026-01-18T00:01:00Z","kind":"checkpoint","checkpoint":{"first":1,"last":2,"lines":"","hash":"2ef8853106f4d107e0cb35bd52b824fcd3814912630e509ca290feb0fd91bd75"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v Verifier
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			v.Add(line)
		}
		v.Report("")
	})
}

// In these checkpoints, the number of digests fits the range of entries only by an arithmetic
// overflow.
func TestAForgedRangeIsAFault(t *testing.T) {
	digest := strings.Repeat("A", 43) + "="
	for _, c := range []schemas.Checkpoint{
		{First: 0, Last: math.MaxUint64},
		{First: 1, Last: 1 << 59},
		{First: 1, Last: 1<<59 + 1, Lines: digest},
		{First: 5, Last: 4},
	} {
		e := schemas.LogEntry{Type: schemas.TypeLogEntry, At: start, Kind: schemas.LogCheckpoint, Checkpoint: &c}
		c.Hash = hash(&e)
		l := exported{t: t}
		l.happens(3)
		l.add(e)
		r := verify(l.lines(), "")
		require.Equal(t, 1, r.FaultCount, "%+v", c)
		require.Contains(t, r.Faults[0].What, "the checkpoint 4 was changed")
	}
}
