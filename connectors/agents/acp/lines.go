package acp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// eachLine calls f with every line of r, including its line break, and with the unfinished last line
// if there is one. It does not limit the length of a line, because a truncated line could hide a
// permission request. f may keep the line. eachLine returns the first error of f or of reading r.
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

// lineWriter writes whole lines from several goroutines. If a peer's output ends in the middle of a
// line, lineWriter writes that fragment, and every later write fails: the next line would become part
// of the fragment.
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
