package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// floods sends requests until the reply to one is 429.
func (r *rig) floods(method, path, body string, change ...func(*http.Request)) {
	r.t.Helper()
	for range 20 * pace {
		if r.does(method, path, body, change...).status == http.StatusTooManyRequests {
			return
		}
	}
	r.Fail("no request was refused", "%s %s", method, path)
}

// pace is the number of requests that a caller may send in these tests.
const pace = 10

// Too many requests without a session block no session. Too many requests of one session do not block
// other sessions.
func TestAFloodBlocksNoOtherCaller(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.web.Pace(pace)
	ann, bob := r.login("ann"), r.login("bob")
	r.floods("GET", "/icon/1", "")
	r.Equal(http.StatusOK, r.does("GET", "/whoami", "", with(ann)).status, "from the same address")
	s, _, err := r.dials(with(ann))
	r.NoError(err)
	_ = s.conn.CloseNow()
	forged := &http.Cookie{Name: ann.Name, Value: ann.Value[1:]}
	r.Equal(http.StatusTooManyRequests, r.does("GET", "/icon/1", "", with(forged)).status, "a made-up session is a stranger's")

	r.floods("GET", "/icon/1", "", with(ann))
	r.Equal(http.StatusOK, r.does("GET", "/whoami", "", with(bob)).status, "nor does one session keep out another")
}

func TestGuessedTokensBlockNoLogin(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.floods("POST", "/login", `{"token":"made-up"}`)
	r.login("ann")
}

// Behind a proxy, all connections come from the proxy's address, so the inbox distinguishes clients by
// X-Forwarded-For.
func TestBehindAProxyCallersAreToldApart(t *testing.T) {
	t.Parallel()
	r := start(t)
	g := r.gateway("")
	r.web.Pace(pace)
	g.web.Pace(pace)
	n := 0
	through := func(format string) func(*http.Request) { // each request gets another number in place of the letter N
		return func(req *http.Request) {
			n++
			req.Header.Set("X-Forwarded-For", strings.ReplaceAll(format, "N", fmt.Sprint(n%200+1)))
		}
	}
	for _, client := range []string{
		"192.0.2.1", "2001:db8::1", "nobody",
		"198.51.100.N, 192.0.2.2", // the client wrote the first address, so the inbox ignores it
		"2001:db8:0:1::N",         // addresses in one /64 network are one caller
	} {
		g.floods("GET", "/icon/1", "", through(client))
	}
	for _, client := range []string{"192.0.2.3", "192.0.2.2, 192.0.2.4", "2001:db8:0:2::1"} {
		g.Equal(http.StatusOK, g.does("GET", "/icon/1", "", through(client)).status, client)
	}
	r.floods("GET", "/icon/1", "", through("192.0.2.N")) // without a proxy the header is ignored
}
