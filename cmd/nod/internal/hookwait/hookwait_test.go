package hookwait_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/cmd/nod/internal/hookwait"
)

// asHook is an environment variable that contains a data directory. If it is set, this test binary acts
// as a hook that waits.
const asHook = "NOD_TEST_WAITS_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asHook); dir != "" {
		for _, w := range []hookwait.Wait{{SessionID: "S", PendingID: "killed"}, {SessionID: "S", PendingID: "sidecar", Resumable: true}} {
			if _, err := hookwait.Hold(dir, w); err != nil {
				panic(err)
			}
		}
		fmt.Println("waits")
		select {}
	}
	os.Exit(m.Run())
}

func swept(t *testing.T, dir string, err error) (waits []string) {
	require.ErrorIs(t, hookwait.Sweep(dir, func(w hookwait.Wait) error {
		waits = append(waits, fmt.Sprintf("%s.%s %v", w.SessionID, w.PendingID, w.Resumable))
		return err
	}), err)
	return waits
}

// A sweep does not report a waiting hook. It reports a dead hook at each sweep until the report
// succeeds.
func TestAHookThatIsKilledIsReported(t *testing.T) {
	dir := t.TempDir()
	require.Empty(t, swept(t, dir, nil), "nobody ever waited")
	over, err := hookwait.Hold(dir, hookwait.Wait{SessionID: "S", PendingID: "waits"})
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asHook+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = fmt.Fscanln(out, new(string))
	require.NoError(t, err)
	require.Empty(t, swept(t, dir, nil))

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	both := []string{"S.killed false", "S.sidecar true"}
	gone := errors.New("nod is not there")
	require.ElementsMatch(t, both, swept(t, dir, gone))
	require.ElementsMatch(t, both, swept(t, dir, nil))
	require.Empty(t, swept(t, dir, nil))
	over()
	require.Empty(t, swept(t, dir, nil))
	left, err := os.ReadDir(hookwait.Dir(dir))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A sweep does not report a file that contains no request id.
func TestOtherFilesAreNotReported(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(hookwait.Dir(dir), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(hookwait.Dir(dir), "x"), []byte("../etc"), 0o600))
	require.Empty(t, swept(t, dir, nil))
}
