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
	errReaderGone = errors.New("the host is gone: it no longer reads the hook's answer")
	errParentGone = errors.New("the host has stopped the hook")
)

const parentEvery = 500 * time.Millisecond

// Lifetime returns a context for Run. The context ends when the process gets a signal to stop, when the
// host closes its end of stdout, or when the parent process is gone, because a host may kill only the
// shell that runs the hook. The cause of the context says which of these it was. Until the caller calls
// stop, a write to a closed stdout does not kill the process, so that the process can still withdraw
// its request. The caller must call stop.
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
