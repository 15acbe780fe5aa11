// Package relay is for the programs that nod puts between a host and its agent, or between a client and
// its server. It handles lines, JSON-RPC ids, and the process of the agent or server.
package relay

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// Peer is one of the two programs between which a sidecar passes lines.
type Peer struct {
	In  io.Writer // the peer's input
	Out io.Reader // the peer's output
}

// EachLine calls the function f with every line of r. The line contains its line break, which only an
// unfinished last line lacks. A line may have any length, because a cut could hide a request for
// permission. f may keep the line. EachLine returns the first error of f or of a read.
func EachLine(r io.Reader, f func(line []byte) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			if failed := f(line); failed != nil {
				return failed
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// LineWriter writes whole lines from several goroutines. If an output ends in the middle of a line,
// LineWriter writes this fragment. Every later write fails, because it would continue the fragment.
type LineWriter struct {
	mu    sync.Mutex
	w     io.Writer
	ended bool
}

// NewLineWriter returns a LineWriter that writes to w.
func NewLineWriter(w io.Writer) *LineWriter { return &LineWriter{w: w} }

// WriteLine writes a line. If the line has no line break, every later write fails.
func (l *LineWriter) WriteLine(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return io.ErrClosedPipe
	}
	l.ended = !bytes.HasSuffix(line, []byte("\n"))
	_, err := l.w.Write(line)
	return err
}
