// Package testlog collects the output of programs and loggers, for tests.
package testlog

import (
	"bytes"
	"sync"
)

// Buffer collects all text that is written to it. The zero value is empty. It is safe for concurrent
// use.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns all text that was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
