package rig

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Document returns the text of a file, named by its path from the root of the repository.
func Document(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../..", name))
	require.NoError(t, err)
	return string(data)
}
