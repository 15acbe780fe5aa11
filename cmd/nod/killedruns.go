package main

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/cmd/nod/internal/held"
	"github.com/nodbus/nod/connectors/agents/contain"
)

// keepNotes makes contain.Run keep a note of the command in s. If this process is killed, nod reviews the
// command's changes by this note. Other contained commands that run at the same time also hide the secrets
// that the note names. keepNotes first does the reviews that are due.
func (e *env) keepNotes(s *contain.Spec) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	e.reviewKilled(place.DataDir)
	notes := notesOfRuns(place.DataDir)
	s.Note, s.Recent = notes.Hold, notes.Recent
	return nil
}

// notesOfRuns returns the notes of contained commands. A note lingers for longer than the search for secrets
// takes, even in the largest project.
func notesOfRuns(dataDir string) held.Notes {
	return held.Notes{Dir: filepath.Join(dataDir, "contained"), Linger: time.Minute}
}

// reviewKilled reviews the changes of this machine's contained commands whose nod was killed, and moves away
// files that other programs would obey, such as .envrc. It logs failures, and the next call tries again.
func (e *env) reviewKilled(dataDir string) {
	err := notesOfRuns(dataDir).Sweep(func(note []byte, _ bool) error {
		project, r, err := contain.ReviewKilled(note, secrets.Compile().Listed, secrets.CompileProtected().Has)
		if errors.Is(err, contain.ErrDamaged) {
			e.log.Warn("the changes of a contained command that ran at a power cut cannot be reviewed: look for files in its project that you did not make, such as .envrc, .claude or .vscode", "error", err)
			return nil
		}
		if err == nil && len(r.Undone) > 0 {
			e.log.Warn("a contained command made files that other programs would obey, and its nod was killed: they were moved away",
				"project", project, "files", strings.Join(r.Undone, ", "), "to", r.UndoneTo)
		}
		return err
	})
	if err != nil {
		e.log.Info("the changes of a contained command whose nod was killed are not reviewed yet; nod tries again", "error", err)
	}
}
