package chaos

import (
	"errors"
	"net"
	"sync"
	"time"
)

// way is the network path from one kind of client to one server.
type way interface {
	addr() string
	// sever cuts the path: nothing arrives in either direction, and neither side is
	// notified. mend ends the cut.
	sever() error
	mend() error
	slow(time.Duration) // delays each packet by this much
	close() error
}

// link is a network path through a TCP proxy on loopback, in front of one server and for
// one kind of client. A cut link loses nothing: bytes wait in it, as they wait in a
// sender's kernel while packets are lost. Safe for concurrent use.
type link struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	cut   time.Time // start of the cut; zero if the link is whole
	delay time.Duration
	whole chan struct{} // closed while the link is whole
	wires map[*wire]struct{}
}

// wire is one connection through a link.
type wire struct {
	link  *link
	ends  [2]net.Conn
	stuck time.Time // the wire stays silent until this time, even if its link is whole
	once  sync.Once
}

// backoff returns how long a connection stays silent after a cut of this duration has ended.
// TCP retransmits after 200 ms and doubles the wait each time, so the silence may last as long
// as the cut did.
func backoff(cut time.Duration) time.Duration {
	const first = 200 * time.Millisecond
	again := first
	for again < cut {
		again = 2*again + first
	}
	return again - cut
}

func newLink(target string) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, target: target, whole: make(chan struct{}), wires: map[*wire]struct{}{}}
	close(l.whole)
	go l.accept()
	return l, nil
}

func (l *link) addr() string { return l.listener.Addr().String() }

func (l *link) accept() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return // the listener is closed
		}
		go l.connect(from)
	}
}

// connect waits until the link is whole, connects to the server and carries the bytes. If
// the server cannot be reached, it closes the client's connection.
func (l *link) connect(from net.Conn) {
	l.wait(nil)
	to, err := net.DialTimeout("tcp", l.target, 5*time.Second)
	if err != nil {
		_ = from.Close() // the client tries again
		return
	}
	w := &wire{link: l, ends: [2]net.Conn{from, to}}
	l.mu.Lock()
	l.wires[w] = struct{}{}
	l.mu.Unlock()
	go w.carry(from, to)
	go w.carry(to, from)
}

// wait blocks while the link is cut, then while the wire is stuck, and then for the link's
// delay. w may be nil.
func (l *link) wait(w *wire) {
	for {
		l.mu.Lock()
		whole, delay := l.whole, l.delay
		var stuck time.Time
		if w != nil {
			stuck = w.stuck
		}
		l.mu.Unlock()
		select {
		case <-whole:
		default:
			<-whole
			continue
		}
		if left := time.Until(stuck); left > 0 {
			time.Sleep(left)
			continue
		}
		time.Sleep(delay)
		return
	}
}

func (w *wire) carry(from, to net.Conn) {
	defer w.close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err == nil || n > 0 {
			w.link.wait(w)
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			w.link.wait(w) // a cut delays the close too, which TCP sends as a packet
			return
		}
	}
}

func (w *wire) close() {
	w.once.Do(func() {
		_, _ = w.ends[0].Close(), w.ends[1].Close() // Close fails if the connection is closed already
		w.link.mu.Lock()
		delete(w.link.wires, w)
		w.link.mu.Unlock()
	})
}

// sever cuts the link.
func (l *link) sever() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut.IsZero() {
		l.cut, l.whole = time.Now(), make(chan struct{})
	}
	return nil
}

// mend makes the link whole. Open connections stay silent until TCP would retransmit.
func (l *link) mend() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut.IsZero() {
		return nil
	}
	silent := backoff(time.Since(l.cut))
	for w := range l.wires {
		w.stuck = time.Now().Add(silent)
	}
	l.cut = time.Time{}
	close(l.whole)
	return nil
}

// slow delays every packet by d; 0 ends the delay.
func (l *link) slow(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = d
}

func (l *link) close() error {
	err := errors.Join(l.listener.Close(), l.mend())
	l.mu.Lock()
	wires := l.wires
	l.wires = map[*wire]struct{}{}
	l.mu.Unlock()
	for w := range wires {
		w.once.Do(func() { err = errors.Join(err, ignoreClosed(w.ends[0].Close()), ignoreClosed(w.ends[1].Close())) })
	}
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
