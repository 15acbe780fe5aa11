// Package relay contains code for the programs that nod puts between a host and its agent or server.
// It handles lines, JSON-RPC ids, and the process of the agent or server.
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

// EachLine calls f with every line of r, including its line break, and with the unfinished last line
// if there is one. It does not limit the length of a line, because a truncated line could hide a
// request for permission. f may keep the line. EachLine returns the first error of f or of reading r.
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

// LineWriter writes whole lines from several goroutines. If a peer's output ends in the middle of a
// line, LineWriter writes this fragment. Every later write fails, because the next line would become
// a part of the fragment.
type LineWriter struct {
	mu    sync.Mutex
	w     io.Writer
	ended bool
}

// NewLineWriter returns a LineWriter that writes to w.
func NewLineWriter(w io.Writer) *LineWriter { return &LineWriter{w: w} }

// WriteLine writes a line. After a line without a line break, every later write fails.
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
