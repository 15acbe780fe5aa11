package traces

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Span is one piece of work on a request. nod writes it when the work is over, and keeps no open
// span. A span of several hours is made afterwards from the times in the request's record. Attributes
// have no payloads, secrets, paths or commands.
type Span struct {
	Trace      trace.TraceID
	ID, Parent trace.SpanID // Parent is zero for the first span of a trace
	State      string       // the tracestate of the trace
	Name       string
	Kind       trace.SpanKind
	Start, End time.Time
	Attributes []attribute.KeyValue
	Links      []trace.SpanContext
	// Error is the kind of the error with which the work ended, such as UNAVAILABLE; empty if it
	// succeeded.
	Error string
}

// Child returns a span with a new id whose parent is the given span. If its end is before its start,
// the span gets no length. This happens because the estimates that two engines have of the broker's
// clock differ by milliseconds.
func Child(parent trace.SpanContext, name string, start, end time.Time, attributes ...attribute.KeyValue) Span {
	if end.Before(start) {
		end = start
	}
	return Span{
		Trace: parent.TraceID(), ID: NewSpanID(), Parent: parent.SpanID(), State: parent.TraceState().String(),
		Name: name, Kind: trace.SpanKindInternal, Start: start, End: end, Attributes: attributes,
	}
}

// Context returns the span's own context, as the parent of other spans.
func (s *Span) Context() trace.SpanContext {
	state, _ := trace.ParseTraceState(s.State) // ParseTraceState cannot fail, because State was parsed before
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: s.Trace, SpanID: s.ID, TraceFlags: trace.FlagsSampled, TraceState: state})
}

// NewSpanID returns a random id of a span.
func NewSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.BigEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// Writer receives finished spans. It is safe for concurrent use.
type Writer interface {
	// Write passes a span to the Writer. It does not block and cannot fail, because a Writer without
	// room drops and counts the span.
	Write(Span)
}

// Root tells where in a trace the first span of a request is.
type Root struct {
	// Span is the request's own span.
	Span trace.SpanContext
	// Parent is the span of the agent in the same trace; zero if the trace begins here.
	Parent trace.SpanID
	// Link is the context that the agent sent, if the request does not continue the agent's trace.
	// Otherwise it is invalid.
	Link trace.SpanContext
}

// Tracer is a Writer that chooses which requests are traced.
type Tracer interface {
	Writer
	// Begin returns the place of a new request's first span. The parameter parent is the context that
	// the agent sent; it is invalid if the agent sent none. If the result ok is false, the request is
	// not traced.
	Begin(agent string, parent trace.SpanContext) (root Root, ok bool)
}
