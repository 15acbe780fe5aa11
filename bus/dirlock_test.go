package bus_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/internal/testlog"
)

func TestSecondServerOnOneDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := embed(t, bus.EmbedOptions{DataDir: dir})
	_, err := bus.Embed(t.Context(), bus.EmbedOptions{DataDir: dir})
	require.ErrorIs(t, err, bus.ErrInUse)
	requireOneLine(t, err, dir, fmt.Sprintf("process %d", os.Getpid()), s.URL(), "--data")

	require.NoError(t, os.Remove(filepath.Join(dir, "run.json")))
	_, err = bus.Embed(t.Context(), bus.EmbedOptions{DataDir: dir})
	requireOneLine(t, err, dir, "in use by a running nod:", "--data")
	require.NoError(t, s.Close())
}

const childDir = "NOD_TEST_EMBED_CHILD"

// TestEmbedChild is no test of its own: TestKilledServer runs it as the process that it kills.
func TestEmbedChild(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("runs only as the child process of TestKilledServer")
	}
	s := embed(t, bus.EmbedOptions{DataDir: dir})
	nc, err := nats.Connect("", s.InProcess())
	require.NoError(t, err)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "s", Subjects: []string{"s"}, AllowMsgTTL: true})
	require.NoError(t, err)
	for i := 0; ; i++ {
		if _, err = js.Publish(t.Context(), "s", fmt.Append(nil, i)); err != nil {
			return
		}
		fmt.Println("acknowledged", i)
	}
}

// A server that is killed during writes leaves an unlocked directory, and a run.json that readers
// recognise as stale. No acknowledged message is lost.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestEmbedChild$", "-test.v")
	child.Env = append(os.Environ(), childDir+"="+dir)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	acknowledged := readUntil(t, out, "acknowledged 100\n")

	_, err = bus.Embed(t.Context(), bus.EmbedOptions{DataDir: dir})
	require.ErrorIs(t, err, bus.ErrInUse)
	requireOneLine(t, err, fmt.Sprintf("process %d", child.Process.Pid))
	_, err = bus.ReadRun(dir)
	require.NoError(t, err)

	require.NoError(t, child.Process.Kill())
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	require.Error(t, child.Wait())
	acknowledged += strings.Count(string(rest), "acknowledged")

	_, err = bus.ReadRun(dir)
	require.ErrorIs(t, err, bus.ErrNotRunning)
	requireOneLine(t, err, fmt.Sprintf("process %d is gone", child.Process.Pid))

	log := &testlog.Buffer{}
	s := embed(t, bus.EmbedOptions{DataDir: dir, Log: slog.New(slog.NewTextHandler(log, nil))})
	defer s.Close()
	require.NotContains(t, log.String(), "level=WARN", "its user need not worry")
	require.Regexp(t, "level=INFO.*linear scan", log.String())
	nc, err := nats.Connect("", s.InProcess())
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "s")
	require.NoError(t, err)
	require.GreaterOrEqual(t, int(stream.CachedInfo().State.Msgs), acknowledged)
}

func readUntil(t *testing.T, r io.Reader, line string) int {
	t.Helper()
	var seen bytes.Buffer
	for !strings.Contains(seen.String(), line) {
		_, err := io.CopyN(&seen, r, 1)
		require.NoError(t, err, seen.String())
	}
	return strings.Count(seen.String(), "acknowledged")
}

func TestADamagedRunFileIsAnError(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"":                            "damaged",
		`{"url":"nats://x"}`:          "damaged",
		`{"url":"nats://x","pid":-1}`: "damaged",
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "run.json"), []byte(content), 0o600))
		_, err := bus.ReadRun(dir)
		requireOneLine(t, err, want)
		require.NoError(t, embed(t, bus.EmbedOptions{DataDir: dir}).Close(), "a start replaces it")
	}
	_, err := bus.ReadRun(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, bus.ErrNotRunning)
	requireOneLine(t, err, "nod up")
}
