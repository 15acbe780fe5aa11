package rig

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
)

// Wire is a TCP proxy between a client and the server. It can delay messages of the server, lose messages of
// the client, and break all connections.
type Wire struct {
	URL string

	mu     sync.Mutex
	free   *sync.Cond
	held   bool
	marker []byte   // the wire delays the server's messages when the client has sent these bytes
	lost   [][]byte // the wire loses the client's messages whose subject contains one of the texts in this field
	once   bool     // true if the wire loses only the next message whose subject contains such a text
	heard  chan struct{}
	conns  []net.Conn
}

// Wire starts a proxy to the server. The proxy ends with the test.
func (e *Env) Wire() *Wire {
	e.T.Helper()
	at, err := url.Parse(e.Server.URL())
	e.NoError(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	e.NoError(err)
	w := &Wire{URL: "nats://" + l.Addr().String()}
	w.free = sync.NewCond(&w.mu)
	e.Wires = append(e.Wires, func() { _ = l.Close(); w.Cut() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", at.Host)
			if err != nil {
				_ = client.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, client, server)
			w.mu.Unlock()
			go carry(client, server, w.listen)
			go carry(server, client, w.wait)
		}
	}()
	return w
}

// The function carry copies bytes from one connection to another until one of the two closes. Before each
// write it calls the function before, which may wait or change the bytes.
func carry(from, to net.Conn, before func([]byte)) {
	defer from.Close()
	defer to.Close()
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if err != nil {
			return
		}
		before(piece[:n])
		if _, err := to.Write(piece[:n]); err != nil {
			return
		}
	}
}

func (w *Wire) listen(said []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.marker != nil && bytes.Contains(said, w.marker) {
		w.held, w.marker = true, nil
		close(w.heard)
	}
	for _, marker := range w.lost {
		for at := bytes.Index(said, marker); at >= 0; at = bytes.Index(said, marker) {
			copy(said[at:], bytes.Repeat([]byte("-"), len(marker)))
			if w.once {
				w.lost = nil
				break
			}
		}
	}
}

func (w *Wire) wait([]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.held {
		w.free.Wait()
	}
}

// HoldOn returns at once. When the client sends the text marker, the wire closes the Go channel heard. It
// then delays the server's messages until Release or Cut.
func (w *Wire) HoldOn(marker string) (heard <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marker, w.heard = []byte(marker), make(chan struct{})
	return w.heard
}

// Lose loses the client's next message whose subject contains the text marker. It overwrites this text, so
// that the message goes to another subject.
func (w *Wire) Lose(marker string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost, w.once = [][]byte{[]byte(marker)}, true
}

// LoseAll loses each further message of the client whose subject contains one of the markers. A call without
// markers ends the loss.
func (w *Wire) LoseAll(markers ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost, w.once = nil, false
	for _, m := range markers {
		w.lost = append(w.lost, []byte(m))
	}
}

// HasLost reports whether the wire has lost the message that Lose names.
func (w *Wire) HasLost() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost == nil
}

// Hold delays all further messages of the server.
func (w *Wire) Hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = true
}

// Release sends the delayed messages, and ends the delay.
func (w *Wire) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = false
	w.free.Broadcast()
}

// Cut breaks all connections, and drops the delayed messages.
func (w *Wire) Cut() {
	w.mu.Lock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
	w.mu.Unlock()
	w.Release()
}

// AskedAgain counts the Await messages that agents send from now on. The returned function returns the count.
func (e *Env) AskedAgain() func() int64 {
	e.T.Helper()
	var n atomic.Int64
	_, err := e.Conn(roles.ID{Role: roles.Owner}).Subscribe("nod.v1.await.>", func(bus.Message) { n.Add(1) })
	e.NoError(err)
	e.NoError(e.Conn(roles.ID{Role: roles.Owner}).Flush(e.Ctx))
	return n.Load
}
