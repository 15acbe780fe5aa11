package opencode_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/opencode"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

var release = part{"bash", "running", `{"command":"make release","description":"Releases"}`}

// OpenCode may ask for a permission before it stores the call's input. The connector waits for the
// input, so that rules apply.
func TestACallIsStoredAfterItsPermission(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.unstored = 1
	r := newRig(t, f)
	r.run()
	f.runs("msg_1", release)
	f.asks(permits("per_1", "bash", "msg_1"))
	p := r.asked()
	r.says(nodtest.Allow())
	assert.Equal(t, "per_1 once", f.replied())
	assert.JSONEq(t, `{"command":"make release","description":"Releases","cwd":"/p"}`, string(p.Request.ActionDetails))
}

func TestOpenCodeGetsThePersonsAnswer(t *testing.T) {
	t.Parallel()
	always := nodtest.Answer{Kind: schemas.AllowAlways}
	edited := nodtest.Answer{Kind: schemas.AllowOnce, Input: []byte(`{"command":"make check","cwd":"/p"}`)}
	for name, c := range map[string]struct {
		answer   nodtest.Answer
		now, old string
	}{
		"allow":  {nodtest.Allow(), "per_1 once", "per_1 once"},
		"deny":   {nodtest.Deny("use make clean"), "per_1 reject Denied by nodtest: use make clean", "per_1 reject"},
		"always": {always, "per_1 always", "per_1 always"},
		"edited": {edited, `per_1 reject Allowed only with edited input, which this agent cannot run: make the call again with {"command":"make check","cwd":"/p"}`, "per_1 reject"},
	} {
		for _, old := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				f := newFake(t)
				f.old, f.password, f.dir = old, "secret", "/p"
				r := newRig(t, f)
				r.run()
				f.runs("msg_1", release)
				want := c.now
				if old {
					want = c.old
					f.asks(map[string]any{
						"id": "per_1", "type": "bash", "pattern": "make *", "sessionID": "ses_1", "messageID": "msg_1", "callID": "call_1",
						"title": "make release", "metadata": map[string]any{}, "time": map[string]any{"created": 1},
					})
				} else {
					f.asks(permits("per_1", "bash", "msg_1"))
				}
				p := r.asked()
				r.says(c.answer)
				assert.Equal(t, want, f.replied())
				r.stop()
				f.nothingReplied()

				assert.Equal(t, schemas.KindToolCall, p.Request.Kind)
				assert.JSONEq(t, `{"command":"make release","description":"Releases","cwd":"/p"}`, string(p.Request.ActionDetails))
				assert.Equal(t, []string{"bash", "ses_1", "per_1", "OpenCode", "devbox", "ann", "/p", "Title of ses_1"}, []string{
					p.Request.ToolName, p.Request.SessionID, p.Request.PendingID, p.Request.AgentName,
					p.Request.Host, p.Request.User, p.Request.Project, p.Request.SessionLabel,
				})
				assert.True(t, p.Request.HostAsks)
				assert.Equal(t, "Always allow bash: make * (OpenCode remembers it until it is closed; nod cannot revoke it)", p.Request.Options[2].Name)
			})
		}
	}
}

// If a rule decides, OpenCode gets the reply and nod asks no person.
func TestRulesAnswer(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := newRig(t, f)
	r.run()
	f.runs("msg_1", part{"bash", "running", `{"command":"echo hello"}`})
	f.asks(permits("per_1", "bash", "msg_1"))
	assert.Equal(t, "per_1 once", f.replied())
	assert.Empty(t, r.prompts)
}

// If nod cannot know which call would run, it asks a person. A rule about one of OpenCode's own tools does
// not allow a tool of an MCP server with the same name. No rule allows a call whose input is unusable.
func TestRulesDoNotAllowCallsThatNodDoesNotKnow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		permission string
		part       *part
		tool       string
		details    string
	}{
		"a server's tool with a name that nod knows": {"read_file", &part{"read_file", "running", `{"path":"/p/a"}`}, "read_file", `{"path":"/p/a","cwd":"/p"}`},
		"a server's tool with OpenCode's own name":   {"apply_patch", &part{"apply_patch", "running", `{"patch":"*** Update File: a"}`}, "apply_patch", `{"patch":"*** Update File: a","cwd":"/p"}`},
		"no input":         {"bash", &part{"bash", "running", `null`}, "bash", ""},
		"a list for input": {"bash", &part{"bash", "running", `["ls"]`}, "bash", ""},
		"a cwd of its own": {"bash", &part{"bash", "running", `{"command":"ls","cwd":"/q"}`}, "bash", ""},
		"a loop":           {"doom_loop", &part{"bash", "running", `{"command":"ls"}`}, "doom_loop", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			r := newRig(t, f)
			r.run()
			f.runs("msg_1", *c.part)
			f.asks(permits("per_1", c.permission, "msg_1"))
			p := r.asked()
			r.says(nodtest.Deny("no"))
			assert.Contains(t, f.replied(), "per_1 reject")
			assert.Equal(t, c.tool, p.Request.ToolName)
			if c.details == "" {
				c.details = `{"permission":"` + c.permission + `","patterns":["make release"],"metadata":{"command":"make release"},"directory of the session":"/p"}`
			}
			assert.JSONEq(t, c.details, string(p.Request.ActionDetails))
		})
	}
}

