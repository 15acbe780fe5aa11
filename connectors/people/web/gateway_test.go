package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

type fields = map[string]any

func TestSubscribingAnswersFirstThenSendsWhatIsPendingInOrder(t *testing.T) {
	t.Parallel()
	r := start(t)
	var ids []string
	for i := range 20 {
		id := fmt.Sprintf("r%d", (i*7)%20) // the order of arrival differs from the order of the ids
		r.asks("S", id, `{"to":"production"}`)
		ids = append(ids, id)
	}
	r.asks("other", "elsewhere", `{}`)
	s := r.opens("ann")
	r.listed(s, append([]string{"elsewhere"}, ids...)...)

	answer, before := s.gets("session.subscribe", fields{"session_id": "S"})
	r.Empty(before)
	r.True(answer.Payload.Success)
	r.Equal(20, answer.Payload.Pending)
	for i, id := range ids {
		m := s.next()
		r.Equal("notification", m.Type)
		r.Equal("session.permission.requested", m.Action)
		r.Equal(id, m.Payload.PendingID)
		r.Equal("S", m.Payload.SessionID)
		if i == 0 {
			r.Equal("Use Deploy", m.Payload.Title)
			r.JSONEq(`{"call":"`+id+`","to":"production"}`, string(m.Payload.Details))
			r.Equal(schemas.DefaultOptions(), m.Payload.Options)
			r.Len(m.Payload.Digest, 64)
			r.WithinDuration(time.Now(), m.Payload.ServerTime, time.Minute)
			r.True(m.Payload.Deadline.After(m.Payload.ServerTime))
			r.False(m.Payload.Created.IsZero())
		}
	}
	// If a client subscribes to a session and then to the inbox, it gets only the requests that it has
	// not got through the first subscription.
	inbox, _ := s.gets("inbox.subscribe", nil)
	r.Equal(1, inbox.Payload.Pending)
	r.Equal("elsewhere", s.next().Payload.PendingID)
}

func TestAnAnswerDecidesAndReachesAllSubscribers(t *testing.T) {
	t.Parallel()
	r := start(t)
	ann, bob := r.opens("ann"), r.opens("bob")
	for _, s := range []*socket{ann, bob} {
		s.gets("inbox.subscribe", nil)
	}
	request := r.asks("S", "one", `{}`)
	shown := ann.until("session.permission.requested", "one")
	bob.until("session.permission.requested", "one")

	answer, _ := ann.gets("permission.respond", fields{
		"session_id": "S", "pending_id": "one", "option_id": "reject_once", "digest": shown.Payload.Digest, "message": "use make clean",
	})
	r.Equal("response", answer.Type, answer.Payload.Message)
	r.True(answer.Payload.Success)
	d, err := request.Await(r.ctx)
	r.NoError(err)
	r.Equal(schemas.Denied, d.Outcome)
	r.Equal("use make clean", d.Message)
	r.Equal(schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "web"}, d.By)
	r.Equal(d.DecisionID, answer.Payload.Decision.DecisionID)

	heard := bob.until("session.permission.resolved", "one")
	r.Equal(d.DecisionID, heard.Payload.Decision.DecisionID)
	r.Regexp(`Denied · Ann · \d\d:\d\d UTC · web`, heard.Payload.Text)
	late := bob.refused(schemas.CodeConflict, "permission.respond", fields{"session_id": "S", "pending_id": "one", "option_id": "allow_once"})
	r.Contains(late.Payload.Text, "Nothing changed: Ann denied this")
}

func TestInvalidAnswersAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.opens("ann")
	s.gets("inbox.subscribe", nil)
	r.asks("S", "one", `{}`)
	r.asks("T", "two", `{}`)
	s.until("session.permission.requested", "two")
	for _, c := range []struct {
		action  string
		payload fields
		code    schemas.Code
		message string
	}{
		{"permission.respond", fields{"pending_id": "one", "option_id": "allow_once"}, schemas.CodeValidation, "session_id is required"},
		{"permission.respond", fields{"session_id": "S", "option_id": "allow_once"}, schemas.CodeValidation, "pending_id is required"},
		{"permission.respond", fields{"session_id": "S", "pending_id": "one"}, schemas.CodeValidation, "option_id is required when not cancelled"},
		{"permission.respond", fields{"session_id": "S", "pending_id": ">", "option_id": "allow_once"}, schemas.CodeValidation, "pending_id is not an id"},
		{"permission.respond", fields{"session_id": "S.one", "pending_id": "one", "option_id": "allow_once"}, schemas.CodeValidation, "session_id is not an id"},
		{"permission.respond", fields{"session_id": "S", "pending_id": "one", "option_id": "yes"}, schemas.CodeValidation, "not one of the options"},
		{"permission.respond", fields{"session_id": "S", "pending_id": "one", "option_id": "allow_once", "digest": strings.Repeat("a", 64)}, schemas.CodeStale, "look again"},
		{"permission.respond", fields{"session_id": "S", "pending_id": 7, "option_id": "allow_once"}, schemas.CodeBadRequest, "payload"},
		{"permission.respond", fields{"session_id": "T", "pending_id": "one", "option_id": "allow_once"}, schemas.CodeNotFound, ""}, // request "one" is in session S, not T
		{"permission.respond", fields{"session_id": "S", "pending_id": "on", "option_id": "allow_once"}, schemas.CodeNotFound, ""},
		{"session.subscribe", fields{}, schemas.CodeValidation, "session_id is required"},
		{"session.subscribe", fields{"session_id": "*"}, schemas.CodeValidation, "session_id is not an id"},
		{"session.lock.acquire", nil, schemas.CodeValidation, "session_id is required"},
		{"session.delete", nil, schemas.CodeUnknownAction, "session.delete"},
		{"", nil, schemas.CodeUnknownAction, "unknown action"},
	} {
		m := s.refused(c.code, c.action, c.payload)
		r.Contains(m.Payload.Message, c.message, "%v", c)
	}
	r.listed(s, "one", "two")
}

func TestInvalidFramesAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, text := range []string{`{`, `[]`, `"x"`, `{"id":7,"type":"request","action":"inbox.subscribe"}`, `{"type":"response","action":"inbox.subscribe"}`, "\x00"} {
		s := r.opens("ann")
		s.sends(text)
		m := s.next()
		r.Equal("error", m.Type, text)
		r.Equal(schemas.CodeBadRequest, m.Payload.Code, text)
		answer, _ := s.gets("inbox.subscribe", nil) // the connection stays open after the error
		r.True(answer.Payload.Success)
	}
	binary := r.opens("bob")
	r.NoError(binary.conn.Write(r.ctx, websocket.MessageBinary, []byte("{}")))
	_, err := binary.reads()
	r.Equal(websocket.StatusUnsupportedData, websocket.CloseStatus(err), err)
	long := r.opens("bob")
	_ = long.conn.Write(r.ctx, websocket.MessageText, []byte(strings.Repeat(" ", 1<<20))) // Write may fail, because the server closes the connection at the same time
	_, err = long.reads()
	r.Error(err)
}

func TestSocketsNeedALoginAndTheOwnOrigin(t *testing.T) {
	t.Parallel()
	r := start(t)
	session := r.login("ann")
	for name, c := range map[string]struct {
		change []func(*http.Request)
		status int
	}{
		"no cookie":      {nil, http.StatusUnauthorized},
		"foreign origin": {[]func(*http.Request){with(session), header("Origin", "https://evil.example")}, http.StatusForbidden},
		"null origin":    {[]func(*http.Request){with(session), header("Origin", "null")}, http.StatusForbidden},
		"other port":     {[]func(*http.Request){with(session), header("Origin", "http://127.0.0.1:1")}, http.StatusForbidden},
	} {
		_, resp, err := r.dials(c.change...)
		r.Error(err, name)
		r.Equal(c.status, resp.StatusCode, name)
	}
	s, _, err := r.dials(with(session), header("Origin", r.web.URL()))
	r.NoError(err)
	_ = s.conn.CloseNow()
}

