package web_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/schemas"
)

func TestAPersonLogsInAtTheIssuer(t *testing.T) {
	t.Parallel()
	c := startCompany(t)
	c.JSONEq(`{"label":"Acme"}`, c.does("GET", "/login/oidc", "").body)
	flow, at := c.begins("#/session/S")
	c.True(flow.HttpOnly)
	c.Equal(http.SameSiteLaxMode, flow.SameSite)
	asked, err := url.Parse(at)
	c.NoError(err)
	for _, secret := range []string{asked.Query().Get("state"), asked.Query().Get("nonce")} {
		c.NotContains(flow.Value, secret)
	}
	callback := c.atIssuer(at)
	got := c.calls(callback, with(flow))
	c.Equal(http.StatusSeeOther, got.status, got.body)
	c.Equal("/#/session/S", got.header.Get("Location"))
	in := session(got)
	c.Equal(http.SameSiteStrictMode, in.SameSite)
	c.JSONEq(fmt.Sprintf(`{"user_id":"%s|s-ann","name":"Ann (s-ann)"}`, c.issuer.URL), c.does("GET", "/whoami", "", with(in)).body)

	open := c.asks("S", "a", `{}`)
	c.Equal(schemas.Allowed, c.answers(in, "a").Outcome)
	d, err := open.Await(c.ctx)
	c.NoError(err)
	c.Equal("Ann (s-ann)", d.By.Name)
	data, err := json.Marshal(d)
	c.NoError(err)
	c.NotContains(string(data), c.issuer.URL, "the agent does not learn the issuer or the groups")

	c.keepsSecret(in)
	again := c.calls(callback, with(flow))
	c.Equal(http.StatusBadRequest, again.status, "state and code count once")
	c.Nil(session(again))

	second := c.oidcGateway(0, 0)
	c.Equal(http.StatusOK, second.does("GET", "/whoami", "", with(second.sessionCookie(in.Value))).status, "a session is valid at each gateway with the key")
}

func TestForgedLoginsAreRefused(t *testing.T) {
	t.Parallel()
	c := startCompany(t)
	other := newIssuer(t, newIssuerKey)
	unsigned := func(claims map[string]any) string {
		data, _ := json.Marshal(claims)
		enc := base64.RawURLEncoding.EncodeToString
		return enc([]byte(`{"alg":"none"}`)) + "." + enc(data) + "."
	}
	set := func(claim string, v any) func(map[string]any) {
		return func(claims map[string]any) { claims[claim] = v }
	}
	for name, forge := range map[string]func(){
		"another nonce":        func() { c.issuer.forge = set("nonce", "x") },
		"no nonce":             func() { c.issuer.forge = func(m map[string]any) { delete(m, "nonce") } },
		"another audience":     func() { c.issuer.forge = set("aud", "other") },
		"several audiences":    func() { c.issuer.forge = set("aud", []string{clientID, "other"}) },
		"another party":        func() { c.issuer.forge = set("azp", "other") },
		"another issuer":       func() { c.issuer.forge = set("iss", other.URL) },
		"expired":              func() { c.issuer.forge = set("exp", time.Now().Add(-time.Minute).Unix()) },
		"another subject":      func() { c.issuer.forge = set("sub", "s-bob") },
		"another access token": func() { c.issuer.forge = set("at_hash", "AAAAAAAAAAAAAAAAAAAAAA") },
		"alg none":             func() { c.issuer.sign = unsigned },
		"another key":          func() { c.issuer.sign = other.signed },
		"no token":             func() { c.issuer.sign = func(map[string]any) string { return "" } },
		"the mix-up of two":    func() { c.issuer.iss = other.URL },
		"a response unnamed":   func() { c.issuer.iss = "" },
	} {
		c.issuer.change(forge)
		flow, at := c.begins("#/")
		got := c.calls(c.atIssuer(at), with(flow))
		c.Equal(http.StatusBadGateway, got.status, "%s: %s", name, got.body)
		c.Nil(session(got), name)
		c.issuer.change(func() { c.issuer.forge, c.issuer.sign, c.issuer.iss = nil, nil, c.issuer.URL })
		c.rig = c.oidcGateway(0, 0) // a new gateway, because each gateway limits the rate of logins
	}
	c.NotNil(session(c.tries()))
}

