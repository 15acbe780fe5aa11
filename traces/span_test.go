package traces_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/traces"
)

// Collectors refuse a span that ends before its start.
func TestASpanNeverEndsBeforeItsStart(t *testing.T) {
	at := time.Now()
	s := traces.Child(traces.Parse(good, ""), "decide", at, at.Add(-time.Millisecond))
	require.Equal(t, at, s.End)
	s = traces.Child(traces.Parse(good, ""), "decide", at, at.Add(time.Hour))
	require.Equal(t, at.Add(time.Hour), s.End)
}
