package httpserve_test

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/httpserve"
)

func TestATokenIsMadeOnceForItsOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "http", "local.token")
	tokens := make([]string, 8)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range tokens {
		wg.Go(func() { tokens[i], errs[i] = httpserve.Token(path) })
	}
	wg.Wait()
	for i := range tokens {
		require.NoError(t, errs[i])
		require.Equal(t, tokens[0], tokens[i], "all who start at once have the same one")
	}
	require.GreaterOrEqual(t, len(tokens[0]), 16)
	if runtime.GOOS != "windows" { // Windows has no Unix file modes
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left over")
}

func TestUnsafeTokensAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		says string
	}{
		"readable by others": {"long-enough-to-be-one\n", 0o644, "others may read"},
		"short":              {"hunter2\n", 0o600, "at least 16"},
		"empty":              {"", 0o600, "at least 16"},
		"two words":          {"long enough but not one word\n", 0o600, "one word"},
	} {
		path := filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(path, []byte(c.text), c.mode))
		_, err := httpserve.Token(path)
		if runtime.GOOS == "windows" && c.mode != 0o600 {
			continue // Windows has no Unix file modes
		}
		require.ErrorContains(t, err, c.says, name)
		require.ErrorContains(t, err, path, name)
		require.NotContains(t, err.Error(), "hunter2", name)
	}
	dir := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	_, err := httpserve.Token(filepath.Join(dir, "token"))
	require.ErrorContains(t, err, "token")
}

func TestWhichHostsItAnswersTo(t *testing.T) {
	l, at, err := httpserve.Listen{Addr: "127.0.0.1:0", PublicURL: "https://nod.example.com"}.Open(httpserve.Server{})
	require.NoError(t, err)
	defer l.Close()
	require.Equal(t, "https://nod.example.com", at.URL)
	require.True(t, at.Secure)
	for host, answers := range map[string]bool{
		l.Addr().String(): true, "NOD.example.com": true, "nod.example.com:1": false, "evil.example": false, "": false, "127.0.0.1": false,
	} {
		require.Equal(t, answers, at.Answers(host), host)
	}
	require.Contains(t, at.Origins, "https://nod.example.com")
}
