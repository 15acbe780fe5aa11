package otlp

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/nodbus/nod/traces"
)

// given returns the context of an agent's span in the trace with the given number.
func given(n int, sampled bool) trace.SpanContext {
	flags := "00"
	if sampled {
		flags = "01"
	}
	return traces.Parse(fmt.Sprintf("00-%032x-00f067aa0ba902b7-%s", n+1, flags), "vendor=1")
}

func TestARequestContinuesItsAgentsTrace(t *testing.T) {
	c := newChooser(sdktrace.ParentBased(sdktrace.AlwaysSample()))
	root, ok, _ := c.begin("ada", given(0, true))
	require.True(t, ok)
	require.Equal(t, given(0, true).TraceID(), root.Span.TraceID())
	require.Equal(t, given(0, true).SpanID(), root.Parent)
	require.Equal(t, "vendor=1", root.Span.TraceState().String())
	require.NotEqual(t, root.Parent, root.Span.SpanID())
	require.False(t, root.Link.IsValid())

	_, ok, limited := c.begin("ada", given(1, false))
	require.False(t, ok || limited, "its agent does not record this trace")

	first, ok, _ := c.begin("ada", trace.SpanContext{})
	require.True(t, ok)
	second, ok, _ := c.begin("ada", trace.SpanContext{})
	require.True(t, ok)
	require.NotEqual(t, first.Span.TraceID(), second.Span.TraceID())
	require.False(t, first.Parent.IsValid())
}

// If an agent names another agent's trace, its request gets a separate trace, with a link to the
// named trace.
func TestAnAgentCannotJoinTheTraceOfAnother(t *testing.T) {
	c := newChooser(sdktrace.ParentBased(sdktrace.AlwaysSample()))
	_, ok, _ := c.begin("ada", given(0, true))
	require.True(t, ok)
	foreign, ok, _ := c.begin("ben", given(0, true))
	require.True(t, ok)
	require.NotEqual(t, given(0, true).TraceID(), foreign.Span.TraceID())
	require.False(t, foreign.Parent.IsValid())
	require.Equal(t, given(0, true).TraceID(), foreign.Link.TraceID())
	_, ok, _ = c.begin("ben", foreign.Span)
	require.True(t, ok)
	mine, _, _ := c.begin("ada", foreign.Span)
	require.NotEqual(t, foreign.Span.TraceID(), mine.Span.TraceID(), "a trace that nod began belongs to its agent too")
}

// slow is a sampler that lets other goroutines run while it decides.
type slow struct{ sdktrace.Sampler }

func (s slow) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	runtime.Gosched()
	return s.Sampler.ShouldSample(p)
}

// If several agents name the same trace at the same time, only one of them gets it.
func TestOneOfManyAgentsGetsATrace(t *testing.T) {
	c := newChooser(slow{sdktrace.AlwaysSample()})
	const traced, agents = 200, 4
	var got [traced]atomic.Int32
	var all sync.WaitGroup
	for agent := range agents {
		all.Go(func() {
			for n := range traced {
				if root, _, _ := c.begin(fmt.Sprint("agent-", agent), given(n, true)); root.Span.TraceID() == given(n, true).TraceID() {
					got[n].Add(1)
				}
			}
		})
	}
	all.Wait()
	for n := range got {
		require.EqualValues(t, 1, got[n].Load())
	}
}

// An agent that sets the sampled flag on each call neither fills the queue nor uses up the bound of
// another agent.
func TestAnAgentThatSamplesEachCallIsLimited(t *testing.T) {
	c := newChooser(sdktrace.ParentBased(sdktrace.AlwaysSample()))
	traced, limitedCalls := 0, 0
	const calls = 5000
	for n := range calls {
		_, ok, limited := c.begin("ada", given(n, true))
		if ok {
			traced++
		}
		if limited {
			limitedCalls++
		}
	}
	require.Equal(t, calls, traced+limitedCalls)
	require.GreaterOrEqual(t, traced, burst)
	require.Less(t, traced, calls/2)
	require.LessOrEqual(t, len(c.owners), maxOwned)
	_, ok, _ := c.begin("ben", given(calls, true))
	require.True(t, ok)
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	c := newChooser(sdktrace.AlwaysSample())
	for n := range 3 * maxOwned {
		c.begin(fmt.Sprint("agent-", n), given(n, true))
	}
	require.LessOrEqual(t, c.agents.Len(), maxAgents)
	require.LessOrEqual(t, len(c.owners), maxOwned)
}

// With a ratio sampler, an agent cannot have more of its requests traced by the ids and flags that it
// chooses. Only the samplers parentbased_… follow the flags.
func TestAnAgentCannotChooseAnIDThatIsSampled(t *testing.T) {
	low := given(0, true) // for an id whose last bytes are small, TraceIDRatioBased alone decides to sample at each ratio above 0
	sampled := 0
	const engines = 1000
	for range engines {
		c := newChooser(sdktrace.TraceIDRatioBased(0.1))
		if _, ok, _ := c.begin("ada", low); ok {
			sampled++
		}
	}
	require.InDelta(t, engines/10, sampled, engines/20)
	c := newChooser(sdktrace.TraceIDRatioBased(0.1))
	_, first, _ := c.begin("ada", low)
	_, again, _ := c.begin("ada", low)
	require.Equal(t, first, again, "the calls of one trace are chosen together")
}
