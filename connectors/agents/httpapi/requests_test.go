package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/nodbus/nod/schemas"
)

const wait = "?wait=1m"

func TestARuleDecidesAtOnce(t *testing.T) {
	r := start(t)
	for tool, outcome := range map[string]schemas.Outcome{"Lookup": schemas.Allowed, "Forbidden": schemas.Denied} {
		body := strings.Replace(deploy("S", tool), `"tool_name":"Deploy"`, `"tool_name":"`+tool+`"`, 1)
		d := r.decision(r.does("POST", "/api/v1/requests", body))
		r.Equal(outcome, d.Outcome)
		r.Equal(schemas.ByPolicy, d.By.Kind)
		r.Equal(d, r.decision(r.does("POST", "/api/v1/requests", body)), "asked again")
		r.Equal(d, r.decision(r.does("GET", "/api/v1/requests/S."+tool, "")), "under an id of its own it is kept")

		fresh := r.decision(r.does("POST", "/api/v1/requests", strings.Replace(body, `"pending_id":"`+tool+`",`, "", 1)))
		r.Equal(outcome, fresh.Outcome)
		r.NotEqual(tool, fresh.PendingID)
	}
	r.Empty(r.pending())
}

func TestAPersonDecides(t *testing.T) {
	r := start(t)
	for option, outcome := range map[string]schemas.Outcome{"allow_once": schemas.Allowed, "reject_once": schemas.Denied} {
		q := r.asks(deploy("S", option))
		r.Equal(http.StatusNoContent, r.does("GET", "/api/v1/requests/S."+option, "").status, "nobody has decided")
		r.Equal(http.StatusNoContent, r.does("GET", "/api/v1/requests/S."+option+"?wait=30ms", "").status, "the poll is over first")
		byKey := r.later("GET", "/api/v1/requests/S."+option+wait, "")
		byID := r.later("GET", "/api/v1/requests/"+option+wait+"&session_id=S", "")
		r.says(q, option)
		d := r.decision(byKey())
		r.Equal(outcome, d.Outcome)
		r.Equal("Ann", d.By.Name)
		r.Equal(q.Digest, d.Digest)
		r.Equal(d, r.decision(byID()), "two wait for the same one")
		r.Equal(d, r.decision(r.does("GET", "/api/v1/requests/S."+option, "")))
		r.Equal(d, r.decision(r.does("POST", "/api/v1/requests", deploy("S", option))))
		r.Equal(d, r.decision(r.does("DELETE", "/api/v1/requests/S."+option, "")), "too late to withdraw")
	}
}

func TestFieldsOfARequestReachThePrompt(t *testing.T) {
	r := start(t)
	r.asks(`{"session_id":"S","kind":"tool_call","title":"Use Deploy","tool_name":"Deploy","action_type":"other","action_details":{"n":1.0}}`)
	p := r.pends("S").Request
	r.Equal("local", p.AgentName)
	r.Equal("devbox", p.Host)
	r.Equal("ann", p.User)
	r.Empty(p.Project, "where the server was started is nobody's project")
	r.Equal(`{"n":1.0}`, string(p.ActionDetails), "to the last digit")
	r.False(p.CreatedAt.IsZero())

	r.asks(`{"session_id":"T","agent_name":"Bot","host":"h","user":"u","project":"/p","session_label":"l",` + deploy("T", "1")[len(`{"session_id":"T",`):])
	p = r.pends("T").Request
	r.Equal([]string{"Bot", "h", "u", "/p", "l"}, []string{p.AgentName, p.Host, p.User, p.Project, p.SessionLabel})
}

func TestTheDeadlinePasses(t *testing.T) {
	r := start(t)
	second := 1
	_, err := r.owner.ChangeSession(r.ctx, schemas.SessionChange{SessionID: "S", TimeoutSeconds: &second})
	r.NoError(err)
	r.asks(deploy("S", "late"))
	d := r.decision(r.does("GET", "/api/v1/requests/S.late"+wait, ""))
	r.Equal(schemas.TimedOut, d.Outcome)
	r.Equal(schemas.ByClock, d.By.Kind)

	q := r.asks(`{"session_id":"S","pending_id":"perm","kind":"permission","title":"T","permissions":["@network"],"reason":"to fetch",` +
		`"action_type":"other","action_details":{},"timeout_seconds":1}`)
	r.Equal(schemas.TierRequest, q.Tier)
	r.Equal(schemas.TimedOut, r.decision(r.does("GET", "/api/v1/requests/S.perm"+wait, "")).Outcome)
}

