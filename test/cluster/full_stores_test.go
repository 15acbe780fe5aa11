package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// A NATS server that nod does not run itself has room for only 3 MB. If the server is full, nod refuses each
// request with the reason, even if a rule would decide it, and loses nothing. When the server has room again,
// nod continues without a restart.
func TestStoresWithoutRoomRefuseAndGoOn(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAFullDiskRefusesRequestsAndGoesOn in test/operate fills the disk of one server")
	if testing.Short() {
		t.Skip("left out with -short: a server and an engine as processes")
	}
	c := configure(t, 1)
	config, err := os.ReadFile(c.config(0))
	require.NoError(t, err)
	small := strings.Replace(string(config), "sync_interval: always", "sync_interval: always, max_file_store: 3000000", 1)
	require.NotEqual(t, string(config), small)
	require.NoError(t, os.WriteFile(c.config(0), []byte(small), 0o600))
	c.servers = append(c.servers, c.serve(0))
	_, up := c.engine(1)
	require.Contains(t, <-up, "an engine is up")
	c.letsMeAnswer()
	js := c.owns()
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "FILL", Subjects: []string{"fill"}})
	require.NoError(t, err)
	for range 20 {
		_, err := js.Publish(t.Context(), "fill", make([]byte, 100_000))
		require.NoError(t, err)
	}

	var pending []string
	refused := ""
	payload := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 100_000))
	for n := 0; refused == ""; n++ {
		require.Less(t, n, 40, "the server is never full")
		id := fmt.Sprintf("call-%02d", n)
		_, err := c.run("agent-local", "ask", "--session", "cluster", "--tool", "Frobnicate", "--id", id, "--input", payload, "--async")
		require.Error(t, err)
		if strings.Contains(err.Error(), "exit status 6") {
			pending = append(pending, id)
		} else {
			refused = err.Error()
		}
	}
	require.Contains(t, refused, "nod's stores have no room")
	require.NotEmpty(t, pending)
	require.Len(t, c.pending(), len(pending), "all that was acknowledged is there")

	require.NoError(t, js.DeleteStream(t.Context(), "FILL"))
	require.Eventually(t, func() bool {
		_, err := c.run("agent-local", "ask", "--session", "cluster", "--tool", "Frobnicate", "--id", "after", "--async")
		return err != nil && strings.Contains(err.Error(), "exit status 6")
	}, time.Minute, 100*time.Millisecond)
	for _, id := range append(pending, "after") {
		_, err := c.run("terminal", "allow", id)
		require.NoError(t, err, id)
	}
}

// owns returns JetStream in the stores' account, with the rights of nod's owner.
func (c *cluster) owns() jetstream.JetStream {
	key, err := nats.NkeyOptionFromSeed(filepath.Join(c.dir, "keys", "owner-store.nk"))
	require.NoError(c.t, err)
	nc, err := nats.Connect(c.urls, key, nats.CustomInboxPrefix("_INBOX.owner-store"))
	require.NoError(c.t, err)
	c.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(c.t, err)
	return js
}
