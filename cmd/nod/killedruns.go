package main

import (
	"path/filepath"
	"strings"

	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/cmd/nod/internal/held"
	"github.com/nodbus/nod/connectors/agents/contain"
)

// containedNotes reviews what contained commands changed whose nod was killed, and returns the function
// that keeps the notes for such a review of the next command.
func (e *env) containedNotes() (keep func(note []byte) (over func(), err error), err error) {
	place, err := e.place.WithDefaults()
	if err != nil {
		return nil, err
	}
	e.reviewKilled(place.DataDir)
	return func(note []byte) (func(), error) { return held.Hold(notesOfRuns(place.DataDir), note) }, nil
}

func notesOfRuns(dataDir string) string { return filepath.Join(dataDir, "contained") }

// reviewKilled reviews what contained commands of this machine changed whose nod was killed: it moves
// away files that other programs would obey. It logs failures, and the next call tries again.
func (e *env) reviewKilled(dataDir string) {
	err := held.Sweep(notesOfRuns(dataDir), func(note []byte) error {
		project, r, err := contain.ReviewKilled(note, secrets.Compile().Listed, secrets.CompileProtected().Has)
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
