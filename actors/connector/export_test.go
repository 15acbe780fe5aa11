package connector

import (
	"context"

	"github.com/nodbus/nod/schemas"
)

func (w *Worker) Deliver(ctx context.Context, p schemas.Prompt) error {
	return w.newAttempt(p).deliver(ctx)
}

// Waits reports whether exactly one version of a request's prompt waits to be shown to the
// recipient, and this version has the outcome.
func (w *Worker) Waits(recipient, session, pendingID string) bool {
	w.turns.mu.Lock()
	defer w.turns.mu.Unlock()
	q := w.turns.of[recipient]
	if q == nil {
		return false
	}
	var versions []promptJob
	for _, j := range q.jobs[session] {
		if p, isPrompt := j.(promptJob); isPrompt && p.prompt.PendingID == pendingID {
			versions = append(versions, p)
		}
	}
	return len(versions) == 1 && versions[0].prompt.Decision != nil
}
