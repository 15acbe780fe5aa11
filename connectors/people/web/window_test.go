package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/nodbus/nod/schemas"
)

// A client that subscribes with a limit (a window) gets the oldest requests and the number of the
// requests beyond the limit. It gets further requests when more than half of its window is free, and a
// new request only if the window has room.
func TestASubscriptionWithALimitGetsAWindow(t *testing.T) {
	t.Parallel()
	r := start(t)
	for i := range 7 {
		r.asks("S", fmt.Sprint("r", i), `{}`)
	}
	s := r.opens("ann")
	r.listed(s, "r0", "r1", "r2", "r3", "r4", "r5", "r6")
	requested := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			m := s.next()
			r.Equal("session.permission.requested", m.Action)
			r.Equal(id, m.Payload.PendingID)
			r.False(m.Payload.New, id)
		}
	}
	unlisted := func(n int) {
		t.Helper()
		m := s.next()
		r.Equal("inbox.count", m.Action)
		r.Equal(n, m.Payload.Unlisted)
	}
	ends := func(id string) {
		t.Helper()
		r.terminal("bob", "S", id, "reject_once")
		m := s.next()
		r.Equal("session.permission.resolved", m.Action)
		r.Equal(id, m.Payload.PendingID)
	}

	reply, before := s.gets("inbox.subscribe", fields{"limit": 3})
	r.Empty(before)
	r.Equal(3, reply.Payload.Pending)
	r.Equal(4, reply.Payload.Unlisted)
	requested("r0", "r1", "r2")
	r.asks("S", "r7", `{}`)
	unlisted(5)
	ends("r0") // a third of the window is free
	ends("r1") // two thirds of the window are free
	unlisted(3)
	requested("r3", "r4")
	r.terminal("bob", "S", "r7", "reject_once") // end a request that the client has not got
	unlisted(2)

	reply, before = s.gets("inbox.subscribe", fields{"limit": 6})
	r.Empty(before)
	r.Equal(2, reply.Payload.Pending)
	r.Zero(reply.Payload.Unlisted)
	requested("r5", "r6")
	r.asks("S", "r8", `{}`)
	m := s.next()
	r.Equal("r8", m.Payload.PendingID)
	r.True(m.Payload.New)
}

// If a request ends before the gateway has read it from nod, the client still gets the request once as
// pending and then once as ended.
func TestARequestThatEndsWhileItIsReadIsStillSentOnce(t *testing.T) {
	t.Parallel()
	r, s := startStandIn(t)
	p := identical("slow", 1)
	s.shows(p)
	s.mu.Lock() // the stand-in does not reply to Show while the test holds its lock
	c := r.opens("ann")
	reply, _ := c.gets("inbox.subscribe", nil)
	r.Equal(1, reply.Payload.Pending)
	ended := p
	ended.Revision++
	ended.Decision = &schemas.Decision{Outcome: schemas.Withdrawn, By: schemas.By{Kind: schemas.ByAgent}, DecidedAt: time.Now().UTC()}
	s.web.Show(ended)
	m := c.next()
	r.Equal("session.permission.requested", m.Action)
	r.Equal("slow", m.Payload.PendingID)
	m = c.next()
	r.Equal("session.permission.resolved", m.Action)
	s.mu.Unlock()
	later := identical("later", 1)
	s.shows(later)
	r.Equal("later", c.next().Payload.PendingID, "the old version was sent after the end")
}

// If the gateway cannot read the pending requests from nod, the gateway disconnects the client, so that
// the client connects again.
func TestAClientWhoseRequestsCannotBeReadIsDisconnected(t *testing.T) {
	t.Parallel()
	r, s := startStandIn(t)
	s.shows(identical("one", 1))
	s.mu.Lock()
	s.noShow = schemas.Errorf(schemas.CodeUnavailable, "no engine replies")
	s.mu.Unlock()
	c := r.opens("ann")
	c.asksFor("inbox.subscribe", nil)
	var err error
	for err == nil { // the reply to the subscription may arrive before the end of the connection
		_, err = c.reads()
	}
	r.Equal(websocket.StatusTryAgainLater, websocket.CloseStatus(err), "%v", err)
}

// The page lists a thousand requests and shows the number of the remaining requests. The user can make it
// list more of them.
func TestThePageListsAWindow(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestASubscriptionWithALimitGetsAWindow is the same without a browser")
	r, s := startStandIn(t)
	const n = 1005
	for i := range n {
		s.shows(identical(fmt.Sprint("r", i), 1))
	}
	p := r.visits("ann", 1024, 768)
	rows := "document.querySelectorAll('.rows li[data-id]').length"
	p.sees(rows + " === 1000")
	p.sees("document.querySelector('.total').innerText === '1005 requests wait. 1000 of them are listed.'")
	p.Equal("(1005) nod", value[string](p, "document.title"))
	p.does(script("document.querySelector('.more').click()"))
	p.sees(rows + " === 1005")
	p.sees("document.querySelector('.total').innerText === '1005 requests wait.'")
	p.True(value[bool](p, "document.querySelector('.more').hidden"))
}
