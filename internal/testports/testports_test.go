package testports

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// Only one test at a time gets a port, even if no server listens on the port yet. That test can start a
// server on it.
func TestAPortIsReserved(t *testing.T) {
	r, err := Reserve(2)
	require.NoError(t, err)
	require.NotEqual(t, r.Ports[0], r.Ports[1])
	for _, port := range r.Ports {
		_, err := claim(port)
		require.Error(t, err, "a reserved port")
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
	}
	require.NoError(t, r.Release())
	_, err = claim(r.Ports[0])
	require.Error(t, err, "a server listens")
}
