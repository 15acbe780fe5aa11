package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nodbus/nod/connectors/agents/httpapi"
	"github.com/nodbus/nod/schemas"
)

// scriptedNod is a fake nod. Each of its methods calls a function that the test has set, and panics if
// there is none.
type scriptedNod struct {
	submit   func(context.Context, schemas.Request) (*schemas.Decision, schemas.Receipt, error)
	await    func(context.Context) (*schemas.Decision, error)
	withdraw func(session, id string) (schemas.Decision, error)
}

func (s scriptedNod) Submit(ctx context.Context, r schemas.Request) (*schemas.Decision, schemas.Receipt, error) {
	return s.submit(ctx, r)
}

func (s scriptedNod) Await(ctx context.Context, _, _ string, _ time.Duration) (*schemas.Decision, error) {
	return s.await(ctx)
}

// Notices returns the error of the function await.
func (s scriptedNod) Notices(ctx context.Context, _ string, _ time.Duration) ([]schemas.Notice, error) {
	_, err := s.await(ctx)
	return nil, err
}

func (s scriptedNod) Withdraw(_ context.Context, session, id, _ string) (schemas.Decision, error) {
	return s.withdraw(session, id)
}

// failingNod returns a fake nod. All its methods return the error that f returns.
func failingNod(f func() error) scriptedNod {
	return scriptedNod{
		submit: func(context.Context, schemas.Request) (*schemas.Decision, schemas.Receipt, error) {
			return nil, schemas.Receipt{}, f()
		},
		await:    func(context.Context) (*schemas.Decision, error) { return nil, f() },
		withdraw: func(_, _ string) (schemas.Decision, error) { return schemas.Decision{}, f() },
	}
}

func before(nod httpapi.Nod) func(*httpapi.Options) {
	return func(o *httpapi.Options) { o.Agents[0].Nod = nod }
}

// each contains one HTTP call for every route that needs a token, by a short name.
var each = map[string]struct{ method, path, body string }{
	"ask":      {"POST", "/api/v1/requests", deploy("S", "1")},
	"await":    {"GET", "/api/v1/requests/S.1", ""},
	"withdraw": {"DELETE", "/api/v1/requests/S.1", ""},
	"notices":  {"GET", "/api/v1/notices?session_id=S", ""},
}

// The server refuses calls without a valid token, and calls that may come from a web page. These calls
// do not reach nod.
func TestCallsWithoutATokenOrFromAWebPageAreRefused(t *testing.T) {
	r := fake(t, func(*httpapi.Options) {}) // Agent.Nod is nil, so that a call which reaches nod panics
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
		code   schemas.Code
	}{
		"no token":           {func(req *http.Request) { req.Header.Del("Authorization") }, 401, "UNAUTHORIZED"},
		"an empty one":       {header("Authorization", "Bearer "), 401, "UNAUTHORIZED"},
		"another":            {header("Authorization", "Bearer "+localToken+"x"), 401, "UNAUTHORIZED"},
		"half of one":        {header("Authorization", "Bearer "+localToken[:8]), 401, "UNAUTHORIZED"},
		"a password":         {header("Authorization", "Basic "+localToken), 401, "UNAUTHORIZED"},
		"the token alone":    {header("Authorization", localToken), 401, "UNAUTHORIZED"},
		"another origin":     {header("Origin", "https://evil.example"), 403, "FORBIDDEN"},
		"no origin's":        {header("Origin", "null"), 403, "FORBIDDEN"},
		"an empty origin":    {header("Origin", ""), 403, "FORBIDDEN"},
		"a page of its own":  {header("Origin", r.api.URL()), 403, "FORBIDDEN"},
		"from another site":  {header("Sec-Fetch-Site", "cross-site"), 403, "FORBIDDEN"},
		"from the same site": {header("Sec-Fetch-Site", "same-origin"), 403, "FORBIDDEN"},
		"another host":       {func(req *http.Request) { req.Host = "evil.example" }, 421, "FORBIDDEN"},
		"another port":       {func(req *http.Request) { req.Host = "127.0.0.1:1" }, 421, "FORBIDDEN"},
	} {
		for what, call := range each {
			got := r.does(call.method, call.path, call.body, c.change)
			text := r.refused(got, c.status, c.code)
			r.NotContains(text, localToken, "%s: %s", name, what)
			if c.status == 401 {
				r.Equal("Bearer", got.header.Get("WWW-Authenticate"))
			}
		}
	}
}