func TestALoginBelongsToTheBrowserThatBeganIt(t *testing.T) {
	t.Parallel()
	c := startCompany(t)
	flow, at := c.begins("#/")
	callback := c.atIssuer(at)
	otherFlow, _ := c.begins("#/")
	state := "state=" + url.QueryEscape(must(url.Parse(callback)).Query().Get("state"))
	for name, got := range map[string]answer{
		"without the cookie":     c.calls(callback),
		"in another browser":     c.calls(callback, with(otherFlow)),
		"without a state":        c.calls(strings.Replace(callback, state, "", 1), with(flow)),
		"with another state":     c.calls(strings.Replace(callback, state, "state=x", 1), with(flow)),
		"with two states":        c.calls(callback+"&"+state, with(flow)),
		"a session in its place": c.calls(callback, with(&http.Cookie{Name: flow.Name, Value: c.login("ann").Value})),
		"a flow as a session":    c.calls("/whoami", with(c.sessionCookie(flow.Value))),
	} {
		c.NotEqual(http.StatusSeeOther, got.status, name)
		c.NotEqual(http.StatusOK, got.status, name)
		c.Nil(session(got), name)
	}
	// The session's id is new even if the browser brings another one along (session fixation).
	fixed := c.rig.login("ann")
	got := c.calls(callback, with(flow), with(fixed))
	c.Equal(http.StatusSeeOther, got.status, got.body)
	c.NotEqual(fixed.Value, session(got).Value)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestALoginReturnsOnlyToThePage(t *testing.T) {
	t.Parallel()
	c := startCompany(t)
	for _, page := range []string{"https://evil.example", "//evil.example", "/\\evil", "#/../..//evil.example", "#/x\r\nSet-Cookie: a=b", "javascript:1", "#login=abc"} {
		data, err := json.Marshal(map[string]string{"page": page})
		c.NoError(err)
		got := c.does("POST", "/login/oidc", string(data))
		var reply struct{ URL string }
		c.NoError(json.Unmarshal([]byte(got.body), &reply), got.body)
		back := c.calls(c.atIssuer(reply.URL), with(got.cookies[0]))
		c.Equal("/#/", back.header.Get("Location"), page)
		c.rig = c.oidcGateway(0, 0)
	}
}

func TestCrossSiteLoginsAndLogoutsAreRefused(t *testing.T) {
	t.Parallel()
	c := startCompany(t)
	in := c.enters()
	for _, from := range []func(*http.Request){header("Origin", "https://evil.example"), header("Sec-Fetch-Site", "cross-site")} {
		c.Equal(http.StatusForbidden, c.does("POST", "/logout", "", with(in), from).status)
		c.Equal(http.StatusForbidden, c.does("POST", "/login/oidc", `{}`, from).status)
	}
	c.Equal(http.StatusOK, c.does("GET", "/whoami", "", with(in)).status)
	out := c.does("POST", "/logout", "", with(in))
	c.Equal(http.StatusOK, out.status)
	c.Contains(out.body, c.issuer.URL+"/logout?client_id=nod")
	c.NotContains(out.body, "token")
	c.Equal(http.StatusUnauthorized, c.does("GET", "/whoami", "", with(in)).status)
}

func TestGroupsMakeApprovers(t *testing.T) {
	t.Parallel()
	c := startCompany(t)
	many := make([]any, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf("group-%d", i)
	}
	for name, x := range map[string]struct {
		groups any
		ok     bool
	}{
		"none":                      {nil, false},
		"of no interest":            {[]any{"staff"}, false},
		"a text":                    {"nod-ops", true},
		"a text of several":         {"nod-ops nod-security", false},
		"an object":                 {map[string]any{"nod-ops": true}, false},
		"a list of objects":         {[]any{map[string]any{"name": "nod-ops"}}, false},
		"nod's own name of a group": {[]any{"ops", "security"}, false},
		"another case":              {[]any{"NOD-OPS"}, false},
		"10,000":                    {append(many, "nod-ops"), true},
		"a number among them":       {[]any{7, "nod-ops"}, true},
	} {
		c.issuer.says("groups", x.groups)
		got := c.tries()
		if x.ok {
			c.Equal(http.StatusSeeOther, got.status, "%s: %s", name, got.body)
		} else {
			c.Equal(http.StatusForbidden, got.status, name)
			c.Contains(got.body, "s-ann", "it says the identity to add")
		}
		c.Equal(x.ok, session(got) != nil, name)
		c.rig = c.oidcGateway(0, 0)
	}
	// If a person's group has the name of an approver, the person does not become that approver.
	c.issuer.says("groups", []any{"Ann"})
	c.issuer.says("name", "Ann")
	c.Contains(c.does("GET", "/whoami", "", with(c.enters())).body, `"name":"Ann (s-ann)"`)
}

func TestAnAddressIdentifiesOnlyIfItIsVerified(t *testing.T) {
	t.Parallel()
	c := startCompany(t)
	settings := strings.Replace(string(withIssuer(c.rig, c.issuer.URL, "", "")), `"client_id"`, `"user_claim": "email", "client_id"`, 1)
	_, err := connector.NewOwner(c.connect(roles.ID{Role: roles.Owner}), web.Name).ApplySettings(c.ctx, []byte(settings))
	c.NoError(err)
	c.issuer.says("email", "ann@example.com")
	c.Equal(http.StatusBadGateway, c.tries().status)
	c.issuer.says("email_verified", "yes")
	c.Equal(http.StatusBadGateway, c.tries().status)
	c.issuer.says("email_verified", true)
	c.Contains(c.does("GET", "/whoami", "", with(c.enters())).body, c.issuer.URL+"|email=ann@example.com")
}

// A link never logs in as a person of an issuer.
func TestNoLinkLogsInAsAPersonOfAnIssuer(t *testing.T) {
	t.Parallel()
	c := startCompany(t)
	c.applies("", fmt.Sprintf(`, {"name": "Cleo", "identities": [{"connector": "web", "user_id": "%s|s-cleo"}]}`, c.issuer.URL))
	c.Equal(http.StatusUnauthorized, c.does("POST", "/login", `{"token":"`+c.token(c.issuer.URL+"|s-cleo")+`"}`).status)
	c.issuer.says("sub", "s-cleo")
	c.issuer.says("groups", nil)
	c.Contains(c.does("GET", "/whoami", "", with(c.enters())).body, `"name":"Cleo"`)
}

// ends reads until the server closes the connection, and returns the error of the last read.
func (s *socket) ends() error {
	for {
		if _, err := s.reads(); err != nil {
			return err
		}
	}
}

func TestARemovedPersonIsOut(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*testIssuer){
		"from the group": func(i *testIssuer) { i.says("groups", []any{"staff"}) },
		"disabled":       func(i *testIssuer) { i.disables() },
		"replaced":       func(i *testIssuer) { i.says("sub", "s-bob") },
	} {
		for _, noRefresh := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, no refresh token: %t", name, noRefresh), func(t *testing.T) {
				t.Parallel()
				c := startCompany(t)
				c.issuer.change(func() { c.issuer.noRefresh = noRefresh })
				c.rig = c.oidcGateway(50*time.Millisecond, 0)
				in := c.enters()
				open, _, err := c.dials(with(in))
				c.NoError(err)
				reply, _ := open.gets("inbox.subscribe", nil)
				c.True(reply.Payload.Success)
				remove(c.issuer)
				err = open.ends()
				c.Equal(websocket.StatusPolicyViolation, websocket.CloseStatus(err), err)
				who := c.does("GET", "/whoami", "", with(in))
				c.Contains([]int{http.StatusUnauthorized, http.StatusForbidden}, who.status, who.body)
				_, _, err = c.dials(with(in))
				c.Error(err)
			})
		}
	}
}