func TestAnInputLockHasOneHolder(t *testing.T) {
	t.Parallel()
	r := start(t)
	ann, bob := r.opens("ann"), r.opens("bob")
	lock, _ := ann.gets("session.lock.acquire", fields{"session_id": "S"})
	r.True(lock.Payload.Granted)
	again, _ := ann.gets("session.lock.acquire", fields{"session_id": "S"})
	r.True(again.Payload.Granted)
	other, _ := bob.gets("session.lock.acquire", fields{"session_id": "S"})
	r.False(other.Payload.Granted)
	r.Equal("Ann", other.Payload.Holder)
	bob.gets("session.lock.release", fields{"session_id": "S"}) // Bob's action must not release Ann's lock
	other, _ = bob.gets("session.lock.acquire", fields{"session_id": "S"})
	r.False(other.Payload.Granted)

	r.NoError(ann.conn.Close(websocket.StatusNormalClosure, "")) // the end of Ann's connection releases her lock
	r.Eventually(func() bool {
		lock, _ := bob.gets("session.lock.acquire", fields{"session_id": "S"})
		return lock.Payload.Granted
	}, 20*time.Second, 20*time.Millisecond)
}

// A connection with the maximum number of locks gets no further lock. It can still renew and release
// its locks.
func TestAConnectionHoldsAtMost256Locks(t *testing.T) {
	t.Parallel()
	r := start(t)
	ann := r.opens("ann")
	session := func(i int) fields { return fields{"session_id": fmt.Sprint("S", i)} }
	for i := range 256 {
		ann.gets("session.lock.acquire", session(i))
	}
	ann.refused(schemas.CodeValidation, "session.lock.acquire", session(256))
	again, _ := ann.gets("session.lock.acquire", session(0))
	r.True(again.Payload.Granted)
	released, _ := ann.gets("session.lock.release", session(1))
	r.Equal("response", released.Type)
	next, _ := ann.gets("session.lock.acquire", session(256))
	r.True(next.Payload.Granted)
}

// The gateway gives no lock to a user who must not answer.
func TestALockNeedsAnApproverOfTheSession(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.asks("S", "one", `{}`)
	owner := connector.NewOwner(r.connect(roles.ID{Role: roles.Owner}), web.Name)
	_, err := owner.ApplySettings(r.ctx, []byte(`{"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "web", "user_id": "ann"}]},
		{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}], "for": {"agents": ["ben"]}}]}}`))
	r.NoError(err)
	bob := r.opens("bob")
	bob.refused(schemas.CodeForbidden, "session.lock.acquire", fields{"session_id": "S"})
	lock, _ := r.opens("ann").gets("session.lock.acquire", fields{"session_id": "S"})
	r.True(lock.Payload.Granted)
}

// If a rule decides a request, the gateway sends the decision to subscribers of the session, but not
// to subscribers of the inbox.
func TestDecisionsOfRulesReachSubscribersOfTheSession(t *testing.T) {
	t.Parallel()
	r := start(t)
	session, inbox := r.opens("ann"), r.opens("bob")
	session.gets("session.subscribe", fields{"session_id": "S"})
	inbox.gets("inbox.subscribe", nil)
	_, err := r.asker.Submit(r.ctx, shell("S", "ruled", "ls -l"))
	r.NoError(err)
	m := session.until("session.permission.decided", "ruled")
	r.Contains(m.Payload.Text, "the built-in rules")
	r.Equal(schemas.ByPolicy, m.Payload.Decision.By.Kind)
	r.asks("S", "asked", `{}`)
	r.Equal("asked", inbox.next().Payload.PendingID)
	r.Equal("asked", session.next().Payload.PendingID)
}

func TestUnsubscribingEndsASessionsStream(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.opens("ann")
	s.gets("session.subscribe", fields{"session_id": "S"})
	r.asks("S", "one", `{}`)
	s.until("session.permission.requested", "one")
	s.gets("session.unsubscribe", fields{"session_id": "S"})
	r.asks("S", "two", `{}`)
	r.asks("T", "three", `{}`)
	r.listed(s, "one", "two", "three")
	answer, before := s.gets("session.subscribe", fields{"session_id": "S"})
	r.Empty(before)
	r.Equal(2, answer.Payload.Pending)
	r.Equal("one", s.next().Payload.PendingID)
	r.Equal("two", s.next().Payload.PendingID)
}