// When the agent no longer waits for a permission, the connector withdraws the request and gives a reason.
func TestARequestThatOpenCodeNoLongerNeedsIsWithdrawn(t *testing.T) {
	t.Parallel()
	about := map[string]any{"sessionID": "ses_1"}
	for name, c := range map[string]struct {
		happens func(f *fakeOpenCode)
		why     string
	}{
		"answered there":  {func(f *fakeOpenCode) { f.answers("per_1") }, "answered at the agent's own prompt"},
		"idle":            {func(f *fakeOpenCode) { f.say("session.idle", about) }, "the agent's session moved on or ended"},
		"deleted":         {func(f *fakeOpenCode) { f.say("session.deleted", about) }, "the agent's session moved on or ended"},
		"deleted, by id":  {func(f *fakeOpenCode) { f.say("session.deleted", map[string]any{"info": map[string]any{"id": "ses_1"}}) }, "the agent's session moved on or ended"},
		"project closed":  {func(f *fakeOpenCode) { f.say("server.instance.disposed", about) }, "the agent is gone"},
		"while away":      {func(f *fakeOpenCode) { f.forgets("per_1"); f.hangUp() }, "answered at the agent's own prompt while nod was disconnected"},
		"gone altogether": {func(f *fakeOpenCode) { f.down.Store(true); f.hangUp() }, "the agent is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			r := newRig(t, f)
			r.options.GoneAfter = time.Millisecond
			r.run()
			f.runs("msg_1", release)
			f.asks(permits("per_1", "bash", "msg_1"))
			p := r.asked()
			r.says(nodtest.Answer{})
			for _, other := range []string{"session.idle", "session.deleted", "permission.replied"} { // an event about another permission must withdraw no request
				f.say(other, map[string]any{"sessionID": "ses_2", "requestID": "per_2"})
			}
			c.happens(f)
			assert.Equal(t, c.why, r.ended(p))
			r.stop()
			f.nothingReplied()
		})
	}
}

// If OpenCode refuses a reply that comes too late, the connector still replies to the next permission.
func TestTheConnectorGoesOnAfterARefusedReply(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := newRig(t, f)
	r.run()
	f.runs("msg_1", release)
	f.asks(permits("per_1", "bash", "msg_1"))
	r.asked()
	f.forgets("per_1")
	r.says(nodtest.Allow())
	f.asks(permits("per_2", "bash", "msg_1"))
	r.asked()
	r.says(nodtest.Allow())
	assert.Equal(t, "per_2 once", f.replied())
}

// If the connector cannot send a reply to OpenCode, it tries again.
func TestAFailedReplyIsRepeated(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.failReply = 1
	r := newRig(t, f)
	r.run()
	f.runs("msg_1", release)
	f.asks(permits("per_1", "bash", "msg_1"))
	r.asked()
	r.says(nodtest.Allow())
	assert.Equal(t, "per_1 once", f.replied())
}

// When the connector connects to OpenCode, it sends nod requests about the permissions that are pending
// already, except if their calls have ended.
func TestPendingPermissionsAreReadOnConnecting(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.runs("msg_1", release)
	f.runs("msg_2", part{"bash", "error", `{"command":"make release"}`})
	f.waits(permits("per_0", "bash", "msg_2"))
	f.waits(permits("per_1", "bash", "msg_1"))
	r := newRig(t, f)
	r.run()
	assert.Equal(t, "per_1", r.asked().PendingID)
	f.waits(permits("per_2", "bash", "msg_1"))
	f.hangUp()
	r.says(nodtest.Allow())
	assert.Equal(t, "per_2", r.asked().PendingID)
	r.says(nodtest.Allow())
	assert.ElementsMatch(t, []string{"per_1 once", "per_2 once"}, []string{f.replied(), f.replied()})
	assert.Empty(t, r.prompts)
}

// If OpenCode cannot list its pending permissions, the connector still sends nod requests about the
// permissions in events. It skips broken events.
func TestNewPermissionsAreAskedAlthoughTheListFails(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.noList = true
	r := newRig(t, f)
	r.run()
	f.runs("msg_1", release)
	f.raw("data: [}\n\ndata: {\"type\":\"permission.asked\",\"properties\":{\"id\":\"per_0\"}}\n\ndata: {\"type\":\"permission.asked\",\"properties\":7}\n\n")
	f.asks(permits("per_1", "bash", "msg_1"))
	r.asked()
	r.says(nodtest.Allow())
	assert.Equal(t, "per_1 once", f.replied())
	r.stop()
	f.nothingReplied()
}

