package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"gopkg.in/natefinch/lumberjack.v2"
)

// The size in megabytes at which a log file is rotated, and the number of older log files to keep.
const (
	logMegabytes = 10
	logFiles     = 3
)

// maxStderr is the size in bytes above which trimStderr empties a service's standard error file. The
// file contains panics, and output from before the log was opened.
const maxStderr = 1 << 20

// logTo makes the command write its log and its error messages to a file. It discards standard output,
// which may contain a login link. Only the owner can read the file, and nod rotates it by size.
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

// trimStderr empties the standard error file if it is larger than maxStderr, because the service
// manager does not rotate it.
func trimStderr(f *os.File) {
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() > maxStderr {
		_ = f.Truncate(0) // a failure only leaves the file too large
	}
}
