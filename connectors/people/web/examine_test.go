package web_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/connectors/people/web/issuer"
	"github.com/nodbus/nod/schemas"
)

// examined examines an issuer with these settings of the client.
func examined(t *testing.T, url, client, secret, public string) []issuer.Result {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte(secret), 0o600))
	c, err := web.Issuer(&schemas.Settings{Connectors: schemas.Connectors{Web: &schemas.WebSettings{
		PublicURL: public, OIDC: &schemas.OIDC{Issuer: url, ClientID: client, ClientSecretFile: file},
	}}})
	require.NoError(t, err)
	return c.Examine(t.Context())
}

const inboxURL = "https://nod.example.com"

// Without a login, nod finds out whether an issuer can be reached, whether it is the one in the settings, and
// whether it accepts the client with its redirect URI and its secret.
func TestAnIssuerIsExaminedWithoutALogin(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, issuerKey)
	i.redirectURI = inboxURL + "/login/oidc/callback"
	requireAccepted(t, i.URL, inboxURL)
	wrong := func(want string, n int, results []issuer.Result) {
		t.Helper()
		require.Greater(t, len(results), n, "%v", results)
		require.ErrorContains(t, results[n].Err, want)
		require.NotContains(t, results[n].Err.Error(), "\n")
		require.NotContains(t, fmt.Sprint(results), clientSecret)
	}
	wrong("register the redirect URI", 1, examined(t, i.URL, clientID, clientSecret, "https://other.example.com"))
	wrong("does not accept the client else", 1, examined(t, i.URL, "else", clientSecret, inboxURL))
	wrong("does not accept the secret of the client nod", 2, examined(t, i.URL, clientID, "another", inboxURL))
	wrong("connectors.web.oidc.issuer", 0, examined(t, i.URL+"/other", clientID, clientSecret, inboxURL))
	wrong("set connectors.web.oidc.issuer to exactly that", 0, examined(t, strings.Replace(i.URL, "127.0.0.1", "localhost", 1), clientID, clientSecret, inboxURL))
	i.change(func() { i.down = true })
	wrong("discovery document", 0, examined(t, i.URL, clientID, clientSecret, inboxURL))
}

// requireAccepted fails the test unless the issuer accepts the client for the inbox at public.
func requireAccepted(t *testing.T, url, public string) {
	t.Helper()
	results := examined(t, url, clientID, clientSecret, public)
	require.Len(t, results, 3)
	for _, r := range results {
		require.NoError(t, r.Err)
		require.False(t, r.Unsure, r.What)
	}
}

// Of an issuer that shows a page in place of a redirect, only a login can tell.
func TestAnIssuerThatTellsNothingIsNotTrusted(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, issuerKey)
	for path, c := range map[string]struct {
		status, n int
		unsure    bool
		text      string
	}{
		"/authorize": {200, 1, true, "only a login shows whether"},
		"/token":     {400, 2, true, "only a login shows whether the client's secret is right"},
		"/keys":      {404, 0, false, "the keys of"},
	} {
		i.change(func() { i.redirectURI, i.replies = inboxURL+"/login/oidc/callback", map[string]int{path: c.status} })
		r := examined(t, i.URL, clientID, clientSecret, inboxURL)[c.n]
		require.Equal(t, c.unsure, r.Unsure, path)
		require.Contains(t, r.What+fmt.Sprint(r.Err), c.text, path)
	}
}
