package connector

import (
	"context"

	"github.com/nodbus/nod/schemas"
)

// Deliver makes one attempt of the worker to show a prompt.
func (w *Worker) Deliver(ctx context.Context, p schemas.Prompt) error {
	return w.newAttempt(p).deliver(ctx)
}

// Waits reports whether the outcome of a request is the only version of its prompt that
// waits for the recipient's lane.
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
