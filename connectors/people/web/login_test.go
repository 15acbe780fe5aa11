package web_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people/web"
)

func TestALinkLogsInOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.Equal(http.StatusUnauthorized, r.does("GET", "/whoami", "").status)

	body := `{"token":"` + r.token("ann") + `"}`
	r.NotEqual(http.StatusNoContent, r.does("GET", "/login", body).status, "looking at a link spends nothing")
	first := r.does("POST", "/login", body)
	r.Equal(http.StatusNoContent, first.status, first.body)
	c := first.cookies[0]
	r.True(c.HttpOnly)
	r.Equal(http.SameSiteStrictMode, c.SameSite)
	r.JSONEq(`{"user_id":"ann","name":"Ann"}`, r.does("GET", "/whoami", "", with(c)).body)

	again := r.does("POST", "/login", body)
	r.Equal(http.StatusUnauthorized, again.status)
	r.Empty(again.cookies)
	r.Contains(again.body, "nod login")
}

func TestARestartEndsNoSessionAndRevivesNoLink(t *testing.T) {
	t.Parallel()
	r := start(t)
	session, used, link := r.login("ann"), r.token("ann"), r.token("ann")
	r.Equal(http.StatusNoContent, r.does("POST", "/login", `{"token":"`+used+`"}`).status)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(r.web.URL(), "http://"))
	r.NoError(err)
	r.down()
	r.up("127.0.0.1:" + port)
	r.Equal(http.StatusOK, r.does("GET", "/whoami", "", with(session)).status)
	r.Equal(http.StatusUnauthorized, r.does("POST", "/login", `{"token":"`+used+`"}`).status)
	r.Equal(http.StatusNoContent, r.does("POST", "/login", `{"token":"`+link+`"}`).status)

	made, err := web.Link(r.dir, "", "ann")
	r.NoError(err)
	_, token, _ := strings.Cut(made, "/#login=")
	r.Equal(http.StatusNoContent, r.does("POST", "/login", `{"token":"`+token+`"}`).status)
}

func TestForgedSessionsAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	session, link := r.login("ann"), r.token("ann")
	forged := func(value string) func(*http.Request) {
		return func(req *http.Request) { req.AddCookie(&http.Cookie{Name: session.Name, Value: value}) }
	}
	body, sum, _ := strings.Cut(session.Value, ".")
	for name, change := range map[string]func(*http.Request){
		"none":                func(*http.Request) {},
		"empty":               forged(""),
		"a link's":            forged(link),
		"without a signature": forged(body + "."),
		"another's seal":      forged(body[:len(body)-4] + "AAAA." + sum),
		"no base64":           forged("%%%.%%%"),
	} {
		r.Equal(http.StatusUnauthorized, r.does("GET", "/whoami", "", change).status, name)
	}
	r.Equal(http.StatusUnauthorized, r.does("POST", "/login", `{"token":"`+session.Value+`"}`).status, "a session is no link")
	eve := r.does("POST", "/login", `{"token":"`+r.token("eve")+`"}`)
	r.Equal(http.StatusForbidden, eve.status)
	r.Contains(eve.body, "approvers.people")
	r.Empty(eve.cookies)
}

func TestOtherSitesAndHostsAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	session := r.login("ann")
	host := func(h string) func(*http.Request) { return func(req *http.Request) { req.Host = h } }
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"another host":      {host("nod.example.com"), http.StatusMisdirectedRequest},
		"another port":      {host("127.0.0.1:1"), http.StatusMisdirectedRequest},
		"another origin":    {header("Origin", "https://evil.example"), http.StatusForbidden},
		"no origin's":       {header("Origin", "null"), http.StatusForbidden},
		"its own origin":    {header("Origin", r.web.URL()), http.StatusNoContent},
		"from another site": {header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"from itself":       {header("Sec-Fetch-Site", "same-origin"), http.StatusNoContent},
	} {
		r.Equal(c.status, r.does("POST", "/logout", "", with(session), c.change).status, name)
	}
	page := r.does("GET", "/", "")
	r.Equal(http.StatusOK, page.status)
	r.Contains(page.header.Get("Content-Security-Policy"), "script-src 'self'")
	r.NotContains(page.header.Get("Content-Security-Policy"), "unsafe")
	r.NotRegexp(`<script[^>]*>[^<]|\son\w+=|<style`, page.body, "nothing inline")
}

func TestOversizedAndTooManyLoginsAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.Equal(http.StatusBadRequest, r.does("POST", "/login", `{"token":"`+strings.Repeat("x", 1<<20)+`"}`).status)
	var last answer
	for range 50 {
		if last = r.does("POST", "/login", `{"token":"x"}`); last.status == http.StatusTooManyRequests {
			break
		}
	}
	r.Equal(http.StatusTooManyRequests, last.status)
}

func TestListenRefusesUnsafeAddresses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		listen httpserve.Listen
		fails  string
	}{
		"a network, in the clear":      {httpserve.Listen{Addr: "0.0.0.0:0", PublicURL: public}, "--behind-proxy"},
		"every address, in the clear":  {httpserve.Listen{Addr: ":0", PublicURL: public}, "--behind-proxy"},
		"a proxy, without its name":    {httpserve.Listen{Addr: "0.0.0.0:0", BehindProxy: true}, "public_url"},
		"a public address in clear":    {httpserve.Listen{Addr: "127.0.0.1:0", PublicURL: "http://nod.example.com"}, "https://"},
		"a public address with a path": {httpserve.Listen{Addr: "127.0.0.1:0", PublicURL: public + "/nod"}, "address alone"},
		"half of TLS":                  {httpserve.Listen{Addr: "127.0.0.1:0", TLSCert: "x"}, "--http-key"},
		"no address":                   {httpserve.Listen{Addr: "4280"}, "HOST:PORT"},
		"a proxy":                      {httpserve.Listen{Addr: "0.0.0.0:0", BehindProxy: true, PublicURL: public}, ""},
		"this machine":                 {httpserve.Listen{Addr: "127.0.0.1:0"}, ""},
	} {
		s, err := web.Open(web.Options{DataDir: t.TempDir(), Listen: c.listen, Log: quiet()})
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails, name)
			require.NotContains(t, err.Error(), "\n", name)
			continue
		}
		require.NoError(t, err, name)
		require.NoError(t, s.Stop(t.Context()), name)
	}
}

func TestAnotherPortIfTheRequestedOneIsInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	s, err := web.Open(web.Options{DataDir: t.TempDir(), Listen: httpserve.Listen{Addr: taken.Addr().String()}, Log: quiet()})
	require.NoError(t, err)
	require.Equal(t, taken.Addr().String(), s.Taken())
	require.NotContains(t, s.URL(), taken.Addr().String())
	require.NoError(t, s.Stop(t.Context()))
}

func TestOnlyTheOwnerCanReadTheKeyFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := web.Link(dir, "", "ann")
	require.ErrorContains(t, err, "nod up")
	s, err := web.Open(web.Options{DataDir: dir, Listen: httpserve.Listen{Addr: "127.0.0.1:0"}, Log: quiet()})
	require.NoError(t, err)
	require.NoError(t, s.Stop(t.Context()))
	info, err := os.Stat(filepath.Join(dir, "web", "key"))
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)
}
