package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/connectors/agents/httpapi"
	"github.com/nodbus/nod/schemas"
)

const hookPath = "/api/v1/hooks/claude-code"

// event returns the body of Claude Code's POST about a call that no rule decides. name is the name of
// the event.
func event(name, session string) string {
	return `{"session_id":"` + session + `","cwd":"/w","hook_event_name":"` + name + `","tool_name":"Bash","tool_input":{"command":"make release"}}`
}

// The response bodies that Claude Code gets, in full.
const (
	allowed  = `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow","updatedInput":{"command":"make release"}}}}`
	preAllow = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"Allowed through nod."}}`
	own      = `{}` // makes Claude Code show its own prompt
)

// verdict contains the fields in a response to a hook. Which of them are set depends on the event.
type verdict struct{ behavior, permission, decision, reason string }

func (r *rig) verdict(got answer) verdict {
	r.t.Helper()
	r.Equal(http.StatusOK, got.status, "with any other status the host goes on without the hook")
	var out struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
		Specific struct {
			Decision struct {
				Behavior string `json:"behavior"`
				Message  string `json:"message"`
			} `json:"decision"`
			Permission string `json:"permissionDecision"`
			Reason     string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	r.NoError(json.Unmarshal([]byte(got.body), &out), got.body)
	return verdict{out.Specific.Decision.Behavior, out.Specific.Permission, out.Decision, out.Specific.Decision.Message + out.Specific.Reason + out.Reason}
}

func (r *rig) answerTo(p schemas.Prompt, option string) {
	r.t.Helper()
	r.says(schemas.Receipt{SessionID: p.SessionID, PendingID: p.PendingID, Digest: p.Digest}, option)
}

func TestAHookIsAnsweredAsTheCommandAnswers(t *testing.T) {
	r := start(t)
	reply := r.later("POST", hookPath+"?host_timeout=24h", event("PermissionRequest", "yes"), header("Nod-Project", "/srv/app"))
	p := r.pends("yes")
	r.Equal("Claude Code", p.Request.AgentName)
	r.Equal([]string{"devbox", "ann", "/srv/app", "w"}, []string{p.Request.Host, p.Request.User, p.Request.Project, p.Request.SessionLabel})
	r.True(p.Request.HostAsks)
	r.answerTo(p, "allow_once")
	r.JSONEq(allowed, reply().body)

	reply = r.later("POST", hookPath+"?host_timeout=24h", event("PreToolUse", "pre"))
	r.answerTo(r.pends("pre"), "allow_once")
	r.JSONEq(preAllow, reply().body)

	reply = r.later("POST", hookPath, event("PermissionRequest", "no"))
	r.answerTo(r.pends("no"), "reject_once")
	v := r.verdict(reply())
	r.Equal("deny", v.behavior)
	r.Contains(v.reason, "Ann")

	// The server also answers a hook if a rule decides its call, or if nod does not handle its event.
	// An event PostToolUse ends the wait of the hook for the same call.
	r.Equal("allow", r.verdict(r.does("POST", hookPath, strings.Replace(event("PreToolUse", "rule"), "make release", "ls", 1))).permission)
	reply = r.later("POST", hookPath, event("PermissionRequest", "raced"))
	r.pends("raced")
	r.Equal(own, strings.TrimSpace(r.does("POST", hookPath, event("PostToolUse", "raced")).body))
	r.Equal("deny", r.verdict(reply()).behavior)
	r.Equal(own, strings.TrimSpace(r.does("POST", hookPath, event("Notification", "x")).body))
	r.Empty(r.pending())
}

// If no approver answers within the host's timeout, the hook denies the call, but the request stays
// pending. If an approver allows the request later, the next identical call runs without a question.
func TestACallIsDeniedAtItsHostsTimeout(t *testing.T) {
	r := start(t)
	v := r.verdict(r.does("POST", hookPath+"?host_timeout=3s", event("PreToolUse", "S")))
	r.Equal("deny", v.permission)
	r.Contains(v.reason, "stays open")
	r.Eventually(func() bool { return len(r.pending()) == 1 && r.pending()[0].Detached }, waitAtMost, tick)
	r.answerTo(r.pends("S"), "allow_once")
	r.JSONEq(preAllow, r.does("POST", hookPath+"?host_timeout=1h", event("PreToolUse", "S")).body)
}

// If the host closes the connection of a waiting hook, the server withdraws the request.
func TestAHookWhoseHostIsGoneIsWithdrawn(t *testing.T) {
	r := start(t)
	ctx, cancel := context.WithCancel(r.ctx)
	gone := make(chan error, 1)
	go func() {
		_, err := r.tries(ctx, "POST", hookPath+"?host_timeout=1h", event("PreToolUse", "S"))
		gone <- err
	}()
	p := r.pends("S")
	cancel()
	r.ErrorIs(<-gone, context.Canceled)
	r.Eventually(func() bool { return len(r.pending()) == 0 }, waitAtMost, tick)
	shown, _, err := r.desk.Show(r.ctx, "S", p.PendingID)
	r.NoError(err)
	r.Equal(schemas.Withdrawn, shown.Decision.Outcome)
}

// If nod is not running, Claude Code shows its own prompt or, with on_unavailable=deny, the server
// refuses the call. A hook whose request is pending while nod restarts still gets the decision.
func TestWithoutNodAHookLetsItsHostAsk(t *testing.T) {
	r := start(t)
	waits := r.later("POST", hookPath+"?host_timeout=1h", event("PreToolUse", "S"))
	p := r.pends("S")
	r.down()
	permission, pre := r.later("POST", hookPath, event("PermissionRequest", "T")), r.later("POST", hookPath, event("PreToolUse", "T"))
	denies := r.later("POST", hookPath+"?on_unavailable=deny", event("PermissionRequest", "T"))
	r.Equal(own, strings.TrimSpace(permission().body))
	r.Equal("ask", r.verdict(pre()).permission)
	r.Equal("deny", r.verdict(denies()).behavior)
	r.up()
	r.answerTo(p, "allow_once")
	r.JSONEq(preAllow, waits().body)
}

// If a call is invalid or unauthorized, the server refuses it in the format of its event. If the server
// cannot read the event, its response blocks the call.
func TestInvalidHookCallsAreRefused(t *testing.T) {
	nod := func(o *httpapi.Options) {
		o.Agents[0].Hook = func(context.Context) (hook.Nod, error) { panic("a fault") }
	}
	r := fake(t, nod)
	for name, c := range map[string]struct {
		query  string
		body   string
		change func(*http.Request)
		says   string
	}{
		"no token":                   {"", "", func(req *http.Request) { req.Header.Del("Authorization") }, "token"},
		"another token":              {"", "", header("Authorization", "Bearer x"), "token"},
		"a web page":                 {"", "", header("Origin", "https://evil.example"), "web page"},
		"another host":               {"", "", func(req *http.Request) { req.Host = "evil.example" }, "evil.example"},
		"a bad timeout":              {"?host_timeout=1", "", nil, "host_timeout"},
		"no timeout":                 {"?host_timeout=0s", "", nil, "host_timeout"},
		"a time to defer":            {"?defer_after=1m", "", nil, "defer_after"},
		"an unknown on_unavailable":  {"?on_unavailable=allow", "", nil, "on_unavailable"},
		"a panic":                    {"", "", nil, "internal error"},
		"no content type":            {"", "", func(req *http.Request) { req.Header.Del("Content-Type") }, "application/json"},
		"a form":                     {"", "", header("Content-Type", "application/x-www-form-urlencoded"), "application/json"},
		"not JSON":                   {"", `{"hook_event_name":`, nil, "not as expected"},
		"nothing":                    {"", " ", nil, "not as expected"},
		"no event":                   {"", `{"session_id":"S"}`, nil, "hook_event_name"},
		"larger than a call":         {"", `{"x":"` + strings.Repeat("x", 4<<20) + `"}`, nil, "longer"},
		"an input that is no object": {"", `{"session_id":"S","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":[]}`, nil, "JSON object"},
	} {
		for _, name2 := range []string{"PermissionRequest", "PreToolUse"} {
			t.Log(name, name2)
			body := c.body
			if body == "" {
				body = event(name2, "S")
			}
			if c.change == nil {
				c.change = func(*http.Request) {}
			}
			v := r.verdict(r.does("POST", hookPath+c.query, body, c.change))
			r.Contains(v.reason, c.says)
			switch {
			case v.decision != "": // the server could not read the event
				r.Equal("block", v.decision)
			case v.permission != "":
				r.Equal("deny", v.permission)
			default:
				r.Equal("deny", v.behavior)
			}
		}
	}
	r.Equal("deny", r.verdict(r.does("PUT", hookPath, event("PermissionRequest", "S"))).behavior)
}

// If the body of a hook call does not arrive in time, the response blocks the call.
func TestAHookCallWithASlowBodyIsBlocked(t *testing.T) {
	r := fake(t, func(o *httpapi.Options) { o.BodyWithin = 1 })
	host := strings.TrimPrefix(r.api.URL(), "http://")
	conn, err := net.Dial("tcp", host)
	r.NoError(err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", hookPath, host, localToken)
	r.NoError(err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	r.NoError(err)
	body, err := io.ReadAll(resp.Body)
	r.NoError(err)
	r.Equal("block", r.verdict(answer{resp.StatusCode, resp.Header, string(body)}).decision)
}
