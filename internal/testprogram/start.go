package testprogram

import (
	"os/exec"
	"runtime"
	"sync"
)

// Start starts a program like cmd.Start, but the program must not outlive the tests. On Linux the
// kernel kills it if the test process ends first, for example by SIGKILL or after a time limit.
func Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = endsWithTests(cmd.SysProcAttr)
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	return <-started
}

// starter returns a channel. A thread runs the functions that are sent to this channel. The thread
// lives as long as the tests, because the kernel kills a program when the thread that started it
// ends.
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
