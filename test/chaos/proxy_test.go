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
	// The method sever cuts the path in both directions. No end of a connection hears of the cut. The method
	// mend ends the cut.
	sever() error
	mend() error
	slow(time.Duration) // slow delays each packet by the given time
	close() error
}

// link is a network path from one kind of client to one server, through a TCP proxy on loopback. A cut
// link loses no bytes. The bytes wait in the proxy, as they wait in the sender's kernel if packets are
// lost. A link is safe for concurrent use.
type link struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	cut   time.Time // the time when the present cut began; zero if there is no cut
	delay time.Duration
	whole chan struct{} // a Go channel that is closed while there is no cut
	wires map[*wire]struct{}
}

type wire struct {
	link  *link
	ends  [2]net.Conn
	stuck time.Time // the time before which no bytes pass, even if there is no cut
	once  sync.Once
}

// backoff returns how long a connection stays silent after a cut of the given duration. TCP retransmits after
// 200 ms and then doubles each wait, so the silence may be as long as the cut.
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
			return // Accept failed, because the listener is closed
		}
		go l.connect(from)
	}
}

// connect waits until the link is not cut. It then connects to the server and forwards bytes. If it
// cannot connect to the server, it closes the client's connection.
func (l *link) connect(from net.Conn) {
	l.wait(nil)
	to, err := net.DialTimeout("tcp", l.target, 5*time.Second)
	if err != nil {
		_ = from.Close() // after the close, the client connects again
		return
	}
	w := &wire{link: l, ends: [2]net.Conn{from, to}}
	l.mu.Lock()
	l.wires[w] = struct{}{}
	l.mu.Unlock()
	go w.carry(from, to)
	go w.carry(to, from)
}

// The method wait waits until there is no cut and the time w.stuck has passed, and then for the link's delay.
// If w is nil, wait ignores this time.
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
			w.link.wait(w) // the link also delays the close of a connection, because TCP sends the close as a packet
			return
		}
	}
}

func (w *wire) close() {
	w.once.Do(func() {
		_, _ = w.ends[0].Close(), w.ends[1].Close() // Close fails if the connection is already closed
		w.link.mu.Lock()
		delete(w.link.wires, w)
		w.link.mu.Unlock()
	})
}

func (l *link) sever() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut.IsZero() {
		l.cut, l.whole = time.Now(), make(chan struct{})
	}
	return nil
}

// The method mend ends the cut. Open connections stay silent until TCP would retransmit.
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

// The method slow delays every packet by d. With 0 there is no delay.
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
