package hookwait_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/cmd/nod/internal/hookwait"
)

func TestUnsettledCallsAreRememberedByToolUntilTheirSessionEnds(t *testing.T) {
	dir := t.TempDir()
	assert.False(t, hookwait.IsUnsettled(dir, "s1", ""))
	require.NoError(t, hookwait.NoteUnsettled(dir, "s1", "Bash"))
	require.NoError(t, hookwait.NoteUnsettled(dir, "s1", "odd\nname"))
	require.NoError(t, hookwait.NoteUnsettled(dir, "s1", "Bash"))
	for tool, want := range map[string]bool{"Bash": true, "odd\nname": true, "": true, "odd": false, "name": false, "Edit": false} {
		assert.Equal(t, want, hookwait.IsUnsettled(dir, "s1", tool), tool)
	}
	assert.False(t, hookwait.IsUnsettled(dir, "s2", "Bash"))
	data, err := os.ReadFile(filepath.Join(dir, "unsettled", "s1"))
	require.NoError(t, err)
	assert.Equal(t, "\"Bash\"\n\"odd\\nname\"\n", string(data))

	hookwait.Settle(dir, "s1")
	assert.False(t, hookwait.IsUnsettled(dir, "s1", ""))
}

func TestNotesThatCannotBeReadCount(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "unsettled"), nil, 0o600)) // the folder of the notes is a file
	assert.True(t, hookwait.IsUnsettled(dir, "s1", "Bash"))
	assert.NoError(t, os.Remove(filepath.Join(dir, "unsettled")))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "unsettled", "s1"), 0o700)) // the file of the session's notes is a folder
	assert.True(t, hookwait.IsUnsettled(dir, "s1", "Bash"))
}

func TestOldNotesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, hookwait.NoteUnsettled(dir, "old", "Bash"))
	require.NoError(t, hookwait.NoteUnsettled(dir, "young", "Bash"))
	past := time.Now().Add(-8 * 24 * time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "unsettled", "old"), past, past))
	require.NoError(t, hookwait.NoteUnsettled(dir, "new", "Bash"))
	assert.False(t, hookwait.IsUnsettled(dir, "old", ""))
	assert.True(t, hookwait.IsUnsettled(dir, "young", ""))
}
