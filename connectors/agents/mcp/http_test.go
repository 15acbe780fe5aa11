package mcp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/mcp"
	"github.com/nodbus/nod/schemas"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// The server refuses requests that may come from a web page, and requests without the token.
func TestRefusedHTTPRequests(t *testing.T) {
	t.Parallel()
	n := fake(func(context.Context, schemas.Request) (schemas.Decision, error) {
		t.Error("nod was asked")
		return schemas.Decision{}, nil
	})
	handler, err := serve(t, n, mcp.Options{}).Handler(mcp.HTTPOptions{Token: token, Hosts: []string{"devbox.example"}})
	require.NoError(t, err)
	server := web(t, serve(t, n, mcp.Options{}))
	server.Config.Handler = handler
	own := strings.TrimPrefix(server.URL, "http://")
	for name, row := range map[string]struct {
		host   string
		header map[string]string
		want   int
	}{
		"a client":                      {own, nil, http.StatusOK},
		"by localhost":                  {"localhost:1", nil, http.StatusOK},
		"by IPv6":                       {"[::1]:4281", nil, http.StatusOK},
		"by a name that was given":      {"DevBox.example:80", nil, http.StatusOK},
		"typed by a person":             {own, map[string]string{"Sec-Fetch-Site": "none"}, http.StatusOK},
		"by a name of its own":          {"evil.example", nil, http.StatusForbidden},
		"by a name that begins so":      {"localhost.evil.example", nil, http.StatusForbidden},
		"by another address":            {"10.0.0.1:4281", nil, http.StatusForbidden},
		"by no name":                    {" ", nil, http.StatusForbidden},
		"from a page":                   {own, map[string]string{"Origin": "https://evil.example"}, http.StatusForbidden},
		"from a page on this machine":   {own, map[string]string{"Origin": server.URL}, http.StatusForbidden},
		"from a page without an origin": {own, map[string]string{"Origin": "null"}, http.StatusForbidden},
		"from a page, as browsers say":  {own, map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		"without the token":             {own, map[string]string{"Authorization": ""}, http.StatusUnauthorized},
		"with another token":            {own, map[string]string{"Authorization": "Bearer " + token + "x"}, http.StatusUnauthorized},
		"with half of it":               {own, map[string]string{"Authorization": "Bearer " + token[:8]}, http.StatusUnauthorized},
		"as a basic password":           {own, map[string]string{"Authorization": "Basic " + token}, http.StatusUnauthorized},
		"as a form's text":              {own, map[string]string{"Content-Type": "text/plain"}, http.StatusUnsupportedMediaType},
		"without a type":                {own, map[string]string{"Content-Type": ""}, http.StatusUnsupportedMediaType},
	} {
		for _, version := range []string{"", later} {
			t.Run(name+" "+version, func(t *testing.T) {
				body := initialize
				if version == later {
					body = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
				}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+mcp.Path, strings.NewReader(body))
				require.NoError(t, err)
				r.Host = row.host
				r.Header.Set("Authorization", "Bearer "+token)
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
				if version != "" {
					r.Header.Set("Mcp-Protocol-Version", version)
					r.Header.Set("Mcp-Method", "server/discover")
				}
				for k, v := range row.header {
					r.Header.Set(k, v)
				}
				answer, err := http.DefaultClient.Do(r)
				require.NoError(t, err)
				defer answer.Body.Close()
				said, err := io.ReadAll(answer.Body)
				require.NoError(t, err)
				assert.Equal(t, row.want, answer.StatusCode, string(said))
				assert.Empty(t, answer.Header.Get("Access-Control-Allow-Origin"))
			})
		}
	}
}

func TestInvalidTokens(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "short", "two words of some length", "  \n"} {
		_, err := serve(t, fake(nil), mcp.Options{}).Handler(mcp.HTTPOptions{Token: bad})
		assert.Error(t, err, bad)
	}
}

// Without HTTPOptions.Hosts, the server does not listen at an address that other machines can reach.
func TestListeningForOtherMachinesNeedsAllowedHosts(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		_, err := mcp.Listen(t.Context(), addr, nil)
		assert.ErrorContains(t, err, "--allow-host", addr)
		l, err := mcp.Listen(t.Context(), addr, []string{"devbox"})
		if assert.NoError(t, err, addr) {
			assert.NoError(t, l.Close())
		}
	}
	_, err := mcp.Listen(t.Context(), "here", nil)
	assert.ErrorContains(t, err, "127.0.0.1:4281")
}

type namedHost struct {
	name string
	next http.RoundTripper
}

func (c namedHost) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host = c.name
	return c.next.RoundTrip(r)
}

// A request over HTTP belongs to the nod session in the client's header. If there is no such header, it
// belongs to the client's session with the server and, if there is none, to Options.Session. The
// request's project is always the one that the client names, never the server's directory.
func TestARequestOverHTTPBelongsToTheNamedSession(t *testing.T) {
	t.Parallel()
	asked := make(chan schemas.Request, 10)
	n := fake(func(_ context.Context, r schemas.Request) (schemas.Decision, error) {
		asked <- r
		return schemas.Decision{Outcome: schemas.Denied, SessionID: r.SessionID, PendingID: r.PendingID}, nil
	})
	handler, err := serve(t, n, mcp.Options{}).Handler(mcp.HTTPOptions{Token: token, Hosts: []string{"devbox.example"}})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	from := func(version string, header map[string][]string) schemas.Request {
		c := reachHTTP(t, server.URL, version, bearer{header, transport()}, nil)
		calls(t, c, "approve", use("Deploy", `{}`, ""))
		return <-asked
	}
	first, second := from(earlier, nil), from(earlier, nil)
	assert.NotEqual(t, first.SessionID, second.SessionID, "two clients, two sessions")
	assert.NotEqual(t, session, first.SessionID)
	assert.Equal(t, session, from(later, nil).SessionID, "this one has none of its own")
	for _, version := range []string{earlier, later} {
		named := from(version, map[string][]string{mcp.SessionHeader: {"fix-ci"}, mcp.ProjectHeader: {"/home/ann/app"}, "Nod-Visit": {"forged"}})
		assert.Equal(t, "fix-ci", named.SessionID)
		assert.Equal(t, "/home/ann/app", named.Project)
		assert.Equal(t, "devbox", named.Host)
	}
	assert.Empty(t, first.Project)
	for host, header := range map[string]string{"elsewhere": "devbox.example", "devbox": "localhost:80"} {
		c := reachHTTP(t, server.URL, later, namedHost{header, bearer{next: transport()}}, nil)
		calls(t, c, "approve", use("Deploy", `{}`, ""))
		assert.Equal(t, host, (<-asked).Host, "what comes through a proxy is not from here")
	}
	assert.Regexp(t, `^h-[0-9a-f]{32}$`, from(later, map[string][]string{mcp.SessionHeader: {"a.b >"}}).SessionID)
}
