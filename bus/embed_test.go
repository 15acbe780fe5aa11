package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
)

func TestEmbedFirst(t *testing.T) {
	dir := t.TempDir()
	k, err := roles.OpenKeys(dir)
	require.NoError(t, err)
	require.NoError(t, k.Ensure(roles.First()...))
	us, err := k.Users()
	require.NoError(t, err)
	st := time.Now()

	s, err := bus.Embed(context.Background(), bus.EmbedOptions{DataDir: dir, Users: us, Port: 4222})
	require.NoError(t, err)
	t.Log(time.Since(st), s.URL())
	opt, err := nats.NkeyOptionFromSeed(k.Path(roles.ID{Role: roles.EngineStore}))
	require.NoError(t, err)
	nc, err := nats.Connect(s.URL(), s.InProcess(), opt, nats.CustomInboxPrefix("_INBOX.engine-store"))
	require.NoError(t, err)
	js, _ := jetstream.New(nc)
	_, err = js.CreateStream(context.Background(), jetstream.StreamConfig{Name: "permission_log", Subjects: []string{"nod.v1.log.>"}})
	require.NoError(t, err)
	nc.Close()
	require.NoError(t, s.Close())
}
