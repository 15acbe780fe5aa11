package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"

	"github.com/nodbus/nod/traces"
)

// traceHeader adds the trace of ctx to a message's header, which may be nil. Without a trace, it
// returns the header unchanged and allocates nothing.
func traceHeader(ctx context.Context, header nats.Header) nats.Header {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return header
	}
	if header == nil {
		header = nats.Header{}
	}
	parent, state := traces.Format(span)
	header.Set(traces.ParentField, parent)
	if state != "" {
		header.Set(traces.StateField, state)
	}
	return header
}

// Trace returns the span context that the caller sent. It is invalid if the caller sent none.
func (c *Call) Trace() trace.SpanContext {
	h := c.req.Headers()
	return traces.Parse(h.Get(traces.ParentField), h.Get(traces.StateField))
}

// Trace returns the span context that came with the message. It is invalid if none came.
func (d *Delivery) Trace() trace.SpanContext {
	h := d.msg.Headers()
	return traces.Parse(h.Get(traces.ParentField), h.Get(traces.StateField))
}

// StoreWrite describes one attempt to write a message to a store.
type StoreWrite struct {
	Store string // the name of the stream
	Sent  time.Time
	Acked time.Time // when the server replied or the attempt failed
	// Synced is when the message was on disk. It is zero if the try failed, or if the server syncs each
	// message before its reply.
	Synced time.Time
	Failed bool
}

type observerKey struct{}

// ObserveWrites returns a context whose writes are reported to f. Several goroutines may call f at the
// same time.
func ObserveWrites(ctx context.Context, f func(StoreWrite)) context.Context {
	return context.WithValue(ctx, observerKey{}, f)
}

// observer returns the function that ObserveWrites has stored in ctx, or nil.
func observer(ctx context.Context) func(StoreWrite) {
	f, _ := ctx.Value(observerKey{}).(func(StoreWrite))
	return f
}
