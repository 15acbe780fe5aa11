package chaos

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A cut link keeps the bytes that are sent through it, and delivers them when the cut ends.
func TestACutLinkDeliversItsBytesOnceRestored(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	l, err := newLink(server.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, l.close()) }()
	client, err := net.Dial("tcp", l.addr())
	require.NoError(t, err)
	defer client.Close()
	there, err := server.Accept()
	require.NoError(t, err)
	defer there.Close()
	hears := func(want string) {
		got := make([]byte, len(want))
		require.NoError(t, there.SetReadDeadline(time.Now().Add(30*time.Second)))
		_, err := there.Read(got)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	_, err = client.Write([]byte("before"))
	require.NoError(t, err)
	hears("before")

	require.NoError(t, l.sever())
	_, err = client.Write([]byte("during"))
	require.NoError(t, err)
	require.NoError(t, there.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = there.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, l.mend())
	hears("during")
}