func TestInvalidRequestBodiesAreRefused(t *testing.T) {
	r := start(t)
	good := deploy("S", "1")
	kind := func(k string) func(*http.Request) { return header("Content-Type", k) }
	for name, c := range map[string]struct {
		body   string
		change func(*http.Request)
		status int
		code   schemas.Code
		says   string
	}{
		"a form":               {good, kind("application/x-www-form-urlencoded"), 415, "BAD_REQUEST", "application/json"},
		"plain text":           {good, kind("text/plain"), 415, "BAD_REQUEST", "application/json"},
		"no content type":      {good, func(req *http.Request) { req.Header.Del("Content-Type") }, 415, "BAD_REQUEST", "application/json"},
		"half a type":          {good, kind("application/json; x"), 415, "BAD_REQUEST", "application/json"},
		"nothing":              {"", kind("application/json"), 400, "VALIDATION_ERROR", "JSON"},
		"no JSON":              {`{"session_id":`, nil, 400, "VALIDATION_ERROR", "not JSON"},
		"more than JSON":       {good + "{}", nil, 400, "VALIDATION_ERROR", "not JSON"},
		"a list":               {"[" + good + "]", nil, 400, "VALIDATION_ERROR", "object"},
		"null":                 {"null", nil, 400, "VALIDATION_ERROR", "object"},
		"an empty object":      {"{}", nil, 400, "VALIDATION_ERROR", "is missing"},
		"no UTF-8":             {strings.Replace(good, "production", "\xff", 1), nil, 400, "VALIDATION_ERROR", "UTF-8"},
		"a field twice":        {`{"title":"Harmless",` + good[1:], nil, 400, "VALIDATION_ERROR", "title: is given twice"},
		"an id twice":          {`{"pending_id":"2",` + good[1:], nil, 400, "VALIDATION_ERROR", "pending_id: is given twice"},
		"a field in capitals":  {strings.Replace(good, "pending_id", "PENDING_ID", 1), nil, 400, "VALIDATION_ERROR", "write pending_id"},
		"a wrong id":           {deploy("S", "a.b"), nil, 400, "VALIDATION_ERROR", "pending_id"},
		"a wrong session":      {deploy("S S", "1"), nil, 400, "VALIDATION_ERROR", "session_id"},
		"another version":      {`{"type":"nod.v2.request",` + good[1:], nil, 400, "VALIDATION_ERROR", "version"},
		"another message":      {`{"type":"nod.v1.answer",` + good[1:], nil, 400, "VALIDATION_ERROR", "type"},
		"an unknown kind":      {strings.Replace(good, "tool_call", "order", 1), nil, 400, "VALIDATION_ERROR", "kind"},
		"a number too large":   {strings.Replace(good, `"production"`, "9007199254740993", 1), nil, 400, "VALIDATION_ERROR", "action_details.to"},
		"longer than a record": {strings.Replace(good, "production", strings.Repeat("x", schemas.MaxRequestBytes), 1), nil, 413, "VALIDATION_ERROR", "longer"},
	} {
		t.Log(name)
		if c.change == nil {
			c.change = func(*http.Request) {}
		}
		r.Contains(r.refused(r.does("POST", "/api/v1/requests", c.body, c.change), c.status, c.code), c.says, name)
	}
	for path, says := range map[string]string{
		"/api/v1/requests/1":               "SESSION.ID",
		"/api/v1/requests/S.1.2":           "SESSION.ID",
		"/api/v1/requests/S.":              "SESSION.ID",
		"/api/v1/requests/a%20b":           "SESSION.ID",
		"/api/v1/requests/S.1?wait=x":      "wait",
		"/api/v1/requests/S.1?wait=-1s":    "wait",
		"/api/v1/requests/S.1?wait=11m":    "10 minutes",
		"/api/v1/requests/S.1?wait=":       "",
		"/api/v1/requests/S.1?session_id=": "",
	} {
		got := r.does("GET", path, "")
		if says == "" {
			r.refused(got, 404, "NOT_FOUND")
			continue
		}
		r.Contains(r.refused(got, 400, "VALIDATION_ERROR"), says, path)
	}
	r.refused(r.does("DELETE", "/api/v1/requests/1", ""), 400, "VALIDATION_ERROR")
	for _, c := range [][2]string{{"PUT", "/api/v1/requests"}, {"GET", "/"}, {"POST", "/api/v1/requests/S.1"}, {"GET", "/api/v2/requests"}, {"GET", "/api/v1/requests/"}} {
		r.refused(r.does(c[0], c[1], ""), 404, "UNKNOWN_ACTION")
	}
	r.Empty(r.pending())
}

