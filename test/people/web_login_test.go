package people

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// nod login prints links by which approvers log in to the inbox of the local nod.
func TestLoginPrintsLinksToTheLocalInbox(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	_, stderr, code := m.Run("login")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "start one with nod up")

	m.StartNod("--http", "127.0.0.1:0")
	login := func(args ...string) int {
		t.Helper()
		out, stderr, code := m.Run(append([]string{"login"}, args...)...)
		require.Zero(t, code, stderr)
		url, token, ok := strings.Cut(strings.TrimSpace(out), "/#login=")
		require.True(t, ok, out)
		reply, err := http.Post(url+"/login", "application/json", strings.NewReader(`{"token":"`+token+`"}`))
		require.NoError(t, err)
		defer reply.Body.Close()
		return reply.StatusCode
	}
	require.Equal(t, http.StatusNoContent, login())
	require.Equal(t, http.StatusNoContent, login("--user", rig.Me(t)))
	require.Equal(t, http.StatusForbidden, login("--user", "eve"))
	require.Equal(t, http.StatusNoContent, login("--login-key", filepath.Join(m.Dir, "web", "key")))
}

// gateway starts a process that serves the web inbox, and returns its URL and its login token.
func gateway(m *rig.Machine, key string) (url, token string) {
	m.T.Helper()
	c := m.Command("connector", "web", "--http", "127.0.0.1:0", "--login-key", key)
	out, err := c.StdoutPipe()
	require.NoError(m.T, err)
	require.NoError(m.T, c.Start())
	m.T.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 2 && words[0] == "web" {
			url, token, _ = strings.Cut(words[1], "/#login=")
			return url, token
		}
	}
	require.Fail(m.T, "the gateway printed no link")
	return "", ""
}

// Processes that serve the web inbox with the same login key accept each other's login links. Each
// link counts once.
func TestGatewaysShareTheKeyOfLogins(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestLoginPrintsLinksToTheLocalInbox logs in")
	m := rig.NewMachine(t)
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(base64.RawURLEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600))
	m.StartNod("--http", "off")
	first, token := gateway(m, key)
	second, _ := gateway(m, key)
	login := func(url string) int {
		t.Helper()
		reply, err := http.Post(url+"/login", "application/json", strings.NewReader(fmt.Sprintf(`{"token":%q}`, token)))
		require.NoError(t, err)
		defer reply.Body.Close()
		return reply.StatusCode
	}
	require.Equal(t, http.StatusNoContent, login(second))
	for _, url := range []string{first, second} {
		require.Equal(t, http.StatusUnauthorized, login(url), "the token was used before")
	}
	_, stderr, code := m.Run("login")
	require.Equal(t, 1, code, "the data directory has no key")
	require.Contains(t, stderr, "start one with nod up")
}
