package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
)

// natsLog passes the server's log to slog. The server quotes input that it cannot parse;
// natsLog leaves these quotes out, because they may contain payloads.
type natsLog struct {
	log     *slog.Logger
	fatal   chan error // the first reason for a failed start
	started atomic.Bool
}

func (l *natsLog) Noticef(format string, v ...any) {
	level := slog.LevelDebug
	if strings.Contains(format, "Slow Consumer") {
		level = slog.LevelWarn
	}
	l.write(level, redacted(format, v))
}

// Warnf lowers the messages about indexes that the server rebuilds after a hard kill,
// which is normal.
func (l *natsLog) Warnf(format string, v ...any) {
	level := slog.LevelWarn
	text := redacted(format, v)
	for _, remade := range []string{"attempting to recover using linear scan", "Stream state outdated", "index errored: prior state file"} {
		if strings.Contains(text, remade) {
			level = slog.LevelInfo
		}
	}
	l.write(level, text)
}

// Errorf lowers errors about a single client to warnings: the server is well.
func (l *natsLog) Errorf(format string, v ...any) {
	level := slog.LevelError
	if strings.Contains(format, " - cid:") {
		level = slog.LevelWarn
	}
	l.write(level, redacted(format, v))
}

// Fatalf does not end the process. Before the start it reports the error to Embed,
// afterwards to the log.
func (l *natsLog) Fatalf(format string, v ...any) {
	if !l.started.Load() {
		select {
		case l.fatal <- errors.New(redacted(format, v)):
			return
		default: // one reason is enough to give up; the others are logged
		}
	}
	l.write(slog.LevelError, redacted(format, v))
}

func (l *natsLog) Debugf(format string, v ...any) { l.write(slog.LevelDebug, redacted(format, v)) }

// Tracef drops its text, which would be every message.
func (l *natsLog) Tracef(string, ...any) {}

func (l *natsLog) write(level slog.Level, text string) {
	l.log.Log(context.Background(), level, "nats: "+text)
}

// redacted cuts a line before the part that would quote a message.
func redacted(format string, v []any) string {
	for _, quoting := range []string{"Malformed JetStream API Request", "parser ERROR", "bad NAK delay value", "failed to decode"} {
		if before, _, found := strings.Cut(format, quoting); found {
			return strings.TrimSpace(fmt.Sprintf(before, v[:min(len(v), strings.Count(before, "%"))]...) + " " + quoting)
		}
	}
	return fmt.Sprintf(format, v...)
}
