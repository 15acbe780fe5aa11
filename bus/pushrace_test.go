package bus_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
)

// A revoked key that connects again and again has no connection once the revocation is sent.
func TestNoConnectionOutlivesARevocation(t *testing.T) {
	t.Parallel()
	g := startIn(t, operatorMode)
	stolen, err := os.ReadFile(g.keys.Path(asAda))
	require.NoError(t, err)
	over := make(chan struct{})
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []*nats.Conn
	for range 16 {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				nc, err := nats.Connect(g.url, nats.UserCredentialBytes(stolen), nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
				if err != nil {
					continue
				}
				mu.Lock()
				if open = append(open, nc); len(open) > 32 {
					open[0].Close()
					open = open[1:]
				}
				mu.Unlock()
			}
		})
	}
	require.NoError(t, g.keys.Revoke(asAda))
	_, err = bus.PushSigned(t.Context(), g.url, g.keys, []roles.Account{roles.Edge}, quiet())
	require.NoError(t, err)
	close(over)
	all.Wait()
	for _, nc := range open {
		assert.Eventually(t, nc.IsClosed, 10*time.Second, 10*time.Millisecond)
		nc.Close()
	}
}