func TestListsComeInPages(t *testing.T) {
	t.Parallel()
	r := start(t)
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprint("r", 9-i))
		r.asks("S", want[i], `{}`)
	}
	s := r.opens("ann")
	r.listed(s, append([]string{}, want...)...)
	var got []string
	for after := ""; ; {
		page, _ := s.gets("permissions.list", fields{"session_id": "S", "limit": 3, "after": after})
		for _, p := range page.Payload.Permissions {
			got = append(got, p.PendingID)
		}
		if after = page.Payload.Next; after == "" {
			break
		}
	}
	r.Equal(want, got)
}

// This test runs alone. On a busy machine, the replies would take longer than the 30 s after which the
// server disconnects a client that reads nothing.
func TestAClientThatDoesNotReadDelaysNoOther(t *testing.T) {
	r := start(t)
	slow, quick := r.opens("ann"), r.opens("bob")
	var big []string
	for i := range 4 {
		big = append(big, fmt.Sprint("big", i))
		r.asks("S", big[i], `{"text":"`+strings.Repeat("x", 16<<10)+`"}`)
	}
	r.listed(quick, big...)
	slow.gets("inbox.subscribe", nil)
	for range 240 { // enough messages to fill the buffers of the socket, but fewer than maxBacklog
		slow.asksFor("permissions.list", nil)
	}
	r.Eventually(func() bool { return r.web.Queued() > 200 }, 25*time.Second, 10*time.Millisecond) // the socket has taken fewer than 40 of the replies
	quick.gets("inbox.subscribe", nil)
	const n = 60 // few enough to be sent within 30 s; a client that reads nothing for 30 s is disconnected without a reason
	poured := r.pours(n, `{}`)
	told := map[string]bool{}
	for len(told) < len(big)+n {
		m := quick.next()
		r.False(told[m.Payload.PendingID], "twice")
		told[m.Payload.PendingID] = true
	}
	poured()
	var err error
	for err == nil {
		_, err = slow.reads()
	}
	var closed websocket.CloseError
	r.True(errors.As(err, &closed), "%v", err)
	r.Equal(websocket.StatusPolicyViolation, closed.Code)
	r.Contains(closed.Reason, "too slow")
}

// long is the flag -long, with which some tests take more time to test more. The script .ci/run sets the
// flag.
var long = flag.Bool("long", false, "run the tests in their long form")

// onlyLong skips a test without -long. The reason names the shorter test of the same code.
func onlyLong(t *testing.T, why string) {
	t.Helper()
	if !*long {
		t.Skip("left out: " + why + "; -long runs it, as in .ci/run")
	}
}

// Clients connect and disconnect while many requests arrive and are decided. The gateway sends each
// client each request once as pending, and then once as ended.
func TestClientsGetEachRequestOnceUnderLoad(t *testing.T) {
	t.Parallel()
	n, clients := 100, 4
	if *long {
		n, clients = 1000, 20
	} else {
		t.Log("100 requests and 4 clients; -long runs 1000 and 20")
	}
	r := start(t)
	session := r.login("ann")
	ctx, stop := context.WithCancel(r.ctx)
	var watchers sync.WaitGroup
	turns := make(chan struct{}, clients)
	for i := range clients {
		turns <- struct{}{}
		watchers.Go(func() {
			for range turns {
				r.watches(ctx, session, 10+13*i)
			}
		})
	}
	all := r.opens("bob")
	all.gets("inbox.subscribe", nil)
	answers := make(chan fields, n)
	for range 4 { // four clients, because the rate limit of a single client is too low for all answers
		s := r.opens("bob")
		watchers.Go(func() {
			for a := range answers {
				reply, _ := s.gets("permission.respond", a)
				r.True(reply.Payload.Success, reply.Payload.Message)
			}
		})
	}
	poured := r.pours(n, `{}`)
	requested, resolved := map[string]bool{}, map[string]bool{}
	for len(resolved) < n {
		m := all.next()
		id := m.Payload.PendingID
		switch m.Action {
		case "session.permission.requested":
			r.False(requested[id], "%s twice", id)
			requested[id] = true
			answers <- fields{"session_id": m.Payload.SessionID, "pending_id": id, "option_id": "allow_once"}
		case "session.permission.resolved":
			r.True(requested[id], "%s ended before it began", id)
			r.False(resolved[id], "%s ended twice", id)
			resolved[id] = true
			select { // after each ended request, one of the waiting clients may connect again
			case turns <- struct{}{}:
			default:
			}
		}
	}
	r.Len(requested, n)
	poured()
	stop()
	close(turns)
	close(answers)
	watchers.Wait()
}

