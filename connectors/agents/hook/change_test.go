package hook

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWriteKeepsAFileThatAnotherProgramChanged: Write does not overwrite a file that another
// program changed after nod read it.
func TestWriteKeepsAFileThatAnotherProgramChanged(t *testing.T) {
	for name, before := range map[string]*string{"an old file": new("{}"), "a new file": nil} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "settings.json")
			if before != nil {
				require.NoError(t, os.WriteFile(path, []byte(*before), 0o600))
			}
			change, err := openChange(path)
			require.NoError(t, err)
			change.After = []byte(`{"hooks":{}}`)
			require.NoError(t, os.WriteFile(path, []byte(`{"model":"x"}`), 0o600))

			assert.ErrorContains(t, change.Write(), "changed meanwhile")
			left, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			assert.Len(t, left, 1, "no temporary file stays")
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, `{"model":"x"}`, string(data))
		})
	}
}
