package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// Only one page of the log is made at a time. A second query waits until its context ends, and reads
// nothing.
func TestPagesOfTheLogAreMadeOneAfterAnother(t *testing.T) {
	t.Parallel()
	e := newEngine(Options{}).connectors // this engine has no stores, so a read would panic
	e.readingLog <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.listLogged(ctx, &caller{name: "terminal"}, &schemas.Query{Log: true})
	require.ErrorIs(t, err, context.Canceled)
	<-e.readingLog
	require.Panics(t, func() { _, _ = e.listLogged(t.Context(), &caller{name: "terminal"}, &schemas.Query{Log: true}) })
	require.Empty(t, e.readingLog, "the next page may be made")
}
