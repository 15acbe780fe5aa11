// Package hookwait finds requests on this machine whose waiting process, such as a hook, has died. If an
// agent program kills its hook, the hook's note in the data directory is the only sign.
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

// Wait describes one process that waits for the decision of a request.
type Wait struct {
	SessionID, PendingID string
	// Resumable is true if the process may be started again and then wait for the same request, because
	// the host keeps the call open.
	Resumable bool
}

// resumable is the suffix of the note of a resumable Wait.
const resumable = ".resumable"

// Hold records that this process waits for a request. The wait ends when the returned function is
// called or when the process ends.
func Hold(dataDir string, w Wait) (over func(), err error) {
	note := schemas.Key(w.SessionID, w.PendingID)
	if w.Resumable {
		note += resumable
	}
	if over, err = notes(dataDir).Hold([]byte(note), false); err != nil {
		return nil, fmt.Errorf("record that a hook waits: %w", err)
	}
	return over, nil
}

// Sweep calls the function report for each request whose waiting process has died. If report fails for a
// request, Sweep goes on with the other requests, and the next sweep reports that request again. If another
// process has resumed the wait for a request, Sweep does not report the request until that process has ended
// its wait.
func Sweep(dataDir string, report func(Wait) error) error {
	return notes(dataDir).Sweep(func(note []byte, shared bool) error {
		key, again := strings.CutSuffix(string(note), resumable)
		if again && shared {
			return held.ErrLater
		}
		if session, id, ok := strings.Cut(key, "."); ok && schemas.ValidID(session) && schemas.ValidID(id) {
			return report(Wait{session, id, again})
		}
		return nil
	})
}
