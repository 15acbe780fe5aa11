package web_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/embed"
)

const public = "https://nod.example.com"

// gateway returns a rig that connects directly to another gateway of the same nod, as a proxy would. The
// gateway has the same public address. If keyFile is empty, the gateway has a separate login key.
func (r *rig) gateway(keyFile string) *rig {
	r.t.Helper()
	desk := connector.NewDesk(r.connect(roles.ConnectorID(web.Name)), web.Name)
	s, err := web.Open(web.Options{
		DataDir: r.t.TempDir(), KeyFile: keyFile, Listen: httpserve.Listen{Addr: "127.0.0.1:0", PublicURL: public}, Check: 50 * time.Millisecond,
		Desk: desk, Registry: desk, LoginCodes: desk, Records: desk, Log: quiet(),
	})
	r.NoError(err)
	r.t.Cleanup(func() { r.NoError(s.Stop(context.Background())) })
	other := *r
	other.web, other.at = &embed.Web{Server: s}, fmt.Sprintf("http://127.0.0.1:%d", s.Port())
	return &other
}

// key returns the path of a login key that several gateways can share.
func (r *rig) key() string { return filepath.Join(r.dir, "web", "key") }

// A session is valid at every gateway that has the same address and login key.
func TestGatewaysShareTheirSessions(t *testing.T) {
	t.Parallel()
	r := start(t)
	first, second, stranger := r.gateway(r.key()), r.gateway(r.key()), r.gateway("")
	session := first.login("ann")
	for range 2 { // a proxy may send each request to another gateway
		for _, g := range []*rig{first, second} {
			r.JSONEq(`{"user_id":"ann","name":"Ann"}`, g.does("GET", "/whoami", "", with(session)).body)
		}
	}
	s, _, err := second.dials(with(session))
	r.NoError(err)
	_ = s.conn.CloseNow()
	r.True(session.Secure)
	r.Equal(http.StatusUnauthorized, stranger.does("GET", "/whoami", "", with(session)).status, "with another key")
	r.NotEqual(session.Name, r.login("ann").Name, "an inbox at another address has another cookie")
}

func TestALinkLogsInAtOneGatewayOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	first, second := r.gateway(r.key()), r.gateway(r.key())
	body := `{"token":"` + first.token("ann") + `"}`
	statuses := make([]int, 8)
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() { statuses[i] = []*rig{first, second}[i%2].does("POST", "/login", body).status })
	}
	all.Wait()
	in := 0
	for _, s := range statuses {
		if s == http.StatusNoContent {
			in++
		} else {
			r.Equal(http.StatusUnauthorized, s)
		}
	}
	r.Equal(1, in)
}

// A logout ends the session at every gateway, for every copy of the cookie. It disconnects the
// session's clients.
func TestLoggingOutEndsTheSession(t *testing.T) {
	t.Parallel()
	r := start(t)
	first, second := r.gateway(r.key()), r.gateway(r.key())
	session, other := first.login("ann"), first.login("ann")
	var open []*socket
	for _, g := range []*rig{first, second} {
		s, _, err := g.dials(with(session))
		r.NoError(err)
		open = append(open, s)
	}
	stays, _, err := first.dials(with(other))
	r.NoError(err)
	out := first.does("POST", "/logout", "", with(session))
	r.Equal(http.StatusNoContent, out.status, out.body)
	r.Negative(out.cookies[0].MaxAge)
	for _, g := range []*rig{first, second} {
		again := g.does("GET", "/whoami", "", with(session))
		r.Equal(http.StatusUnauthorized, again.status)
		r.Contains(again.body, "you have logged out")
		_, resp, err := g.dials(with(session))
		r.Error(err)
		r.Equal(http.StatusUnauthorized, resp.StatusCode)
	}
	for _, s := range open {
		for err = nil; err == nil; {
			_, err = s.reads()
		}
		r.Equal(websocket.StatusPolicyViolation, websocket.CloseStatus(err), err)
		r.ErrorContains(err, "logged out")
	}
	r.Equal(http.StatusOK, first.does("GET", "/whoami", "", with(other)).status, "another session of the same person")
	reply, _ := stays.gets("inbox.subscribe", nil)
	r.True(reply.Payload.Success)
	_ = stays.conn.CloseNow()
}

// If nod cannot store a logout, the page reports the failure, and the session continues.
func TestALogoutThatNodCannotStoreFails(t *testing.T) {
	t.Parallel()
	r := start(t)
	g := r.gateway(r.key())
	session := g.login("ann")
	for _, c := range r.conns {
		c.Close()
	}
	out := g.does("POST", "/logout", "", with(session))
	r.Equal(http.StatusServiceUnavailable, out.status)
	r.Contains(out.body, "still logged in")
	r.Empty(out.cookies)
	r.Equal(http.StatusServiceUnavailable, g.does("GET", "/whoami", "", with(session)).status)
}

func TestAMissingOrDamagedKeyFileIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged")
	require.NoError(t, os.WriteFile(damaged, []byte("no key"), 0o600))
	for file, says := range map[string]string{filepath.Join(dir, "nothing"): "no such file", damaged: "use a copy of web/key"} {
		_, err := web.Open(web.Options{DataDir: dir, KeyFile: file, Listen: httpserve.Listen{Addr: "127.0.0.1:0"}, Log: quiet()})
		require.ErrorContains(t, err, says)
		_, err = web.Link(dir, file, "ann")
		require.ErrorContains(t, err, says)
	}
}
