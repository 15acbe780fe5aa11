package hookwait

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// forgetAfter is the age at which removeOld removes the notes of a session. It is longer than the 24 h
// for which nod stores a record after its decision.
const forgetAfter = 7 * 24 * time.Hour

func unsettledDir(dataDir string) string { return filepath.Join(dataDir, "unsettled") }

// NoteUnsettled records that nod did not simply allow a call of this tool, so that the host's later report
// about the end of the call may be news for nod. sessionID must be a valid session id of nod, because it
// becomes a file name.
func NoteUnsettled(dataDir, sessionID, tool string) error {
	if IsUnsettled(dataDir, sessionID, tool) {
		return nil
	}
	dir := unsettledDir(dataDir)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		removeOld(dir)
		err = appendLine(filepath.Join(dir, sessionID), strconv.Quote(tool))
	}
	if err != nil {
		return fmt.Errorf("record that nod was asked: %w", err)
	}
	return nil
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// removeOld removes the notes of old sessions, because a hook may never report the end of a session.
func removeOld(dir string) {
	sessions, _ := os.ReadDir(dir) // a note that cannot be read or removed stays until the next call of removeOld
	for _, s := range sessions {
		if info, err := s.Info(); err == nil && time.Since(info.ModTime()) > forgetAfter {
			_ = os.Remove(filepath.Join(dir, s.Name()))
		}
	}
}

// IsUnsettled reports whether NoteUnsettled was called for this tool in the session. Without a tool's name,
// it reports whether NoteUnsettled was called for any tool. It also returns true if the notes cannot be read.
func IsUnsettled(dataDir, sessionID, tool string) bool {
	f, err := os.Open(filepath.Join(unsettledDir(dataDir), sessionID))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = f.Close() }() // the file was only read, so an error of Close loses nothing
	if tool == "" {
		return true
	}
	lines := bufio.NewScanner(f)
	for want := strconv.Quote(tool); lines.Scan(); {
		if lines.Text() == want {
			return true
		}
	}
	return lines.Err() != nil
}

// Settle forgets a session's notes, because the session has ended.
func Settle(dataDir, sessionID string) {
	_ = os.Remove(filepath.Join(unsettledDir(dataDir), sessionID)) // notes that stay only cause a needless report to nod
}
