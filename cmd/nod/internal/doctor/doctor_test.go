package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/agents/hook"
)

func options(dir string) Options {
	return Options{Place: bus.Place{DataDir: dir}, DataDir: dir, Version: "0.5.0", Log: slog.New(slog.DiscardHandler), Try: answers}
}

// answers is a test call of a hook that always succeeds.
func answers(context.Context, hook.Host, hook.Installed) error { return nil }

// says fails the test unless a finding of this level contains the text.
func says(t *testing.T, found []Finding, level Level, text string) {
	t.Helper()
	for _, f := range found {
		if f.Level == level && strings.Contains(f.What+": "+f.Do, text) {
			return
		}
	}
	assert.Fail(t, fmt.Sprintf("no finding is %s and says %q", level, text), "%+v", found)
}

func TestDoctorRatesDifferencesOfVersions(t *testing.T) {
	for theirs, want := range map[string]Level{
		"0.5.0": OK, "0.5.9": Note, "0.4.7": Note, "0.6.0": Note, "0.3.9": Wrong, "0.7.0": Wrong, "1.5.0": Wrong,
		"0.5.0-rc.1": Note, "": Note, "devel": Note,
	} {
		assert.Equal(t, want, versions("x", "it", theirs, "0.5.0", "do").Level, theirs)
	}
}

func TestFilesForTheOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a [b]*")
	says(t, files(dir), Note, "there is no data directory")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "keys"), 0o700))
	key, settings := filepath.Join(dir, "keys", "owner.nk"), filepath.Join(dir, "settings.json")
	require.NoError(t, os.WriteFile(key, nil, 0o600))
	require.NoError(t, os.WriteFile(settings, nil, 0o644))
	found := files(dir)
	require.Len(t, found, 1)
	assert.Equal(t, OK, found[0].Level)

	for path, c := range map[string]struct {
		mode os.FileMode
		do   string
	}{
		dir: {0o750, "chmod go-rwx " + dir}, key: {0o640, "chmod go-rwx " + key}, settings: {0o664, "chmod go-w " + settings},
	} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, os.Chmod(path, c.mode))
		found := files(dir)
		require.Len(t, found, 1)
		says(t, found, Wrong, c.do)
		require.NoError(t, os.Chmod(path, info.Mode().Perm()))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	says(t, files(filepath.Join(dir, "file")), Wrong, "is no directory")
}
