// Package logchain makes and verifies the checkpoints of nod's log. A checkpoint is an engine's signed
// statement about the entries since the previous checkpoint. An entry that is changed, removed, added or
// moved later disagrees with the checkpoints. docs/evidence.md describes the format and its limits.
package logchain

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/nodbus/nod/schemas"
)

// MaxEntries is the greatest number of entries that one checkpoint covers. It keeps a checkpoint smaller
// than 64 KiB.
const MaxEntries = 1000

// Line returns the line of a log entry in an exported log, without the line break. A checkpoint
// covers exactly these bytes of each line.
func Line(sequence uint64, entry []byte) []byte {
	line := make([]byte, 0, len(entry)+40)
	line = append(line, `{"sequence":`...)
	line = strconv.AppendUint(line, sequence, 10)
	line = append(line, `,"entry":`...)
	line = append(line, entry...)
	return append(line, '}')
}

// split is the inverse of Line. It refuses every line that Line cannot return.
func split(line []byte) (sequence uint64, entry []byte, err error) {
	var l struct {
		Sequence uint64          `json:"sequence"`
		Entry    json.RawMessage `json:"entry"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return 0, nil, fmt.Errorf("is no line of an exported log: %w", err)
	}
	if !bytes.Equal(Line(l.Sequence, l.Entry), line) {
		return 0, nil, fmt.Errorf("is no line of an exported log, or was formatted again")
	}
	return l.Sequence, l.Entry, nil
}

// Signer signs checkpoints with an nkey. The zero Signer makes unsigned checkpoints.
type Signer struct{ pair nkeys.KeyPair }

// NewSigner returns the signer for the content of a key file, which is an nkey seed or NATS credentials.
func NewSigner(file []byte) (Signer, error) {
	pair, err := nkeys.ParseDecoratedNKey(file)
	if err != nil {
		return Signer{}, fmt.Errorf("holds no nkey seed") // the error leaves out the library's error, which may quote the seed
	}
	return Signer{pair}, nil
}

// Wipe overwrites the key in memory.
func (s Signer) Wipe() {
	if s.pair != nil {
		s.pair.Wipe()
	}
}

// Digests has the digests of consecutive log entries, one after another.
type Digests []byte

// Add appends the digest of an entry.
func (d *Digests) Add(sequence uint64, entry []byte) {
	digest := sha256.Sum256(Line(sequence, entry))
	*d = append(*d, digest[:]...)
}

// Len returns the number of entries.
func (d Digests) Len() int { return len(d) / sha256.Size }

// Make returns the log entry of a signed checkpoint. The checkpoint covers the consecutive entries
// from the sequence number in the parameter first on. The parameter previous is the Hash of the
// previous checkpoint.
func (s Signer) Make(first uint64, entries Digests, previous string, at time.Time) (schemas.LogEntry, error) {
	e := schemas.LogEntry{Type: schemas.TypeLogEntry, At: at.UTC(), Kind: schemas.LogCheckpoint, Checkpoint: &schemas.Checkpoint{
		First: first, Last: first + uint64(entries.Len()) - 1, Previous: previous, Lines: base64.StdEncoding.EncodeToString(entries),
	}}
	c := e.Checkpoint
	c.Hash = hash(&e)
	if s.pair == nil {
		return e, nil
	}
	var err error
	if c.Key, err = s.pair.PublicKey(); err != nil {
		return e, fmt.Errorf("sign a checkpoint of the log: %w", err)
	}
	signature, err := s.pair.Sign([]byte(c.Hash))
	if err != nil {
		return e, fmt.Errorf("sign a checkpoint of the log: %w", err)
	}
	c.Signature = base64.StdEncoding.EncodeToString(signature)
	return e, nil
}

// hash computes the Hash of the checkpoint in a log entry from everything else in the entry.
func hash(e *schemas.LogEntry) string {
	c := e.Checkpoint
	sum := sha256.Sum256(fmt.Appendf(nil, "nod.v1.checkpoint\n%d\n%d\n%s\n%s\n%s\n",
		c.First, c.Last, c.Previous, e.At.Format(time.RFC3339Nano), c.Lines))
	return hex.EncodeToString(sum[:])
}

// isSigned reports whether a checkpoint has a valid signature by the key that it names.
func isSigned(c *schemas.Checkpoint) bool {
	signature, err := base64.StdEncoding.DecodeString(c.Signature)
	if err != nil || c.Key == "" {
		return false
	}
	public, err := nkeys.FromPublicKey(c.Key)
	return err == nil && public.Verify([]byte(c.Hash), signature) == nil
}