func TestWithoutTheIssuerNothingIsShownOrTaken(t *testing.T) {
	t.Parallel()
	c := startCompany(t)
	c.rig = c.oidcGateway(50*time.Millisecond, 2*time.Second)
	in := c.enters()
	open, _, err := c.dials(with(in))
	c.NoError(err)
	reply, _ := open.gets("inbox.subscribe", nil)
	c.True(reply.Payload.Success)
	c.issuer.change(func() { c.issuer.down = true })
	err = open.ends()
	c.Equal(websocket.StatusTryAgainLater, websocket.CloseStatus(err), err)
	who := c.does("GET", "/whoami", "", with(in))
	c.Equal(http.StatusServiceUnavailable, who.status)
	c.Contains(who.body, c.issuer.URL, "it says why")
	c.NotContains(who.body, `\n`)
	c.issuer.change(func() { c.issuer.down = false })
	c.Eventually(func() bool { return c.does("GET", "/whoami", "", with(in)).status == http.StatusOK }, 30*time.Second, 50*time.Millisecond, "the session goes on")
	c.asks("S", "a", `{}`)
	c.Equal(schemas.Allowed, c.answers(in, "a").Outcome)
}

// Two gateways can use one login at the same time, although the issuer takes each refresh token only
// once.
func TestGatewaysShareALogin(t *testing.T) {
	t.Parallel()
	c := startCompany(t)
	c.rig = c.oidcGateway(time.Nanosecond, 0) // with this interval, each use of a login asks the issuer
	in := c.enters()
	second := c.oidcGateway(time.Nanosecond, 0)
	there := second.sessionCookie(in.Value)
	for range 20 {
		var both sync.WaitGroup
		var a, b answer
		both.Go(func() { a = c.does("GET", "/whoami", "", with(in)) })
		both.Go(func() { b = second.does("GET", "/whoami", "", with(there)) })
		both.Wait()
		c.Equal([]int{http.StatusOK, http.StatusOK}, []int{a.status, b.status}, "%s; %s", a.body, b.body)
	}
	c.Equal(http.StatusOK, c.does("GET", "/whoami", "", with(in)).status)
}

// sessionCookie returns a cookie with the name of the gateway's session cookie.
func (r *rig) sessionCookie(value string) *http.Cookie {
	return &http.Cookie{Name: r.login("ann").Name, Value: value}
}
