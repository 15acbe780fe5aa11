package rig

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Document returns the text of a file. The path of the file begins at the root of the repository.
func Document(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../..", name))
	require.NoError(t, err)
	return string(data)
}
