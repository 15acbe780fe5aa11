package traces_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/nodbus/nod/traces"
)

const (
	id   = "4bf92f3577b34da6a3ce929d0e0e4736"
	span = "00f067aa0ba902b7"
	good = "00-" + id + "-" + span + "-01"
)

func TestAValidTraceparentIsReadAndWrittenUnchanged(t *testing.T) {
	for _, parent := range []string{good, "00-" + id + "-" + span + "-00"} {
		for _, state := range []string{"", "vendor=1", "a=1,b=2"} {
			read := traces.Parse(parent, state)
			require.True(t, read.IsValid() && read.IsRemote(), parent)
			wrote, itsState := traces.Format(read)
			require.Equal(t, parent, wrote)
			require.Equal(t, state, itsState)
		}
	}
	for flags, sampled := range map[string]bool{"02": false, "03": true, "ff": true} { // the flag 02 says that the trace's id is random
		read := traces.Parse("00-"+id+"-"+span+"-"+flags, "")
		require.True(t, read.IsValid(), flags)
		require.Equal(t, sampled, read.IsSampled(), flags)
	}
	require.True(t, traces.Parse("01-"+id+"-"+span+"-01-more", "").IsValid(), "a later version may have more fields")
}

// An agent may send any text. A malformed traceparent counts as missing, and a malformed tracestate
// leaves the traceparent valid.
func TestAMalformedTraceparentIsIgnored(t *testing.T) {
	for name, parent := range map[string]string{
		"empty": "", "words": "hello", "upper case": strings.ToUpper(good), "a trace of zeros": "00-" + strings.Repeat("0", 32) + "-" + span + "-01",
		"a span of zeros": "00-" + id + "-" + strings.Repeat("0", 16) + "-01", "the version ff": "ff" + good[2:], "a short trace": "00-4bf9-" + span + "-01",
		"more fields in version 00": good + "-more", "a space": " " + good, "a line": good + "\n", "overlong": "01" + good[2:] + "-" + strings.Repeat("x", 1<<16),
		"no flags": good[:52], "flags that are no number": good[:53] + "+1", "control characters": "00-" + id + "-" + span + "-0\x00",
	} {
		require.False(t, traces.Parse(parent, "vendor=1").IsValid(), name)
		ctx := t.Context()
		require.Equal(t, ctx, traces.Continue(ctx, parent, ""), name)
	}
	for name, state := range map[string]string{
		"no list": "what", "a key twice": "a=1,a=2", "control characters": "a=\x01", "overlong": "a=" + strings.Repeat("x", 600), "too many": strings.Repeat("a=1,", 40),
	} {
		read := traces.Parse(good, state)
		require.True(t, read.IsValid(), name)
		require.Empty(t, read.TraceState().String(), name)
	}
}

func TestTheEnvironmentNamesATrace(t *testing.T) {
	t.Setenv("TRACEPARENT", good)
	t.Setenv("TRACESTATE", "vendor=1")
	found := trace.SpanContextFromContext(traces.FromEnvironment(t.Context()))
	require.Equal(t, id, found.TraceID().String())
	require.Equal(t, "vendor=1", found.TraceState().String())
	t.Setenv("TRACEPARENT", "nonsense")
	require.Equal(t, t.Context(), traces.FromEnvironment(t.Context()))
}

func FuzzParse(f *testing.F) {
	f.Add(good, "vendor=1")
	f.Add("01-"+id+"-"+span+"-ff-x", "a=1,b=2")
	f.Fuzz(func(t *testing.T, parent, state string) {
		read := traces.Parse(parent, state)
		if !read.IsValid() {
			return
		}
		wrote, itsState := traces.Format(read)
		require.Len(t, wrote, 55)
		require.LessOrEqual(t, len(itsState), 512)
		again := traces.Parse(wrote, itsState)
		require.True(t, again.Equal(read), "%s %s", wrote, itsState)
	})
}

func TestNoTraceCostsNoAllocation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = traces.Continue(ctx, "", "") }))
}
