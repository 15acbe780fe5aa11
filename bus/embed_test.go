package bus_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/internal/testlog"
	"github.com/nodbus/nod/schemas"
)

func embed(t testing.TB, o bus.EmbedOptions) *bus.Server {
	t.Helper()
	s, err := bus.Embed(t.Context(), o)
	require.NoError(t, err)
	return s
}

func requireOneLine(t *testing.T, err error, words ...string) {
	t.Helper()
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n")
	for _, w := range words {
		require.ErrorContains(t, err, w)
	}
}

func TestEmbedServesSocketsAndInProcessClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := embed(t, bus.EmbedOptions{DataDir: dir, Version: "v1"})
	for way, option := range map[string]nats.Option{"socket": nats.Name(""), "in process": s.InProcess()} {
		nc, err := nats.Connect(s.URL(), option)
		require.NoError(t, err, way)
		require.GreaterOrEqual(t, nc.MaxPayload(), int64(schemas.MaxPayloadBytes))
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		_, err = js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "s", Subjects: []string{"s"}})
		require.NoError(t, err)
		_, err = js.Publish(t.Context(), "s", nil)
		require.NoError(t, err)
		nc.Close()
	}
	host, _, err := net.SplitHostPort(strings.TrimPrefix(s.URL(), "nats://"))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)

	run, err := bus.ReadRun(dir)
	require.NoError(t, err)
	require.Equal(t, bus.Run{URL: s.URL(), PID: os.Getpid(), Started: run.Started, Version: "v1"}, run)
	require.WithinDuration(t, time.Now(), run.Started, time.Minute)

	require.NoError(t, s.Close())
	_, err = bus.ReadRun(dir)
	require.ErrorIs(t, err, bus.ErrNotRunning)
	_, err = nats.Connect(s.URL())
	require.Error(t, err)

	s = embed(t, bus.EmbedOptions{DataDir: dir})
	defer s.Close()
	nc, err := nats.Connect("", s.InProcess())
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "s")
	require.NoError(t, err)
	require.EqualValues(t, 2, stream.CachedInfo().State.Msgs)
}

func TestEmbedTakesThePreferredPortOrAnyFreeOne(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := taken.Addr().(*net.TCPAddr).Port
	other := embed(t, bus.EmbedOptions{DataDir: t.TempDir(), Port: port})
	require.NotEqual(t, fmt.Sprintf("nats://127.0.0.1:%d", port), other.URL())
	nc, err := nats.Connect(other.URL())
	require.NoError(t, err)
	nc.Close()
	require.NoError(t, other.Close())

	require.NoError(t, taken.Close())
	preferred := embed(t, bus.EmbedOptions{DataDir: t.TempDir(), Port: port})
	require.Equal(t, fmt.Sprintf("nats://127.0.0.1:%d", port), preferred.URL())
	require.NoError(t, preferred.Close())
}

// Embed takes another port if the requested port is taken. It fails if the address belongs to another
// machine.
func TestEmbedRefusesAnAddressOfAnotherMachine(t *testing.T) {
	t.Parallel()
	_, err := bus.Embed(t.Context(), bus.EmbedOptions{DataDir: t.TempDir(), Host: "192.0.2.1", Port: 4222})
	requireOneLine(t, err, "nothing can listen on 192.0.2.1:4222: ")
	requireOneLine(t, err, ": name another address with --listen")
}

func TestEmbedListensOnTheGivenHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := embed(t, bus.EmbedOptions{DataDir: dir, Host: "0.0.0.0"})
	defer s.Close()
	require.Contains(t, s.URL(), "127.0.0.1", "an address that can be dialled")
	nc, err := nats.Connect(s.URL(), nats.RootCAs(filepath.Join(dir, "tls", "ca.pem")))
	require.NoError(t, err)
	nc.Close()
}