// watches subscribes, reads this number of messages, and closes the connection.
func (r *rig) watches(ctx context.Context, session *http.Cookie, messages int) {
	s, resp, err := r.dials(with(session))
	if err != nil {
		if resp == nil || resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
			r.NoError(err)
		}
		return
	}
	defer func() { _ = s.conn.CloseNow() }()
	s.asksFor("inbox.subscribe", nil)
	state := map[string]string{}
	for i := range messages {
		read, cancel := context.WithCancel(ctx)
		_, data, err := s.conn.Read(read)
		cancel()
		if err != nil {
			return // the read fails because the test is over
		}
		var m said
		r.NoError(json.Unmarshal(data, &m))
		id := m.Payload.PendingID
		switch {
		case i == 0:
			r.Equal("response", m.Type)
		case m.Action == "session.permission.requested":
			r.Empty(state[id], "%s twice", id)
			state[id] = "requested"
		case m.Action == "session.permission.resolved":
			r.Equal("requested", state[id], id)
			state[id] = "resolved"
		}
	}
}

func TestADecisionMadeElsewhereReachesSubscribers(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.opens("ann")
	s.gets("inbox.subscribe", nil)
	r.asks("S", "one", `{}`)
	s.until("session.permission.requested", "one")
	r.terminal("bob", "S", "one", "allow_once")
	m := s.until("session.permission.resolved", "one")
	r.Contains(m.Payload.Text, "Allowed once · Bob")
	r.Contains(m.Payload.Text, "terminal")
}

// If a user is removed from the settings, the gateway disconnects the user's clients. Until then the
// gateway regularly sends these clients the broker's time.
func TestARemovedApproverIsDisconnected(t *testing.T) {
	t.Parallel()
	r := start(t)
	desk := connector.NewDesk(r.connect(roles.ConnectorID(web.Name)), web.Name)
	s, err := web.Open(web.Options{
		DataDir: t.TempDir(), Listen: httpserve.Listen{Addr: "127.0.0.1:0"}, Desk: desk, Registry: desk, LoginCodes: desk, Records: desk, Check: 20 * time.Millisecond, Log: quiet(),
	})
	r.NoError(err)
	t.Cleanup(func() { r.NoError(s.Stop(context.Background())) })
	r.web = &embed.Web{Server: s}
	bob := r.opens("bob")
	_, data, err := bob.conn.Read(r.ctx)
	r.NoError(err)
	r.Regexp(`"action":"server.time","payload":{"server_time":"[^"]+","reachable":true,"frozen":\[\]}`, string(data))

	owner := connector.NewOwner(r.connect(roles.ID{Role: roles.Owner}), web.Name)
	_, err = owner.ApplySettings(r.ctx, []byte(`{"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "web", "user_id": "ann"}]}]}}`))
	r.NoError(err)
	for err == nil {
		_, err = bob.reads()
	}
	r.Equal(websocket.StatusPolicyViolation, websocket.CloseStatus(err), err)
}

func TestTwoInboxesSeeTheSame(t *testing.T) {
	t.Parallel()
	r := start(t)
	first := r.opens("ann")
	second := r.another().opens("bob")
	for _, s := range []*socket{first, second} {
		s.gets("inbox.subscribe", nil)
	}
	r.asks("S", "one", `{}`)
	first.until("session.permission.requested", "one")
	second.until("session.permission.requested", "one")
	answer, _ := second.gets("permission.respond", fields{"session_id": "S", "pending_id": "one", "option_id": "allow_once"})
	r.True(answer.Payload.Success, answer.Payload.Message)
	first.until("session.permission.resolved", "one")
}
