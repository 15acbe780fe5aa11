package embed_test

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // many of these tests can run at the same time, because they mostly wait
	os.Exit(m.Run())
}

// used is a nod in use: it has an agent that sends requests and a person who answers them.
type used struct {
	*testing.T
	nod   *embed.Nod
	asker *bus.Asker
	desk  *connector.Desk
}

// start starts a nod that ends with the test.
func start(t *testing.T, o embed.Options) *used {
	t.Helper()
	n, err := embed.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Stop(context.Background())) })
	connect := func(id roles.ID) *bus.Conn {
		conn, err := n.Connect(t.Context(), id)
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		return conn
	}
	u := &used{t, n, bus.NewAsker(connect(roles.AgentID("local")), "local"), connector.NewDesk(connect(roles.ConnectorID("terminal")), "terminal")}
	t.Cleanup(u.asker.Close)
	return u
}

// A second Stop returns the error of the first one, and does not wait for ever.
func TestStopTwice(t *testing.T) {
	t.Parallel()
	n, err := embed.Start(t.Context(), embed.Options{DataDir: t.TempDir()})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, n.Stop(ctx))
	again := make(chan error, 1)
	go func() { again <- n.Stop(ctx) }()
	select {
	case err := <-again:
		require.NoError(t, err)
	case <-ctx.Done():
		t.Fatal("the second Stop hangs")
	}
}

// Two requests pass through every layer. A rule decides the first, and a person the second.
func TestStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	u := start(t, embed.Options{DataDir: t.TempDir()})
	asker, desk := u.asker, u.desk
	me, err := user.Current()
	require.NoError(t, err)

	d, err := asker.Ask(ctx, call("Read", `{"file_path":"/x"}`))
	require.NoError(t, err)
	require.Equal(t, schemas.Allowed, d.Outcome)
	require.Equal(t, schemas.ByPolicy, d.By.Kind)

	asked, err := asker.Submit(ctx, call("Bash", `{"command":"rm -rf build"}`))
	require.NoError(t, err)
	pending, err := desk.Pending(ctx, schemas.Query{})
	require.NoError(t, err)
	require.Len(t, pending, 1)
	said, err := desk.Answer(ctx, schemas.Answer{
		SessionID: "S", PendingID: pending[0].PendingID, Digest: pending[0].Digest,
		OptionID: "allow_once", From: schemas.From{UserID: me.Username},
	})
	require.NoError(t, err)
	d, err = asked.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, said, d)
	require.Equal(t, schemas.By{Kind: schemas.ByHuman, Name: me.Username, Connector: "terminal"}, d.By)
}

func call(tool, input string) schemas.Request {
	return schemas.Request{
		SessionID: "S", Kind: schemas.KindToolCall, Title: tool, ToolName: tool,
		ActionType: schemas.ActionOther, ActionDetails: []byte(input),
	}
}

// If a start fails and its parts cannot be stopped, one line reports both errors.
func TestAFailingStartHasOneLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := filepath.Join(dir, "run.json")
	log := onLog(func(text string) {
		if strings.Contains(text, "Initiating Shutdown") { // there is a directory in place of the run file, so nod fails to remove the file
			require.NoError(t, os.Remove(run))
			require.NoError(t, os.MkdirAll(filepath.Join(run, "x"), 0o700))
		}
	})
	_, err := embed.Start(t.Context(), embed.Options{DataDir: dir, Settings: []byte(`{"x": 1}`), Log: slog.New(log)})
	require.ErrorContains(t, err, "x: is not known here")
	require.ErrorContains(t, err, "remove run.json")
	require.NotContains(t, err.Error(), "\n")
}

// onLog is a log handler that calls a function with each message.
type onLog func(string)

func (onLog) Enabled(context.Context, slog.Level) bool { return true }

func (l onLog) Handle(_ context.Context, r slog.Record) error {
	l(r.Message)
	return nil
}

func (l onLog) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l onLog) WithGroup(string) slog.Handler { return l }
