package engine

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/traces"
)

// traceDecided writes the spans that end with the decision about an entry's own request: the wait for
// a person, the delivery by the outbox, and the request's own span. The parameter told is the time of
// the delivery. The engine that has logged the decision calls traceDecided once for each request.
func (e *base) traceDecided(entry *bus.Entry, r *schemas.Request, d *schemas.Decision, told time.Time) {
	rec := &entry.Record
	if !e.traced(rec) {
		return
	}
	root := spanOf(rec.Trace)
	if len(rec.Routes) > 0 || rec.Joined != "" {
		e.Traces.Write(traces.Child(root, "wait for person", later(rec.Trace.At, createdAt(rec)), d.DecidedAt, decisionAttributes(d)...))
	}
	deliver := traces.Child(root, "deliver", d.DecidedAt, told, attribute.String("nod.delivery", "outbox"))
	deliver.Kind = trace.SpanKindProducer
	e.Traces.Write(deliver)
	e.Traces.Write(rootSpan(rec.Trace, later(e.clock.now(), d.DecidedAt), requestAttributes(rec.Agent, r, rec.Risk), decisionAttributes(d)))
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// traceDelivery writes the span of a decision's first delivery. The parameter began is the time at
// which the delivery began. When the outbox delivers the decision once more, it writes another span.
func (e *base) traceDelivery(entry *bus.Entry, began time.Time, err error) {
	if !e.traced(&entry.Record) || !entry.Record.Terminal() {
		return
	}
	s := traces.Child(spanOf(entry.Record.Trace), "deliver", began, e.clock.now(), attribute.String("nod.delivery", "direct"))
	s.Kind, s.Error = trace.SpanKindProducer, errorType(err)
	e.Traces.Write(s)
}

// traceAnswer writes the span of a person's answer. The parameter began is the time at which the
// answer arrived.
func (e *base) traceAnswer(rec *schemas.Record, began time.Time, connector string, d *schemas.Decision, err error) {
	if !e.traced(rec) {
		return
	}
	s := traces.Child(spanOf(rec.Trace), "answer", began, e.clock.now(), attribute.String("nod.channel", connector))
	if d != nil {
		s.Attributes = append(s.Attributes, attribute.String("nod.outcome", string(d.Outcome)))
	}
	s.Kind, s.Error = trace.SpanKindServer, errorType(err)
	e.Traces.Write(s)
}

// traceDecide returns a context that observes the writes of a decision, and a function that writes the
// spans of these writes. Without a trace it returns ctx and nil.
func (e *base) traceDecide(ctx context.Context, rec *schemas.Record, d *schemas.Decision) (context.Context, func(stored bool, err error)) {
	if !e.traced(rec) {
		return ctx, nil
	}
	began, root := e.clock.now(), spanOf(rec.Trace)
	var writes []bus.StoreWrite
	ctx = bus.ObserveWrites(ctx, func(w bus.StoreWrite) { writes = append(writes, w) })
	return ctx, func(stored bool, err error) {
		if !stored && err == nil { // another decision came first
			return
		}
		span := traces.Child(root, "decide", began, e.clock.now(), decisionAttributes(d)...)
		span.Error = errorType(err)
		e.Traces.Write(span)
		for _, w := range writes {
			for _, s := range e.storeSpans(span.Context(), w) {
				e.Traces.Write(s)
			}
		}
	}
}
