package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"gopkg.in/natefinch/lumberjack.v2"
)

// How much of a log file is kept: the file, and older ones beside it.
const (
	logMegabytes = 10
	logFiles     = 3
)

// maxStderr is how large the file may grow that a service's standard error goes
// to. It holds what comes before the log, and panics.
const maxStderr = 1 << 20

// logTo writes the log and what goes wrong to a file of one's own from now on,
// and nothing to standard output: that may hold what is meant for one reader.
// The file is there for its owner alone, and rotated by size.
func (e *env) logTo(path string) {
	trimStderr(os.Stderr)
	file := &lumberjack.Logger{Filename: path, MaxSize: logMegabytes, MaxBackups: logFiles}
	level := slog.LevelInfo
	if e.log.Enabled(context.Background(), slog.LevelDebug) {
		level = slog.LevelDebug
	}
	e.stdout, e.stderr = io.Discard, file
	e.log = slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: level}))
}

// trimStderr empties a file that standard error is appended to, where it has
// grown large: nobody rotates it.
func trimStderr(f *os.File) {
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() > maxStderr {
		_ = f.Truncate(0) // it is only larger than it should be
	}
}
