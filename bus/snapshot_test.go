package bus

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// A part of a copy may be sent before the servers of the cluster know its receiver. It is then sent again
// until they know.
func TestAPartOfACopyWaitsForItsReceiver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, err := Embed(ctx, EmbedOptions{DataDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	conn, err := Connect(ctx, Options{URL: server.URL(), Name: "test"})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	sent := make(chan error, 1)
	before := conn.nc.Stats().OutMsgs
	go func() { sent <- conn.sendPart(ctx, "parts", []byte("part")) }()
	require.Eventually(t, func() bool { return conn.nc.Stats().OutMsgs > before }, 10*time.Second, time.Millisecond)
	receiver, err := nats.Connect(server.URL())
	require.NoError(t, err)
	t.Cleanup(receiver.Close)
	parts := make(chan string, 10)
	_, err = receiver.Subscribe("parts", func(m *nats.Msg) {
		parts <- string(m.Data)
		_ = m.Respond(nil) // if Respond fails, the sender reaches its time limit and the test fails
	})
	require.NoError(t, err)
	require.NoError(t, <-sent)
	require.Equal(t, "part", <-parts)
	require.Empty(t, parts, "a part is taken once")

	gone, cancel := context.WithCancel(ctx)
	cancel()
	require.Error(t, conn.sendPart(gone, "nowhere", nil))
}

// unheard simulates JetStream. The reply to its first deletion is lost.
type unheard struct {
	jetstream.JetStream
	deletions int
}

func (u *unheard) DeleteStream(ctx context.Context, name string) error {
	err := u.JetStream.DeleteStream(ctx, name)
	if u.deletions++; u.deletions == 1 && err == nil {
		return context.DeadlineExceeded
	}
	return err
}

func TestAnUnfinishedStoreIsRemovedWithoutAReply(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, err := Embed(ctx, EmbedOptions{DataDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	conn, err := Connect(ctx, Options{URL: server.URL(), Name: "test"})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js := conn.js
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "left", Subjects: []string{"left"}})
	require.NoError(t, err)
	replies := &unheard{JetStream: js}
	conn.js = replies
	require.NoError(t, conn.RemoveUnfinished(ctx, "left"))
	require.Equal(t, 2, replies.deletions)
	_, err = js.Stream(ctx, "left")
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
	require.NoError(t, conn.RemoveUnfinished(ctx, "left"), "a store that is not there is removed")
}
