package acp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// eachLine calls f with every line of r, its end and all, and with what is left
// of one at the end of r. There is no longest line: what is not read whole could
// be a request that nobody looked at. A line may be kept by f.
func eachLine(r io.Reader, f func(line []byte) error) error {
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

// lineWriter writes whole lines from several goroutines. After half a line,
// which ends what a peer said, it writes nothing: that would become part of it.
type lineWriter struct {
	mu    sync.Mutex
	w     io.Writer
	ended bool
}

func (l *lineWriter) write(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return io.ErrClosedPipe
	}
	l.ended = !bytes.HasSuffix(line, []byte("\n"))
	_, err := l.w.Write(line)
	return err
}
