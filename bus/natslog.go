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

// natsLog passes the server's log to slog. If the server cannot parse its input, it quotes the input in
// its log. natsLog leaves these parts out, because they may contain payloads.
type natsLog struct {
	log     *slog.Logger
	fatal   chan error // receives the first error that prevents the start
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

// Warnf logs warnings. It logs one warning at level info: the server rebuilds its indexes,
// which is normal after a kill.
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

// diskErrors are parts of the messages by which nats-server 2.15 says that it stores nothing
// more. From then on the server replies to no writer of the stream. It reports the failure
// only in its log.
var diskErrors = []string{"ritical write error", "will be DISABLED", "disabling JetStream"}

// noticeDisk reports a failure of the disk that the server logs.
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

// Errorf logs errors about a single client as warnings, because the server itself has not
// failed.
func (l *natsLog) Errorf(format string, v ...any) {
	l.noticeDisk(format, v)
	level := slog.LevelError
	if strings.Contains(format, " - cid:") {
		level = slog.LevelWarn
	}
	l.write(level, redacted(format, v))
}

// Fatalf does not end the process. It reports an error during the start to Embed, and a later
// one to the log.
func (l *natsLog) Fatalf(format string, v ...any) {
	if !l.started.Load() {
		select {
		case l.fatal <- errors.New(redacted(format, v)):
			return
		default: // Embed gets only the first error
		}
	}
	l.write(slog.LevelError, redacted(format, v))
}

func (l *natsLog) Debugf(format string, v ...any) { l.write(slog.LevelDebug, redacted(format, v)) }

// Tracef does nothing, because the server traces every message.
func (l *natsLog) Tracef(string, ...any) {}

func (l *natsLog) write(level slog.Level, text string) {
	l.log.Log(context.Background(), level, "nats: "+text)
}

// redacted formats a line without its quote of a client's message.
func redacted(format string, v []any) string {
	for _, quoting := range []string{"Malformed JetStream API Request", "parser ERROR", "bad NAK delay value", "failed to decode"} {
		if before, _, found := strings.Cut(format, quoting); found {
			return strings.TrimSpace(fmt.Sprintf(before, v[:min(len(v), strings.Count(before, "%"))]...) + " " + quoting)
		}
	}
	return fmt.Sprintf(format, v...)
}
