package web_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// withIssuer returns the settings of the tests with an issuer. Members of the issuer's group nod-ops may
// decide up to medium risk, and members of its group nod-security everything.
func withIssuer(r *rig, issuer, permissionsRule, more string) []byte {
	file := filepath.Join(r.t.TempDir(), "secret")
	r.NoError(os.WriteFile(file, []byte(clientSecret+"\n"), 0o600))
	return fmt.Appendf(nil, `{"permissions": {%s"join_identical": false, "remember_denials_seconds": 0}, "approvers": {
		"people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "web", "user_id": "ann"}]}%s],
		"groups": [{"name": "ops", "oidc_groups": ["nod-ops"], "max_risk": "medium"}, {"name": "security", "oidc_groups": ["nod-security", "Ann"]}]
	}, "connectors": {"web": {"public_url": "http://127.0.0.1:4280", "oidc": {"issuer": %q, "client_id": %q, "client_secret_file": %q, "label": "Acme", "scopes": ["profile", "groups", "offline_access"]}}}}`,
		permissionsRule, more, issuer, clientID, file)
}

// company is a nod whose people log in at an issuer.
type company struct {
	*rig
	issuer *testIssuer
}

func startCompany(t *testing.T) *company {
	t.Helper()
	c := &company{rig: start(t), issuer: newIssuer(t, issuerKey)}
	c.applies("", "")
	c.JSONEq(`{"label":"Acme"}`, c.does("GET", "/login/oidc", "").body, "the inbox of nod itself offers the login")
	c.rig = c.oidcGateway(0, 0)
	return c
}

func (c *company) applies(rule, more string) {
	c.t.Helper()
	owner := connector.NewOwner(c.connect(roles.ID{Role: roles.Owner}), web.Name)
	_, err := owner.ApplySettings(c.ctx, withIssuer(c.rig, c.issuer.URL, rule, more))
	c.NoError(err)
}

// oidcGateway returns a rig with a gateway that asks the issuer again about a login after the time
// recheck.
func (c *company) oidcGateway(recheck, lasts time.Duration) *rig {
	c.t.Helper()
	desk := connector.NewDesk(c.connect(roles.ConnectorID(web.Name)), web.Name)
	s, err := web.Open(web.Options{
		DataDir: c.t.TempDir(), KeyFile: c.key(), Listen: httpserve.Listen{Addr: "127.0.0.1:0"}, Check: 20 * time.Millisecond,
		Desk: desk, Registry: desk, LoginCodes: desk, Records: desk, Logins: desk, Recheck: recheck, LoginAge: lasts, Log: quiet(),
	})
	c.NoError(err)
	c.t.Cleanup(func() { c.NoError(s.Stop(context.Background())) })
	other := *c.rig
	other.web, other.at = &embed.Web{Server: s}, ""
	c.issuer.change(func() { c.issuer.redirectURI = s.URL() + "/login/oidc/callback" })
	return &other
}

// begins begins a login, and returns the flow's cookie and the address at the issuer.
func (c *company) begins(page string) (*http.Cookie, string) {
	c.t.Helper()
	got := c.does("POST", "/login/oidc", fmt.Sprintf(`{"page":%q}`, page))
	c.Equal(http.StatusOK, got.status, got.body)
	var reply struct{ URL string }
	c.NoError(json.Unmarshal([]byte(got.body), &reply))
	c.Len(got.cookies, 1)
	return got.cookies[0], reply.URL
}

// atIssuer opens the issuer's address at which a login begins. It returns the path and query of the
// callback to which the issuer redirects the browser.
func (c *company) atIssuer(at string) string {
	c.t.Helper()
	resp, err := unredirected().Get(at)
	c.NoError(err)
	defer resp.Body.Close()
	c.Equal(http.StatusFound, resp.StatusCode)
	back, err := resp.Location()
	c.NoError(err)
	return back.RequestURI()
}

// unredirected returns a client that follows no redirects.
func unredirected() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// calls sends a GET for a path of the inbox, and follows no redirects.
func (c *company) calls(path string, change ...func(*http.Request)) answer {
	c.t.Helper()
	return c.doesBy(unredirected(), "GET", path, "", change...)
}

// tries logs in as the issuer's person, and returns the reply of the callback.
func (c *company) tries() answer {
	c.t.Helper()
	flow, at := c.begins("#/")
	return c.calls(c.atIssuer(at), with(flow))
}

// enters logs in, and returns the session's cookie.
func (c *company) enters() *http.Cookie {
	c.t.Helper()
	got := c.tries()
	c.Equal(http.StatusSeeOther, got.status, got.body)
	return session(got)
}

func session(a answer) *http.Cookie {
	for _, c := range a.cookies {
		if strings.HasPrefix(c.Name, "nod_session") && c.MaxAge > 0 {
			return c
		}
	}
	return nil
}

// answers allows a request over a new WebSocket of a session.
func (c *company) answers(in *http.Cookie, id string) *schemas.Decision {
	c.t.Helper()
	s, _, err := c.dials(with(in))
	c.NoError(err)
	defer s.conn.CloseNow()
	reply, _ := s.gets("permission.respond", map[string]any{"session_id": "S", "pending_id": id, "option_id": "allow_once"})
	c.Equal("response", reply.Type, "%+v", reply)
	return reply.Payload.Decision
}

// keepsSecret requires that neither a session's cookie nor its stored login contains a readable token of
// the issuer.
func (c *company) keepsSecret(in *http.Cookie) {
	c.t.Helper()
	body, _, _ := strings.Cut(in.Value, ".")
	plain, err := base64.RawURLEncoding.DecodeString(body)
	c.NoError(err)
	var token struct{ ID string }
	c.NoError(json.Unmarshal(plain, &token))
	sealed, revision, err := connector.NewDesk(c.connect(roles.ConnectorID(web.Name)), web.Name).LoadLogin(c.ctx, token.ID)
	c.NoError(err)
	c.NotZero(revision)
	stored, err := base64.RawURLEncoding.DecodeString(sealed)
	c.NoError(err)
	c.issuer.change(func() {
		for _, tokens := range []map[string]bool{c.issuer.refresh, c.issuer.access} {
			for secret := range tokens {
				c.NotContains(string(plain), secret)
				c.NotContains(string(stored), secret)
			}
		}
	})
	c.NotContains(string(stored), "s-ann")
}
