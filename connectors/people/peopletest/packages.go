package peopletest

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Packages installs packages from npm for a test and returns their directory.
func Packages(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("npm", append([]string{"install", "--no-audit", "--no-fund", "--prefix", dir}, names...)...).CombinedOutput()
	require.NoError(t, err, "npm install: %s", out)
	return dir
}
