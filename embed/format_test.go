package embed

import (
	"context"
	"errors"
	"io/fs"
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
	"github.com/nodbus/nod/schemas"
)

var quiet = slog.New(slog.DiscardHandler)

// up starts a nod of the version 0.5.0 on a data directory.
func up(t *testing.T, dir string) (*Nod, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return Start(ctx, Options{DataDir: dir, Version: "0.5.0", SyncInterval: time.Second})
}

// lived creates the data directory of a nod that has run, with a pending request.
func lived(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	n, err := up(t, dir)
	require.NoError(t, err)
	conn, err := n.Connect(t.Context(), roles.AgentID("local"))
	require.NoError(t, err)
	asker := bus.NewAsker(conn, "local")
	asked, err := asker.Submit(t.Context(), schemas.Request{
		SessionID: "S", PendingID: "waits", Kind: schemas.KindToolCall, Title: "x", ToolName: "Frobnicate",
		ActionType: schemas.ActionOther, ActionDetails: []byte(`{}`),
	})
	require.NoError(t, err)
	asked.Drop()
	asker.Close()
	conn.Close()
	require.NoError(t, n.Stop(t.Context()))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "settings.json"), []byte("{}"), 0o640))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "logs"), 0o700))
	require.NoError(t, os.Symlink("/nowhere", filepath.Join(dir, "link")))
	return dir
}

// stillWaits checks that nod can run on the directory and that the request is still pending.
func stillWaits(t *testing.T, dir string) {
	t.Helper()
	n, err := up(t, dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Stop(t.Context())) }()
	conn, err := n.Connect(t.Context(), roles.ConnectorID("terminal"))
	require.NoError(t, err)
	defer conn.Close()
	pending, err := connector.NewDesk(conn, "terminal").Pending(t.Context(), schemas.Query{})
	require.NoError(t, err)
	require.Len(t, pending, 1)
	require.Equal(t, "waits", pending[0].PendingID)
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		rel, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		top, _, _ := strings.Cut(rel, "/")
		for _, name := range notData {
			if top == name {
				return nil
			}
		}
		info, err := e.Info()
		require.NoError(t, err)
		content := ""
		switch {
		case e.Type() == fs.ModeSymlink:
			content, err = os.Readlink(path)
		case e.Type().IsRegular():
			var data []byte
			data, err = os.ReadFile(path)
			content = string(data)
		}
		require.NoError(t, err)
		all[rel] = info.Mode().String() + " " + content
		return nil
	}))
	return all
}

func theFormat(t *testing.T, dir string) format {
	t.Helper()
	f, err := readFormat(dir, 9)
	require.NoError(t, err)
	return f
}

func theBackup(t *testing.T, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "backups", "format-1-*"))
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

// move is a step that renames an entry of the data directory.
func move(from, to string) step {
	return step{what: "move " + from, do: func(_ context.Context, dir string) error {
		return os.Rename(filepath.Join(dir, from), filepath.Join(dir, to))
	}}
}

func TestDataMigratesAfterABackup(t *testing.T) {
	t.Parallel()
	dir := lived(t)
	require.Equal(t, format{Format: 1, Nod: "0.5.0"}, theFormat(t, dir))
	require.NoError(t, os.Remove(filepath.Join(dir, formatName)), "a directory from before there was a format")
	before := tree(t, dir)
	steps := []step{move("settings.json", "moved.json"), move("nats", "streams")}
	require.NoError(t, openData(t.Context(), dir, "0.7.0", steps, quiet))
	require.Equal(t, format{Format: 3, Nod: "0.7.0"}, theFormat(t, dir))
	require.NoDirExists(t, filepath.Join(dir, "nats"))
	require.FileExists(t, filepath.Join(dir, "moved.json"))

	backup := theBackup(t, dir)
	require.Equal(t, before, tree(t, backup))
	stillWaits(t, backup)

	after := tree(t, dir)
	require.NoError(t, openData(t.Context(), dir, "0.7.1", steps, quiet), "the second time there is nothing to do")
	require.Equal(t, after, tree(t, dir))
	require.Equal(t, "0.7.1", theFormat(t, dir).Nod)
	theBackup(t, dir)

	_, err := up(t, dir)
	require.ErrorContains(t, err, "has format 3, of nod 0.7.1, and this nod, 0.5.0, knows formats up to 1: install nod 0.7.1 again")
	require.NotContains(t, err.Error(), "\n")
	require.Equal(t, after, tree(t, dir), "a refused directory is as it was")
}

func TestAFailedMigrationStepChangesNothing(t *testing.T) {
	t.Parallel()
	dir := lived(t)
	before := tree(t, dir)
	fails := step{what: "fail", do: func(_ context.Context, dir string) error {
		return errors.Join(os.RemoveAll(filepath.Join(dir, "keys")), errors.New("no luck"))
	}}
	err := openData(t.Context(), dir, "0.7.0", []step{move("nats", "streams"), fails}, quiet)
	require.ErrorContains(t, err, "no luck: the data is as it was, and nod 0.5.0 still reads it")
	require.NotContains(t, err.Error(), "\n")
	require.Equal(t, before, tree(t, dir))
	require.Equal(t, format{Format: 1, Nod: "0.5.0"}, theFormat(t, dir))
	stillWaits(t, dir)
}

// If a nod dies during a step, the backup's path stays in format.json. The next nod on the directory
// restores the backup first, even if it is a version without that step.
func TestAnInterruptedMigrationIsUndoneFirst(t *testing.T) {
	t.Parallel()
	for name, next := range map[string][]step{
		"the newer nod comes again": {move("nats", "streams")},
		"the older one comes back":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			dir := lived(t)
			before := tree(t, dir)
			dies := step{what: "die", do: func(_ context.Context, dir string) error {
				require.NoError(t, os.RemoveAll(filepath.Join(dir, "nats", "jetstream")))
				panic("killed")
			}}
			require.Panics(t, func() { _ = openData(t.Context(), dir, "0.7.0", []step{dies}, quiet) })
			require.NotEqual(t, before, tree(t, dir))

			require.NoError(t, openData(t.Context(), dir, "0.7.0", next, quiet))
			if next == nil {
				require.Equal(t, before, tree(t, dir))
				stillWaits(t, dir)
				return
			}
			require.NoError(t, move("streams", "nats").do(t.Context(), dir))
			require.Equal(t, before, tree(t, dir))
		})
	}
}

func TestUnusableDataIsNotOpened(t *testing.T) {
	t.Parallel()
	if u, err := user.Current(); err == nil && u.Uid != "0" {
		dir := lived(t)
		require.NoError(t, os.Chmod(dir, 0o500))
		t.Cleanup(func() { require.NoError(t, os.Chmod(dir, 0o700)) })
		before := tree(t, dir)
		require.ErrorContains(t, openData(t.Context(), dir, "0.7.0", []step{move("nats", "x")}, quiet), "nothing was changed")
		require.Equal(t, before, tree(t, dir))
	} else {
		t.Log("not shown as root: a directory that cannot be written")
	}
	dir := lived(t)
	for _, content := range []string{"{", "{}", `{"format":0}`, `{"format":"1"}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, formatName), []byte(content), 0o600))
		_, err := up(t, dir)
		require.ErrorContains(t, err, formatName, content)
		require.NotContains(t, err.Error(), "\n")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, formatName), []byte(`{"format":1,"nod":"0.5.0","backup":"/nowhere"}`), 0o600))
	before := tree(t, dir)
	_, err := up(t, dir)
	require.ErrorContains(t, err, "put the data back from /nowhere")
	require.Equal(t, before, tree(t, dir), "nothing is removed before there is something to put back")
}