func TestEmbedRefusesWithOneLine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		ctx   context.Context
		o     bus.EmbedOptions
		words []string
	}{
		"a file for a directory": {t.Context(), bus.EmbedOptions{DataDir: file}, []string{file, "not a directory", "--data"}},
		"below a file":           {t.Context(), bus.EmbedOptions{DataDir: filepath.Join(file, "x")}, []string{"not a directory", "--data"}},
		"a host of others":       {t.Context(), bus.EmbedOptions{DataDir: t.TempDir(), Host: "192.0.2.1"}, []string{"listen", "192.0.2.1"}},
		"a broken key": {t.Context(), bus.EmbedOptions{DataDir: t.TempDir(), Users: []roles.User{{ID: asAda, PublicKey: "UX"}}},
			[]string{"configure"}},
		"a failing stop":        {t.Context(), bus.EmbedOptions{DataDir: withoutRunFile(t)}, []string{"cannot be used", "remove run.json"}},
		"a caller that is gone": {ended, bus.EmbedOptions{DataDir: t.TempDir()}, []string{"canceled"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bus.Embed(c.ctx, c.o)
			requireOneLine(t, err, c.words...)
		})
	}
	t.Run("a read-only directory", func(t *testing.T) {
		if os.Getuid() == 0 {
			t.Skip("root may write everywhere")
		}
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o500))
		_, err := bus.Embed(t.Context(), bus.EmbedOptions{DataDir: dir})
		requireOneLine(t, err, dir, "permission denied", "--data")
	})
	t.Run("then everything is free again", func(t *testing.T) {
		dir := t.TempDir()
		_, err := bus.Embed(ended, bus.EmbedOptions{DataDir: dir})
		require.Error(t, err)
		require.NoError(t, embed(t, bus.EmbedOptions{DataDir: dir}).Close())
	})
}

// withoutRunFile returns a data directory in which run.json can be neither written nor removed.
func withoutRunFile(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "run.json", "x"), 0o700))
	return dir
}

// The server's log quotes input that the server cannot parse. nod's log must not contain such quotes,
// because the input may be a payload.
func TestServerLogContainsNoPayload(t *testing.T) {
	t.Parallel()
	log := &testlog.Buffer{}
	s := embed(t, bus.EmbedOptions{DataDir: t.TempDir(),
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "nats://"))
	require.NoError(t, err)
	_, err = fmt.Fprint(conn, "CONNECT {}\r\nPUB s 3\r\nmy secret word\r\n")
	require.NoError(t, err)
	_, err = io.ReadAll(conn) // the server closes the connection after input that it cannot parse
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Contains(t, log.String(), "level=WARN")
	require.Contains(t, log.String(), "parser ERROR")
	require.Contains(t, log.String(), "level=DEBUG")
	require.NotContains(t, log.String(), "secret")
}

func TestFilesAreForTheirOwnerAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), `my "data" \n`)
	s := embed(t, bus.EmbedOptions{DataDir: dir})
	defer s.Close()
	for name, mode := range map[string]os.FileMode{"": 0o700, "lock": 0o600, "run.json": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}
}

// BenchmarkFirstStart measures a start on an empty directory, with new keys and accounts, until
// the first reply of JetStream.
func BenchmarkFirstStart(b *testing.B) {
	for b.Loop() {
		dir := b.TempDir()
		keys, err := roles.OpenKeys(dir)
		require.NoError(b, err)
		require.NoError(b, keys.Ensure(roles.First()...))
		users, err := keys.Users()
		require.NoError(b, err)
		s := embed(b, bus.EmbedOptions{DataDir: dir, Users: users, Log: quiet()})
		key, err := nats.NkeyOptionFromSeed(keys.Path(asEngineStore))
		require.NoError(b, err)
		nc, err := nats.Connect("", s.InProcess(), key, nats.CustomInboxPrefix(asEngineStore.InboxPrefix()))
		require.NoError(b, err)
		js, err := jetstream.New(nc)
		require.NoError(b, err)
		_, err = js.AccountInfo(b.Context())
		require.NoError(b, err)
		b.StopTimer()
		nc.Close()
		require.NoError(b, s.Close())
		b.StartTimer()
	}
}
