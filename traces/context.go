// Package traces carries the trace of a request between processes, by the rules of W3C Trace
// Context, and describes the spans that nod writes. The package traces/otlp exports them.
package traces

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The names of the fields in the headers of NATS and HTTP messages, and in _meta of MCP.
const (
	ParentField = "traceparent"
	StateField  = "tracestate"
)

// The lengths of the values are bounded, because agents send them. W3C Trace Context asks each system
// to pass on a tracestate of at least maxState bytes.
const (
	maxParent = 256
	maxState  = 512

	parentLength = 55 // the length of a traceparent of version 00
)

// Parse returns the span context that a traceparent and a tracestate name. A malformed or overlong
// traceparent gives an invalid context, and a malformed or overlong tracestate is ignored. Neither
// makes the request fail. Parse never reads W3C baggage.
func Parse(traceparent, tracestate string) trace.SpanContext {
	if traceparent == "" || len(traceparent) > maxParent {
		return trace.SpanContext{}
	}
	if strings.HasPrefix(traceparent, "00-") { // unlike W3C Trace Context, the library accepts other lengths and refuses flags that were added later
		if len(traceparent) != parentLength {
			return trace.SpanContext{}
		}
		flags, err := strconv.ParseUint(traceparent[parentLength-2:], 16, 8)
		if err != nil {
			return trace.SpanContext{}
		}
		traceparent = fmt.Sprintf("%s%02x", traceparent[:parentLength-2], flags&uint64(trace.FlagsSampled))
	}
	carrier := propagation.MapCarrier{ParentField: traceparent}
	if len(tracestate) <= maxState {
		carrier[StateField] = tracestate
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// Format returns a valid span context as a traceparent and a tracestate.
func Format(span trace.SpanContext) (traceparent, tracestate string) {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), span), carrier)
	return carrier[ParentField], carrier[StateField]
}

// Continue returns a context whose requests belong to the trace that traceparent and tracestate name.
// If the traceparent names no trace, Continue returns ctx.
func Continue(ctx context.Context, traceparent, tracestate string) context.Context {
	if span := Parse(traceparent, tracestate); span.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, span)
	}
	return ctx
}

// FromEnvironment calls Continue with the variables TRACEPARENT and TRACESTATE, which a program sets
// for the commands that it starts.
func FromEnvironment(ctx context.Context) context.Context {
	return Continue(ctx, os.Getenv("TRACEPARENT"), os.Getenv("TRACESTATE"))
}
