package acp_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/acp"
)

func TestListen(t *testing.T) {
	for addr, ok := range map[string]bool{
		"127.0.0.1:0": true, "[::1]:0": true, "localhost:0": true, ":0": true,
		"0.0.0.0:0": false, "[::]:0": false, "192.0.2.1:0": false, "example.com:0": false, "4290": false, "127.0.0.1:nope": false,
	} {
		l, err := acp.Listen(addr, false)
		if !ok {
			require.Error(t, err, addr)
			assert.NotContains(t, err.Error(), "\n")
			continue
		}
		if err != nil && strings.HasPrefix(addr, "[") {
			t.Logf("this machine has no IPv6: %v", err)
			continue
		}
		require.NoError(t, err, addr)
		assert.True(t, l.Addr().(*net.TCPAddr).IP.IsLoopback(), addr)
		require.NoError(t, l.Close())
	}
	l, err := acp.Listen("0.0.0.0:0", true)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "acp-token")
	made, err := acp.Token(path)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(made), 16)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	again, err := acp.Token(path)
	require.NoError(t, err)
	assert.Equal(t, made, again)

	require.NoError(t, os.Chmod(path, 0o640))
	_, err = acp.Token(path)
	assert.ErrorContains(t, err, "chmod 600")
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.WriteFile(path, []byte("  \n"), 0o600))
	_, err = acp.Token(path)
	assert.ErrorContains(t, err, "shorter")
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing else is left there")
	assert.False(t, bytes.Contains([]byte(made), []byte("\n")))
}
