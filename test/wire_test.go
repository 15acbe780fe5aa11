package test

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// wire is a TCP proxy between a client and the server. It can hold back the server's
// messages, lose the client's, and break all connections.
type wire struct {
	url string

	mu     sync.Mutex
	free   *sync.Cond
	held   bool
	marker []byte   // holds once the client has sent this
	lost   [][]byte // client messages that contain one of these are lost
	once   bool     // lose one message only
	heard  chan struct{}
	conns  []net.Conn
}

func (e *env) wire() *wire {
	e.t.Helper()
	at, err := url.Parse(e.server.URL())
	e.NoError(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	e.NoError(err)
	w := &wire{url: "nats://" + l.Addr().String()}
	w.free = sync.NewCond(&w.mu)
	e.wires = append(e.wires, func() { _ = l.Close(); w.cut() })
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

// carry copies one way until either end closes. It calls before ahead of each write.
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

func (w *wire) listen(said []byte) {
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

func (w *wire) wait([]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.held {
		w.free.Wait()
	}
}

// holdOn waits for the client to send marker, closes heard, and then holds back the
// server's messages until the wire is released or cut.
func (w *wire) holdOn(marker string) (heard <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marker, w.heard = []byte(marker), make(chan struct{})
	return w.heard
}

// lose loses the next client message whose subject contains marker.
func (w *wire) lose(marker string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost, w.once = [][]byte{[]byte(marker)}, true
}

// loseAll loses every client message whose subject contains one of the markers. Without
// markers it loses no more messages.
func (w *wire) loseAll(markers ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost, w.once = nil, false
	for _, m := range markers {
		w.lost = append(w.lost, []byte(m))
	}
}

// hasLost reports whether the message given to lose was lost.
func (w *wire) hasLost() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost == nil
}

// hold holds back the server's messages from now on.
func (w *wire) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = true
}

func (w *wire) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = false
	w.free.Broadcast()
}

// cut breaks all connections and drops the messages held back.
func (w *wire) cut() {
	w.mu.Lock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
	w.mu.Unlock()
	w.release()
}

// An answer arrives before the asker has read its receipt.
func TestAnAnswerBeforeTheReceiptWasReadIsNotLost(t *testing.T) {
	t.Parallel()
	env := start(t)
	again := env.askedAgain()
	wire := env.wire()
	conn := env.dial(roles.AgentID("ada"), wire.url)
	defer conn.Close()
	asker := bus.NewAsker(conn, "ada")
	defer asker.Close()

	heard := wire.holdOn("PUB nod.v1.request.ada.S.1 ")
	submitted := make(chan *bus.OpenRequest, 1)
	go func() {
		defer close(submitted)
		q, err := asker.Submit(env.ctx, deploy("S", "1"))
		if err != nil {
			t.Error(err)
			return
		}
		submitted <- q
	}()
	<-heard
	var pending []schemas.Prompt
	var err error
	env.soon("the request is pending", func() bool {
		pending, err = env.Ann().Pending(env.ctx, schemas.Query{})
		return err == nil && len(pending) == 1
	})
	env.Empty(submitted)
	d, err := env.Ann().Answer(env.ctx, schemas.Answer{
		SessionID: "S", PendingID: "1", Digest: pending[0].Digest, OptionID: "allow_once", From: schemas.From{UserID: "ann"},
	})
	env.NoError(err)
	env.soon("the outbox is idle", env.outboxIdle)
	wire.release()
	q := <-submitted
	env.NotNil(q)
	got, err := q.Await(env.ctx)
	env.NoError(err)
	env.Equal(d, got)
	env.Zero(again(), "the agent got the decision only by asking again, much later")
}

// The acknowledgement of a write is lost: the engine finds out whether it was stored.
func TestAWriteWhoseOutcomeIsUnknownIsFoundOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		marker string
		fresh  schemas.Request
		act    func(*env, *question) (schemas.Decision, error)
	}{
		// In a single call: the approver must not read in the meantime that it failed.
		"an answer": {"PUB $KV.pending_permissions.S.1 ", deploy("S", "1"), func(e *env, q *question) (d schemas.Decision, err error) {
			a := e.Ann().answer(q, "allow_once")
			a.Type = schemas.TypeAnswer
			data, err := schemas.Encode(a)
			e.NoError(err)
			reply, err := e.rawConn(roles.ConnectorID("terminal")).RequestWithContext(e.ctx, schemas.AnswerSubject("terminal", "S", "1"), data)
			e.NoError(err)
			return d, schemas.Decode(reply.Data, &d)
		}},
		"an ask": {"PUB $KV.pending_permissions.S.2 ", deploy("S", "1"), func(e *env, _ *question) (schemas.Decision, error) {
			return e.Ann().Allows(e.Agent("ada").Asks(deploy("S", "2"))), nil
		}},
		"an automatic decision": {"PUB nod.v1.log.S ", deploy("S", "1"), func(e *env, _ *question) (schemas.Decision, error) {
			return e.Agent("ada").Gets(lookup("S", "2")), nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := start(t, func(s *setup) { s.engines = 0 })
			wire := env.wire()
			store := env.dial(roles.ID{Role: roles.EngineStore}, wire.url)
			n := env.engine(engine.Options{Store: store, AckWait: time.Second})
			n.close = append(n.close, store.Close)
			_, err := n.ApplySettings(env.ctx, apart(everybody), "test")
			env.NoError(err)
			q := env.Agent("ada").Asks(c.fresh)
			env.soon("the outbox is idle", env.outboxIdle)
			before := env.writes()
			heard := wire.holdOn(c.marker)
			go func() {
				<-heard
				for env.ctx.Err() == nil && env.writes() == before { // until it is stored
				}
				wire.cut()
			}()
			d, err := c.act(env, q)
			env.NoError(err)
			env.Equal(schemas.Allowed, d.Outcome)
			env.soon("the outbox is idle", env.outboxIdle)
			if entry, err := env.store.Records.Get(env.ctx, schemas.Key(d.SessionID, d.PendingID)); err == nil {
				env.Equal(d, *entry.Record.Decision)
			}
		})
	}
}

// askedAgain returns a count of the await messages that agents have sent.
func (e *env) askedAgain() func() int64 {
	e.t.Helper()
	var n atomic.Int64
	_, err := e.conn(roles.ID{Role: roles.Owner}).Subscribe("nod.v1.await.>", func(bus.Message) { n.Add(1) })
	e.NoError(err)
	e.NoError(e.conn(roles.ID{Role: roles.Owner}).Flush(e.ctx))
	return n.Load
}

// writes counts all messages ever stored in the records' and the log's streams.
func (e *env) writes() (n uint64) {
	for _, name := range []string{"KV_pending_permissions", "permission_log"} {
		if stream, err := e.raw.Stream(e.ctx, name); err == nil {
			n += stream.CachedInfo().State.LastSeq
		}
	}
	return n
}
