package hook

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

var errReaderGone = errors.New("the host is gone: nobody reads the hook's answer")

// Lifetime is a context for Run that ends, with a cause that says why, when
// the process is told to stop or the host has closed its end of stdout. A
// write to a closed stdout no longer kills the process, so that it can still
// withdraw. Call stop when done.
func Lifetime(parent context.Context, stdout *os.File) (ctx context.Context, stop context.CancelFunc) {
	ctx, unnotify := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		if awaitReaderGone(stdout) {
			cancel(errReaderGone)
		}
	}()
	return ctx, func() {
		cancel(nil)
		unnotify()
	}
}
