package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// natsLog hands the server's log to slog. The server quotes what it cannot
// parse; natsLog leaves those quotes out, as they may be anybody's payload.
type natsLog struct {
	log   *slog.Logger
	fatal chan error // the first reason not to start
}

func (l *natsLog) Noticef(format string, v ...any) {
	level := slog.LevelDebug
	if strings.Contains(format, "Slow Consumer") {
		level = slog.LevelWarn
	}
	l.write(level, format, v)
}

func (l *natsLog) Warnf(format string, v ...any) { l.write(slog.LevelWarn, format, v) }

// Errorf is a warning where it is about one client: the server is well.
func (l *natsLog) Errorf(format string, v ...any) {
	level := slog.LevelError
	if strings.Contains(format, " - cid:") {
		level = slog.LevelWarn
	}
	l.write(level, format, v)
}

// Fatalf does not end the process: whoever embedded the server is told.
func (l *natsLog) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- errors.New(redacted(format, v)):
	default:
		l.write(slog.LevelError, format, v)
	}
}

func (l *natsLog) Debugf(format string, v ...any) { l.write(slog.LevelDebug, format, v) }

// Tracef would tell every message.
func (l *natsLog) Tracef(string, ...any) {}

func (l *natsLog) write(level slog.Level, format string, v []any) {
	l.log.Log(context.Background(), level, "nats: "+redacted(format, v))
}

// redacted cuts a line before what it would quote of a message.
func redacted(format string, v []any) string {
	for _, quoting := range []string{"Malformed JetStream API Request", "parser ERROR", "bad NAK delay value", "failed to decode"} {
		if before, _, found := strings.Cut(format, quoting); found {
			return strings.TrimSpace(fmt.Sprintf(before, v[:min(len(v), strings.Count(before, "%"))]...) + " " + quoting)
		}
	}
	return fmt.Sprintf(format, v...)
}
