package testprogram

import (
	"os/exec"
	"runtime"
	"sync"
)

// Start is cmd.Start for a program that must not outlive the tests. On Linux the kernel kills the
// program if the test process ends first, for example by SIGKILL or after a time limit.
func Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = endsWithTests(cmd.SysProcAttr)
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	return <-started
}

// starter returns a channel to a thread that runs the functions sent to it. The kernel kills the
// programs when the thread that started them ends, and this thread runs as long as the tests.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})
