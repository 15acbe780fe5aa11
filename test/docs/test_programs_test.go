package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Tests write programs with package testprogram instead of os.WriteFile, because a written program
// sometimes fails with "text file busy" if another test forks at the same time.
func TestProgramsAreWrittenByTestprogram(t *testing.T) {
	executable := regexp.MustCompile(`os\.WriteFile\(.*0o[0-7]*[1357][0-7]*\)`)
	require.NoError(t, filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(source)) {
			if executable.MatchString(line) {
				t.Errorf("%s: use testprogram.Write: %s", path, strings.TrimSpace(line))
			}
		}
		return nil
	}))
}
