package bus

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A position is intact only if it is complete. The server's own check accepts some incomplete positions.
func TestATornPositionIsNotIntact(t *testing.T) {
	t.Parallel()
	for name, intact := range map[string][]byte{
		"nothing unacknowledged": {stateMagic, stateVersion, 2, 7, 2, 7, 0, 0},
		"two unacknowledged":     {stateMagic, stateVersion, 2, 7, 4, 9, 2, 100, 1, 1, 0, 2, 2, 2, 0},
		"one redelivered":        {stateMagic, stateVersion, 2, 7, 4, 9, 1, 100, 2, 2, 1, 1, 2, 3},
		"long numbers":           {stateMagic, stateVersion, 0x80, 1, 0xff, 0x7f, 0x80, 1, 0xff, 0x7f, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, intactState(intact))
			for length := range intact {
				require.False(t, intactState(intact[:length]), "the first %d bytes", length)
			}
			require.False(t, intactState(append(intact, 0)))
			require.False(t, intactState(make([]byte, len(intact))))
		})
	}
	require.False(t, intactState([]byte{stateMagic, stateVersion, 2, 7, 4, 9, 2, 100, 1, 1, 0, 0, 0, 0, 0}), "a lost page of entries")
	require.True(t, intactState([]byte{stateMagic, 1, 2}), "another version is left to the server")
	require.False(t, intactState([]byte{stateMagic, stateVersion, 2, 7, 4, 9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1}), "too many entries")
}