func TestTheLongestRequestIsTaken(t *testing.T) {
	r := start(t)
	body := deploy("S", "1")
	body = strings.Replace(body, "production", strings.Repeat("<", schemas.MaxRequestBytes-len(body)-400), 1) // leave 400 bytes for the fields that the server adds, such as the agent's name
	q := r.asks(body)
	r.says(q, "allow_once")
	r.Equal(schemas.Allowed, r.decision(r.does("GET", "/api/v1/requests/S.1"+wait, "")).Outcome)
}

func TestErrorCodesHaveTheirHTTPStatus(t *testing.T) {
	for code, status := range map[schemas.Code]int{
		"BAD_REQUEST": 400, "VALIDATION_ERROR": 400, "UNAUTHORIZED": 401, "FORBIDDEN": 403, "NOT_FOUND": 404,
		"CONFLICT": 409, "UNDELIVERABLE": 503, "UNAVAILABLE": 503, "INTERNAL_ERROR": 500,
	} {
		t.Run(string(code), func(t *testing.T) {
			r := fake(t, before(failingNod(func() error { return fmt.Errorf("ask: %w", schemas.Errorf(code, "because")) })))
			for what, call := range each {
				if code == "CONFLICT" && what != "ask" && what != "await" || code == "NOT_FOUND" && what == "notices" {
					continue // the document does not list this code for this call, because nod never returns it
				}
				r.Equal("because", r.refused(r.does(call.method, call.path, call.body), status, code), what)
			}
		})
	}
	r := fake(t, before(failingNod(func() error { return io.ErrUnexpectedEOF })))
	r.refused(r.does("POST", "/api/v1/requests", deploy("S", "1")), 503, "UNAVAILABLE")
}

func TestAPanicAllowsNothing(t *testing.T) {
	r := fake(t, before(failingNod(func() error { panic("a fault") })))
	for range 2 { // the server must still serve the next request after a panic
		for what, call := range each {
			r.NotContains(r.refused(r.does(call.method, call.path, call.body), 500, "INTERNAL_ERROR"), "a fault", what)
		}
	}
}

func TestWithoutALogItIsDiscarded(t *testing.T) {
	r := fake(t, func(o *httpapi.Options) {
		before(failingNod(func() error { panic("a fault") }))(o)
		o.Log = nil
	})
	r.refused(r.does("POST", "/api/v1/requests", deploy("S", "1")), 500, "INTERNAL_ERROR")
}

// After an error, nod may have stored the request. If the server made the request's id, the server
// withdraws the request. If the caller chose the id, the request stays, and the caller can send the
// request again.
func TestAFailedRequestIsWithdrawnIfTheAPIMadeItsID(t *testing.T) {
	var asked, withdrawn []string
	nod := failingNod(func() error { return schemas.Errorf(schemas.CodeUnavailable, "away") })
	nod.submit = func(_ context.Context, r schemas.Request) (*schemas.Decision, schemas.Receipt, error) {
		asked = append(asked, r.Key())
		return nil, schemas.Receipt{}, schemas.Errorf(schemas.CodeUnavailable, "away")
	}
	nod.withdraw = func(session, id string) (schemas.Decision, error) {
		withdrawn = append(withdrawn, schemas.Key(session, id))
		return schemas.Decision{}, nil
	}
	r := fake(t, before(nod))
	r.refused(r.does("POST", "/api/v1/requests", deploy("S", "1")), 503, "UNAVAILABLE")
	r.Empty(withdrawn)
	r.refused(r.does("POST", "/api/v1/requests", strings.Replace(deploy("S", "1"), `"pending_id":"1",`, "", 1)), 503, "UNAVAILABLE")
	r.Equal(asked[1:], withdrawn)
}

// If the server made the request's id and the caller is gone before nod has replied, the server
// withdraws the request.
func TestARequestIsWithdrawnIfItsCallerLeavesEarly(t *testing.T) {
	reached, withdrawn := make(chan string, 1), make(chan string, 1)
	nod := scriptedNod{
		submit: func(ctx context.Context, r schemas.Request) (*schemas.Decision, schemas.Receipt, error) {
			reached <- r.Key()
			<-ctx.Done()
			return nil, schemas.Receipt{}, ctx.Err()
		},
		withdraw: func(session, id string) (schemas.Decision, error) {
			withdrawn <- schemas.Key(session, id)
			return schemas.Decision{}, nil
		},
	}
	r := fake(t, before(nod))
	ctx, cancel := context.WithCancel(r.ctx)
	go func() {
		_, _ = r.tries(ctx, "POST", "/api/v1/requests", strings.Replace(deploy("S", "1"), `"pending_id":"1",`, "", 1)) // fails, because the caller is gone
	}()
	key := <-reached
	cancel()
	r.Equal(key, <-withdrawn)
}
