package acp_test

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/acp"
)

func TestListen(t *testing.T) {
	t.Parallel()
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
