package connector

import (
	"context"

	"github.com/nodbus/nod/schemas"
)

// Carry is one try of the worker to show a prompt.
func (w *Worker) Carry(ctx context.Context, p schemas.Prompt) error { return w.carry(p).carry(ctx) }
