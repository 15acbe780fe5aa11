package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// historyBytes bounds the total size of the transcripts that setup reads, the newest first.
const historyBytes = 64 << 20

// past returns the tool calls of the user's past sessions. It returns nil if there are none, or if the user
// does not allow setup to read them.
func (c *setupCmd) past(e *env) (calls []policy.SessionCall) {
	files := transcripts()
	if len(files) == 0 {
		return nil
	}
	dirs := transcriptDirs()
	for i := range dirs {
		dirs[i] = tilde(dirs[i])
	}
	fmt.Fprintln(e.stdout)
	e.printWrapped(fmt.Sprintf("Your past sessions (%s below %s) show how often nod would ask, and which rules would spare you questions. nod reads them on this machine and keeps nothing of them.", schemas.Count(len(files), "file"), strings.Join(dirs, " and ")))
	if !e.agree("Read them?") {
		return nil
	}
	unread := 0
	for _, file := range files {
		more, err := readTranscript(file)
		if calls = append(calls, more...); err != nil { // the last line may be incomplete, because a running session may be writing it
			unread++
		}
	}
	if unread > 0 {
		fmt.Fprintf(e.stdout, "%s could not be read whole: nod policy replay FILE says why.\n", schemas.Count(unread, "file"))
	}
	return calls
}

// transcriptDirs returns the directories in which agent programs keep the transcripts of sessions.
func transcriptDirs() (dirs []string) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil // without a home directory there are no transcripts that nod could find
	}
	for _, dir := range []string{
		filepath.Join(cmp.Or(os.Getenv("CLAUDE_CONFIG_DIR"), filepath.Join(home, ".claude")), "projects"),
		filepath.Join(cmp.Or(os.Getenv("CODEX_HOME"), filepath.Join(home, ".codex")), "sessions"),
	} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// transcripts returns the user's newest transcripts, up to historyBytes in total.
func transcripts() (files []string) {
	type transcript struct {
		path string
		fs.FileInfo
	}
	var all []transcript
	for _, dir := range transcriptDirs() {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // files that cannot be read are left out
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
				return nil
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				all = append(all, transcript{path, info})
			}
			return nil
		})
	}
	slices.SortFunc(all, func(a, b transcript) int { return b.ModTime().Compare(a.ModTime()) })
	size := int64(0)
	for _, t := range all {
		if size += t.Size(); size > historyBytes {
			break
		}
		files = append(files, t.path)
	}
	return files
}
