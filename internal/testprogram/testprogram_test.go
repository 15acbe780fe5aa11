package testprogram

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A test can run a script or a copy as soon as Write or Copy returns, even if other goroutines start
// programs at the same time.
func TestProgramsCanBeRunWhileOthersFork(t *testing.T) {
	dir := t.TempDir()
	program, err := exec.LookPath("true")
	require.NoError(t, err)
	var tasks sync.WaitGroup
	for i := range 4 {
		tasks.Go(func() {
			for j := range 100 {
				path := filepath.Join(dir, strconv.Itoa(i), strconv.Itoa(j))
				if j%10 == 0 {
					Copy(t, program, path)
				} else {
					Write(t, path, "#!/bin/sh\nexit 0\n")
				}
				assert.NoError(t, exec.Command(path).Run())
				assert.NoError(t, os.Remove(path))
			}
		})
	}
	tasks.Wait()
}
