package hook

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

var (
	errReaderGone = errors.New("the host is gone: nobody reads the hook's answer")
	errParentGone = errors.New("the host has stopped the hook")
)

// parentEvery is how often the hook looks whether its parent is still there.
const parentEvery = 500 * time.Millisecond

// Lifetime is a context for Run that ends, with a cause that says why, when
// the process is told to stop, the host has closed its end of stdout, or the
// process's parent is gone: a host that stops its hook may kill only the shell
// that it started it by. A write to a closed stdout no longer kills the process, so that it can still
// withdraw. Call stop when done.
func Lifetime(parent context.Context, stdout *os.File) (ctx context.Context, stop context.CancelFunc) {
	ctx, unnotify := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		if awaitReaderGone(stdout) {
			cancel(errReaderGone)
		}
	}()
	host := os.Getppid()
	go func() {
		for wait(ctx, parentEvery) {
			if os.Getppid() != host {
				cancel(errParentGone)
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		unnotify()
	}
}
