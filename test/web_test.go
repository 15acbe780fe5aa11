package test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// nod login prints links that the inbox of the nod that runs here takes, for
// those who may answer.
func TestLoginLinksAreForTheInboxThatRuns(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	_, stderr, code := m.run("login")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "start one with nod up")

	m.start("--http", "127.0.0.1:0")
	login := func(args ...string) int {
		t.Helper()
		out, stderr, code := m.run(append([]string{"login"}, args...)...)
		require.Zero(t, code, stderr)
		url, token, ok := strings.Cut(strings.TrimSpace(out), "/#login=")
		require.True(t, ok, out)
		reply, err := http.Post(url+"/login", "application/json", strings.NewReader(`{"token":"`+token+`"}`))
		require.NoError(t, err)
		defer reply.Body.Close()
		return reply.StatusCode
	}
	require.Equal(t, http.StatusNoContent, login())
	require.Equal(t, http.StatusNoContent, login("--user", me(t)))
	require.Equal(t, http.StatusForbidden, login("--user", "eve"))
	require.Equal(t, http.StatusNoContent, login("--login-key", filepath.Join(m.dir, "web", "key")))
}
