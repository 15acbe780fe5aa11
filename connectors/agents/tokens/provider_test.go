package tokens_test

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/tokens"
	"github.com/nodbus/nod/connectors/people/peopletest"
)

// The service accepts the tokens of npm's oidc-provider, an issuer that is not part of nod.
func TestTokensOfOIDCProvider(t *testing.T) {
	if os.Getenv("NOD_OIDC_TEST_NPM") == "" {
		t.Skip("it needs npm and the network: NOD_OIDC_TEST_NPM=1 go test ./connectors/agents/tokens -run OIDCProvider")
	}
	c := exec.Command("node", "testdata/provider.mjs", peopletest.Packages(t, "oidc-provider@9.13.3"))
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.Stderr = os.Stderr
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	issuer := strings.TrimSpace(line)

	token := func(client, audience string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, issuer+"/token", strings.NewReader(
			url.Values{"grant_type": {"client_credentials"}, "resource": {"urn:" + audience}}.Encode()))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth(client, client+"-secret")
		reply, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer reply.Body.Close()
		var body struct {
			AccessToken string `json:"access_token"`
		}
		require.NoError(t, json.NewDecoder(reply.Body).Decode(&body))
		require.Equal(t, http.StatusOK, reply.StatusCode)
		return body.AccessToken
	}
	settings, err := tokens.Parse([]byte(`{"jobs": [
		{"issuer": "` + issuer + `", "audience": "nod", "match": {"repository": "acme/web"}, "agent": "ci-web"},
		{"issuer": "` + issuer + `", "audience": "brief", "match": {"repository": "acme/web"}, "agent": "ci-web"}]}`))
	require.NoError(t, err)
	s, err := tokens.New(settings, slog.New(slog.DiscardHandler))
	require.NoError(t, err)

	valid := token("web", "nod")
	until, err := s.Check(t.Context(), "ci-web", valid)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(10*time.Minute), until, time.Minute)
	refused(t, s, "ci-other", valid, "its agent is ci-web")
	refused(t, s, "ci-web", token("evil", "nod"), "acme/evil")
	refused(t, s, "ci-web", token("web", "other"), "audience")
	refused(t, s, "ci-web", valid[:len(valid)-6]+"AAAAAA", "signature")
	brief := token("web", "brief")
	_, err = s.Check(t.Context(), "ci-web", brief)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := s.Check(t.Context(), "ci-web", brief)
		return err != nil && strings.Contains(err.Error(), "expired")
	}, 10*time.Second, 100*time.Millisecond)
}
