// Package traces carries the trace of a request between processes, by the rules of W3C Trace
// Context, and describes the spans that nod writes. The package traces/otlp exports them.
package traces

import (
	"context"
	"os"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The names of the fields in the headers of NATS and HTTP messages, and in _meta of MCP.
const (
	ParentField = "traceparent"
	StateField  = "tracestate"
)

// Agents send these values, so their lengths are bounded. The second bound is the length that
// W3C Trace Context asks each system to pass on at least.
const (
	maxParent = 256
	maxState  = 512

	parentLength = 55 // of a traceparent of version 00
)

// Parse returns the span context that a traceparent and a tracestate name. A malformed or overlong
// traceparent gives an invalid context, and a malformed or overlong tracestate is left out: neither
// is an error of the request. Baggage is never read.
func Parse(traceparent, tracestate string) trace.SpanContext {
	switch {
	case traceparent == "", len(traceparent) > maxParent:
		return trace.SpanContext{}
	case strings.HasPrefix(traceparent, "00-") && len(traceparent) != parentLength: // the library ignores further fields, which only later versions have
		return trace.SpanContext{}
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

// Continue returns a context in which requests belong to the trace that traceparent and tracestate
// name. It returns ctx if traceparent names none.
func Continue(ctx context.Context, traceparent, tracestate string) context.Context {
	if span := Parse(traceparent, tracestate); span.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, span)
	}
	return ctx
}

// FromEnvironment is Continue with the variables TRACEPARENT and TRACESTATE, which a program sets
// for the commands that it starts.
func FromEnvironment(ctx context.Context) context.Context {
	return Continue(ctx, os.Getenv("TRACEPARENT"), os.Getenv("TRACESTATE"))
}
