package httpserve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/nodbus/nod/internal/loopback"
)

// Hook is the server of a webhook, which another service calls, such as a chat service with a person's
// answer.
type Hook struct {
	Setting string           // the path of the webhook's settings, for errors
	Listen  string           // the address to listen on, HOST:PORT
	TLS     *tls.Certificate // the certificate; nil behind a reverse proxy, where Listen must be a loopback address
}

const (
	hookRead = 15 * time.Second
	hookStop = 5 * time.Second
)

// Check returns an error of one line if the address is malformed, or if other machines could call the
// webhook without TLS.
func (h *Hook) Check() error {
	host, _, err := net.SplitHostPort(h.Listen)
	switch {
	case err != nil:
		return fmt.Errorf("%s.listen: it must be HOST:PORT, such as 127.0.0.1:4281", h.Setting)
	case h.TLS == nil && !loopback.Is(host):
		return fmt.Errorf("%s.listen: without cert_file and key_file it must be a loopback address, such as 127.0.0.1:4281, with a reverse proxy in front of it", h.Setting)
	}
	return nil
}

// Serve serves the webhook while the function work runs, and returns the error of work. If the server
// fails, Serve ends work's context and returns the server's error. When ctx ends, handler still replies
// to the calls in progress.
func (h *Hook) Serve(ctx context.Context, log *slog.Logger, handler http.HandlerFunc, work func(context.Context) error) error {
	listener, err := net.Listen("tcp", h.Listen)
	if err != nil {
		return fmt.Errorf("%s.listen: %w", h.Setting, err)
	}
	if h.TLS != nil {
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*h.TLS}, MinVersion: tls.VersionTLS12})
	}
	server := &http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: hookRead, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // logged at the level debug, because most messages are about broken connections of callers
	}
	working, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	go func() { failed(server.Serve(listener)) }()
	err = work(working)
	if fault := context.Cause(working); ctx.Err() == nil && fault != nil && errors.Is(err, context.Canceled) {
		err = fault
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookStop)
	defer cancel()
	if server.Shutdown(stopping) != nil {
		_ = server.Close() // Close fails only if the server is closed already
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
