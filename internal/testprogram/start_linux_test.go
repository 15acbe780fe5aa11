package testprogram

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asStarter is an environment variable. If it is set, this test program starts another program, which
// would run for an hour, and prints the process id of that program.
const asStarter = "NOD_TEST_STARTS"

func TestAStartedProgramEndsWithTheTests(t *testing.T) {
	if os.Getenv(asStarter) != "" {
		sleeper := exec.Command("sleep", "3600")
		require.NoError(t, Start(sleeper))
		fmt.Println("started", sleeper.Process.Pid)
		select {}
	}
	t.Parallel()
	tests := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	tests.Env = append(os.Environ(), asStarter+"=1")
	out, err := tests.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, tests.Start())
	var pid int
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "started %d", &pid) // other lines do not have the process id
	}
	require.NotZero(t, pid)
	require.NoError(t, syscall.Kill(pid, 0), "the program runs")
	require.NoError(t, tests.Process.Kill())
	require.Error(t, tests.Wait())
	require.Eventually(t, func() bool { return ended(pid) }, 30*time.Second, 10*time.Millisecond)
}

// ended reports whether a process is gone. A process also counts as gone if it has died and waits for
// its parent to collect its status.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	var id int
	var name, state string
	_, err = fmt.Sscanf(string(stat), "%d %s %s", &id, &name, &state)
	return err == nil && state == "Z"
}
