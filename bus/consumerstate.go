package bus

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// stateName is the name of the file with a consumer's position. The position tells which messages are
// acknowledged, and which are delivered but not acknowledged.
const stateName = "o.dat"

// dropDamagedState removes the position file of the consumer in dir if a power cut has damaged it. The
// server then delivers all messages of the stream again. With a damaged position, the server would refuse
// to open the consumer, or would count unacknowledged messages as acknowledged.
func dropDamagedState(dir string, log *slog.Logger) error {
	file := filepath.Join(dir, stateName)
	data, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case intactState(data):
		return nil
	}
	log.Warn("bus: a power cut has damaged the position of a consumer; its messages are delivered again", "file", file)
	if err := os.Remove(file); err != nil {
		return err
	}
	return syncDir(dir)
}

// The first two bytes of a position file, in the format of nats-server 2.15.
const (
	stateMagic   = 22
	stateVersion = 2
)

// intactState reports whether a consumer's position is complete. The format has no checksum, so a
// complete position has exactly as many entries as it states, and nothing after them. If the position has
// another version of the format, intactState returns true and leaves the check to the server.
func intactState(data []byte) bool {
	if len(data) < 2 || data[0] != stateMagic {
		return false
	}
	if data[1] != stateVersion {
		return true
	}
	r := varints{rest: data[2:]}
	r.skip(4) // the sequences up to which messages are acknowledged and delivered
	unacknowledged := r.next()
	if unacknowledged > 0 {
		r.skip(1) // the time to which the times in the entries are relative
	}
	for ; unacknowledged > 0 && !r.bad; unacknowledged-- {
		if r.next() == 0 { // an entry begins with the distance of its message from the last acknowledged message, which is never 0
			return false
		}
		r.skip(2)
	}
	for redelivered := r.next(); redelivered > 0 && !r.bad; redelivered-- {
		r.skip(2)
	}
	return !r.bad && len(r.rest) == 0
}

// varints reads numbers of variable length. It sets its field bad if a number is missing or
// malformed.
type varints struct {
	rest []byte
	bad  bool
}

func (r *varints) next() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *varints) skip(numbers int) {
	for range numbers {
		r.next()
	}
}
