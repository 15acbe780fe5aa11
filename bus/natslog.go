package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
)

// natsLog passes the server's log to slog. The server's log quotes input that the server cannot parse.
// natsLog leaves these quotes out, because they may contain payloads.
type natsLog struct {
	log     *slog.Logger
	fatal   chan error // receives the first error that prevents the server's start; others go to the log
	started atomic.Bool
	disk    *diskFailure
}

func (l *natsLog) Noticef(format string, v ...any) {
	level := slog.LevelDebug
	if strings.Contains(format, "Slow Consumer") {
		level = slog.LevelWarn
	}
	l.write(level, redacted(format, v))
}

// Warnf logs warnings. Warnings that the server rebuilds its indexes are logged at level info, because a
// rebuild is normal after a kill.
func (l *natsLog) Warnf(format string, v ...any) {
	l.noticeDisk(format, v)
	level := slog.LevelWarn
	text := redacted(format, v)
	for _, remade := range []string{"attempting to recover using linear scan", "Stream state outdated", "index errored: prior state file"} {
		if strings.Contains(text, remade) {
			level = slog.LevelInfo
		}
	}
	l.write(level, text)
}

// diskErrors are parts of those log messages with which nats-server 2.15 reports that it stores
// nothing more in a stream. The server then leaves the writers of the stream without a reply, so its
// log is the only report of the failure.
var diskErrors = []string{"ritical write error", "will be DISABLED", "disabling JetStream"}

func (l *natsLog) noticeDisk(format string, v []any) {
	if !slices.ContainsFunc(diskErrors, func(part string) bool { return strings.Contains(format, part) }) {
		return
	}
	cause := errors.New("the NATS server has stopped its streams")
	for _, arg := range v {
		if err, ok := arg.(error); ok {
			cause = err
		}
	}
	l.disk.report(cause)
}

// Errorf logs an error about a single client as a warning, because the server itself has not failed.
func (l *natsLog) Errorf(format string, v ...any) {
	l.noticeDisk(format, v)
	level := slog.LevelError
	if strings.Contains(format, " - cid:") {
		level = slog.LevelWarn
	}
	l.write(level, redacted(format, v))
}

// Fatalf does not end the process. It sends the first error of the start to Embed, and logs all others.
func (l *natsLog) Fatalf(format string, v ...any) {
	if !l.started.Load() {
		select {
		case l.fatal <- errors.New(redacted(format, v)):
			return
		default: // an earlier error was sent to Embed
		}
	}
	l.write(slog.LevelError, redacted(format, v))
}

func (l *natsLog) Debugf(format string, v ...any) { l.write(slog.LevelDebug, redacted(format, v)) }

// Tracef drops its messages, because the server traces every message of its clients.
func (l *natsLog) Tracef(string, ...any) {}

func (l *natsLog) write(level slog.Level, text string) {
	l.log.Log(context.Background(), level, "nats: "+text)
}

// redacted formats a log message. It cuts off the part that quotes a client's message.
func redacted(format string, v []any) string {
	for _, quoting := range []string{"Malformed JetStream API Request", "parser ERROR", "bad NAK delay value", "failed to decode"} {
		if before, _, found := strings.Cut(format, quoting); found {
			return strings.TrimSpace(fmt.Sprintf(before, v[:min(len(v), strings.Count(before, "%"))]...) + " " + quoting)
		}
	}
	return fmt.Sprintf(format, v...)
}
