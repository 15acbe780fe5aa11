package bus

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A request without a trace costs no header and no allocation for traces.
func TestWithoutATraceMessagesAndWritesCostNothingMore(t *testing.T) {
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if traceHeader(ctx, nil) != nil || observer(ctx) != nil {
			t.Error("there is a trace")
		}
	}))
}
