package connector

import (
	"context"

	"github.com/nodbus/nod/schemas"
)

// Deliver makes one attempt of the worker to show a prompt.
func (w *Worker) Deliver(ctx context.Context, p schemas.Prompt) error {
	return w.newAttempt(p).deliver(ctx)
}
