// Package hookwait finds requests on this machine whose hook died while it waited. An agent program that
// kills its hook leaves no other sign than the note that a waiting hook holds.
package hookwait

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nodbus/nod/cmd/nod/internal/held"
	"github.com/nodbus/nod/schemas"
)

func notes(dataDir string) held.Notes { return held.Notes{Dir: Dir(dataDir)} }

// Dir returns the folder of the notes in a data directory.
func Dir(dataDir string) string { return filepath.Join(dataDir, "waiting") }

// Hold records that this process waits for a request. The wait ends when over is called
// or the process ends.
func Hold(dataDir, sessionID, pendingID string) (over func(), err error) {
	if over, err = notes(dataDir).Hold([]byte(schemas.Key(sessionID, pendingID)), false); err != nil {
		return nil, fmt.Errorf("record that a hook waits: %w", err)
	}
	return over, nil
}

// Sweep calls the function report for each request whose hook has died. If report fails for a request,
// Sweep goes on with the other requests, and the next sweep reports that request again.
func Sweep(dataDir string, report func(sessionID, pendingID string) error) error {
	return notes(dataDir).Sweep(func(note []byte) error {
		if session, id, ok := strings.Cut(string(note), "."); ok && schemas.ValidID(session) && schemas.ValidID(id) {
			return report(session, id)
		}
		return nil
	})
}