func TestWithdrawing(t *testing.T) {
	r := start(t)
	r.asks(deploy("S", "1"))
	waits := r.later("GET", "/api/v1/requests/S.1"+wait, "")
	d := r.decision(r.does("DELETE", "/api/v1/requests/S.1?reason=changed+my+mind", ""))
	r.Equal(schemas.Withdrawn, d.Outcome)
	r.Equal("changed my mind", d.Message)
	r.Equal(d, r.decision(waits()))
	r.Equal(d, r.decision(r.does("DELETE", "/api/v1/requests/1?session_id=S", "")))
	r.Empty(r.pending())
	r.Equal(schemas.Withdrawn, r.decision(r.does("DELETE", "/api/v1/requests/S.2", "")).Outcome, "before it was asked")
	r.Equal(schemas.Withdrawn, r.decision(r.does("POST", "/api/v1/requests", deploy("S", "2"))).Outcome)
}

func TestAnIDIsForOneRequest(t *testing.T) {
	r := start(t)
	q := r.asks(deploy("S", "1"))
	r.Equal(q, r.asks(deploy("S", "1")), "sent again it is the same")
	r.refused(r.does("POST", "/api/v1/requests", strings.Replace(deploy("S", "1"), "production", "staging", 1)), 409, "CONFLICT")
	r.Len(r.pending(), 1)
}

// An agent that names a request of another agent gets the same error as for a request that does not exist.
func TestAnotherAgentsRequestIsNotFound(t *testing.T) {
	r := start(t)
	r.asks(deploy("S", "1"))
	foreign := r.refused(r.does("GET", "/api/v1/requests/S.1"+wait, "", asAda), 404, "NOT_FOUND")
	unknown := r.refused(r.does("GET", "/api/v1/requests/S.2"+wait, "", asAda), 404, "NOT_FOUND")
	r.Equal(strings.ReplaceAll(foreign, "S.1", "S.2"), unknown)
	r.refused(r.does("DELETE", "/api/v1/requests/S.1", "", asAda), 404, "NOT_FOUND")
	r.refused(r.does("POST", "/api/v1/requests", deploy("S", "1"), asAda), 404, "NOT_FOUND")
	r.refused(r.does("POST", "/api/v1/requests", deploy("S", "2"), asAda), 404, "NOT_FOUND")
	r.Len(r.pending(), 1)
	r.Equal("local", r.pending()[0].Agent)
}

// If a caller is gone while it waits for a decision, the request stays pending.
func TestACallerThatIsGoneLeavesTheRequestOpen(t *testing.T) {
	r := start(t)
	q := r.asks(deploy("S", "1"))
	sent := make(chan struct{})
	ctx, cancel := context.WithCancel(httptrace.WithClientTrace(r.ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) },
	}))
	gone := make(chan error, 1)
	go func() { _, err := r.tries(ctx, "GET", "/api/v1/requests/S.1"+wait, ""); gone <- err }()
	other := r.later("GET", "/api/v1/requests/S.1"+wait, "")
	<-sent
	cancel()
	r.ErrorIs(<-gone, context.Canceled)
	r.Len(r.pending(), 1)
	r.says(q, "allow_once")
	r.Equal(schemas.Allowed, r.decision(other()).Outcome)
}

func TestNodIsRestartedMidWait(t *testing.T) {
	r := start(t)
	q := r.asks(deploy("S", "1"))
	waits := r.later("GET", "/api/v1/requests/S.1"+wait, "")
	hangs := r.later("GET", "/api/v1/requests/S.1"+wait, "")
	r.down()
	asked := r.later("GET", "/api/v1/requests/S.1"+wait, "") // the call starts while nod does not run
	r.up()
	r.says(q, "allow_once")
	for _, got := range []func() answer{waits, hangs, asked} {
		r.Equal(schemas.Allowed, r.decision(got()).Outcome)
	}
}