// While nod is not running, the connector sends OpenCode no reply and tries nod again. OpenCode's own
// prompt stays open. With DenyUnavailable, the connector rejects the permission instead.
func TestWithoutNodTheHostAsksItsUser(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := newRig(t, f)
	r.missing.Store(true)
	r.run()
	f.runs("msg_1", release)
	f.asks(permits("per_1", "bash", "msg_1"))
	require.Eventually(t, func() bool { return r.log.String() != "" }, waitAtMost, 10*time.Millisecond)
	f.nothingReplied()
	r.missing.Store(false)
	r.asked()
	r.says(nodtest.Allow())
	assert.Equal(t, "per_1 once", f.replied())
	r.stop()

	r.missing.Store(true)
	r.options.DenyUnavailable = true
	r.run()
	f.asks(permits("per_2", "bash", "msg_1"))
	assert.Equal(t, "per_2 reject nod cannot be reached, and calls are refused without it: no nod runs here", f.replied())
}

// When `nod opencode` stops, it withdraws its requests. When it starts again, it sends new requests
// about the permissions that are still in OpenCode's list.
func TestStoppingWithdraws(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := newRig(t, f)
	r.run()
	f.runs("msg_1", release)
	f.asks(permits("per_1", "bash", "msg_1"))
	p := r.asked()
	r.says(nodtest.Answer{})
	r.stop()
	assert.Equal(t, "nod opencode was stopped", r.ended(p))
	f.nothingReplied()
	r.run()
	assert.NotEqual(t, p.PendingID, r.asked().PendingID)
	r.says(nodtest.Allow())
	assert.Equal(t, "per_1 once", f.replied())
}

// The request for a call of a sub-agent belongs to the root session, and names the sub-agent's session
// as its task.
func TestASubagentAsksInItsSession(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.parents["ses_1"] = "ses_parent"
	r := newRig(t, f)
	r.run()
	f.runs("msg_1", release)
	f.asks(permits("per_1", "bash", "msg_1"))
	p := r.asked()
	r.says(nodtest.Allow())
	assert.Equal(t, "per_1 once", f.replied())
	assert.Equal(t, []string{"ses_parent", "ses_1", "Title of ses_parent"}, []string{p.SessionID, p.Request.TaskID, p.Request.SessionLabel})
}

// If nod refuses a request, the connector rejects the permission with nod's message.
func TestAPermissionThatNodRefusesIsRejected(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := newRig(t, f)
	r.run()
	f.runs("msg_1", part{"bash", "running", `{"command":"` + strings.Repeat("x", schemas.MaxRequestBytes) + `"}`})
	f.asks(permits("per_1", "bash", "msg_1"))
	assert.Contains(t, f.replied(), "per_1 reject nod refused the call: ")
}

func TestInvalidAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"127.0.0.1:4096", "ftp://x", "http://", "http://u:p@x", "http://x?y=1", "http://x#y", "::"} {
		err := opencode.Run(t.Context(), nil, opencode.Options{URL: bad})
		assert.EqualError(t, err, "OpenCode's address is not a URL such as http://127.0.0.1:4096", bad)
	}
}

// The connector closes the connection if the server is not OpenCode, or replies with a redirect.
func TestAServerThatIsNotOpenCodeIsNotFollowed(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"a page":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) },
		"no list": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/event" {
				w.Header().Set("Content-Type", "text/event-stream")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 100)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- r.URL.Path
				answer(w, r)
			}))
			defer srv.Close()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() {
				done <- opencode.Run(ctx, nil, opencode.Options{URL: srv.URL, Connected: func() { t.Error("it was followed") }})
			}()
			for again := 0; again < 2; {
				if path := <-asked; path == "/event" {
					again++
				} else {
					assert.Equal(t, "/permission", path)
				}
			}
			cancel()
			require.NoError(t, <-done)
		})
	}
}

// After a denial, OpenCode rejects the other open calls of the session, even if nod has just allowed
// one. The connector then tells nod that this call never runs. If OpenCode's user allowed the call, the
// connector does not tell nod so.
func TestAnAllowThatOpenCodeDropsIsReported(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]int32{"reject": 1, "once": 0} {
		t.Run(reply, func(t *testing.T) {
			f := newFake(t)
			r := newRig(t, f)
			r.run()
			f.runs("msg_1", release)
			f.asks(permits("per_1", "bash", "msg_1"))
			r.asked()
			f.forgets("per_1")
			r.says(nodtest.Allow())
			require.Eventually(t, func() bool {
				f.mu.Lock()
				defer f.mu.Unlock()
				return f.tooLate == 1
			}, waitAtMost, time.Millisecond)
			f.say("permission.replied", map[string]any{"sessionID": "ses_1", "requestID": "per_1", "reply": reply})
			f.runs("msg_2", release)
			f.asks(permits("per_2", "bash", "msg_2"))
			r.asked() // the connector reads the event permission.replied before it sends this prompt
			r.says(nodtest.Deny("no"))
			f.replied()
			r.stop()
			assert.Equal(t, want, r.abandoned.Load())
		})
	}
}
