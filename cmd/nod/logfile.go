package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"gopkg.in/natefinch/lumberjack.v2"
)

// The largest size of a log file in megabytes, and the number of older log files
// that are kept.
const (
	logMegabytes = 10
	logFiles     = 3
)

// maxStderr is the size in bytes above which trimStderr empties the file for a
// service's standard error. The file contains panics, and output from before the
// log is open.
const maxStderr = 1 << 20

// logTo sends the log and error messages to a file from now on, and drops standard
// output, which may contain a login link. Only the owner can read the file. The file
// is rotated by size.
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

// trimStderr empties the file to which standard error is appended, if it is larger
// than maxStderr: the system does not rotate it.
func trimStderr(f *os.File) {
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() > maxStderr {
		_ = f.Truncate(0) // an error only leaves the file too large
	}
}
