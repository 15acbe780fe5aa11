package bus_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
)

// A token is not sent in the clear, because anyone who reads it on its way can use it.
func TestATokenCrossesNoNetworkInTheClear(t *testing.T) {
	t.Parallel()
	a := startAdmitting(t, nkeyMode)
	asked := make(chan string, 10)
	a.serve(tellsWhatItIsAsked(asked))
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("ada's-token\n"), 0o600))
	join := func(url string) error {
		conn, err := bus.Join(t.Context(), bus.Place{URL: url, TokenFile: file, DataDir: t.TempDir()}, asAda, quiet())
		if err == nil {
			conn.Close()
		}
		return err
	}
	require.NoError(t, join(a.url))
	require.Equal(t, "ada's-token", <-asked)
	elsewhere := strings.Replace(a.url, "127.0.0.1", "0.0.0.0", 1) // nod cannot know that this address is on this machine
	for _, url := range []string{elsewhere, elsewhere + "," + a.url, strings.Replace(a.url, "nats://", "tls://", 1)} {
		require.Error(t, join(url), url)
	}
	requireOneLine(t, join(elsewhere), "does not speak TLS", "in the clear")
	require.Empty(t, asked, "the token was not sent")
}

func TestATokenFileThatCannotBeUsedIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	for file, word := range map[string]string{
		filepath.Join(dir, "none"): "read the token", write("empty", "\n"): "has no token", write("two", "a b"): "has no token",
		write("long", strings.Repeat("a", 20<<10)): "has no token",
	} {
		_, err := bus.Join(t.Context(), bus.Place{URL: "nats://127.0.0.1:1", TokenFile: file, DataDir: dir}, asAda, quiet())
		requireOneLine(t, err, word)
	}
	token := write("token", "x")
	for _, id := range []roles.ID{asOwner, asTerminal, asEngine, roles.AgentID("a.b")} {
		_, err := bus.Join(t.Context(), bus.Place{URL: "nats://127.0.0.1:1", TokenFile: token, DataDir: dir}, id, quiet())
		requireOneLine(t, err)
		require.NotErrorIs(t, err, bus.ErrNoServer)
	}
	_, err := bus.Join(t.Context(), bus.Place{URL: "nats://127.0.0.1:1", TokenFile: token, Creds: token, DataDir: dir}, asAda, quiet())
	requireOneLine(t, err, "name one of them")
}

// The longest token reaches the token service. A server without a token service takes only short logins, and
// the error says so.
func TestALongTokenIsSentOrNamed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("a", 16<<10)), 0o600))
	join := func(url string) error {
		conn, err := bus.Join(t.Context(), bus.Place{URL: url, TokenFile: file, DataDir: t.TempDir()}, asAda, quiet())
		if err == nil {
			conn.Close()
		}
		return err
	}
	inBothModes(t, func(t *testing.T, m mode) {
		a := startAdmitting(t, m)
		asked := make(chan string, 1)
		a.serve(tellsWhatItIsAsked(asked))
		require.NoError(t, join(a.url))
		require.Len(t, <-asked, 16<<10)
		err := join(startIn(t, m).url)
		requireOneLine(t, err, "too long", "max_control_line")
		require.ErrorIs(t, err, bus.ErrRefused)
	})
}

// NOD_AGENT must not choose among the keys of the data directory, because anyone who sets a hook's
// environment could choose it.
func TestTheEnvironmentChoosesNoKeyOfTheDataDirectory(t *testing.T) {
	t.Setenv("NOD_AGENT", "other")
	for name, p := range map[string]bus.Place{"local": {}, "other": {TokenFile: "token"}} {
		p.DataDir = t.TempDir()
		agent, err := p.Agent()
		require.NoError(t, err)
		require.Equal(t, name, agent)
		p.URL = "nats://127.0.0.1:1"
		agent, err = p.Agent()
		require.NoError(t, err)
		require.Equal(t, "other", agent)
	}
}
