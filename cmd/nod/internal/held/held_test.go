package held

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestANoteLingers(t *testing.T) {
	n := Notes{Dir: t.TempDir() + "/notes", Linger: time.Hour}
	recent := func() (all []string) {
		notes, err := n.Recent()
		require.NoError(t, err)
		for _, note := range notes {
			all = append(all, string(note))
		}
		return all
	}
	assert.Empty(t, recent())
	first, err := n.Hold([]byte("first"), true)
	require.NoError(t, err)
	second, err := n.Hold([]byte("second"), false)
	require.NoError(t, err)
	first()
	assert.ElementsMatch(t, []string{"first", "second"}, recent())
	none := func([]byte, bool) error { return errors.New("no process has died") }
	require.NoError(t, n.Sweep(none))
	assert.ElementsMatch(t, []string{"first", "second"}, recent())
	n.Linger = time.Nanosecond
	require.NoError(t, n.Sweep(none))
	assert.Equal(t, []string{"second"}, recent())
	second()
	assert.Empty(t, recent())
	left, err := os.ReadDir(n.Dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}
