package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/traces"
)

// callTrace collects the spans of one call of an agent. It passes them to the exporter when the reply
// is ready, because only then is it known whether a record keeps the trace. A call that is not traced
// has a nil callTrace, whose methods do nothing.
type callTrace struct {
	*base
	agent string
	began time.Time // by the broker's clock
	kept  schemas.Trace
	// inNew means that the request's new record keeps the trace, and inEarlier that the record of an
	// earlier call keeps it. In both cases the trace ends when the record's decision is logged.
	inNew, inEarlier bool
	risk             schemas.Risk // empty before the policy check

	mu    sync.Mutex // several stores may be written at the same time
	spans []traces.Span
}

// beginTrace returns nil if the request is not traced.
func (e *base) beginTrace(c *caller) *callTrace {
	if e.Traces == nil {
		return nil
	}
	root, ok := e.Traces.Begin(c.name, c.call.Trace())
	if !ok {
		return nil
	}
	now := e.clock.now()
	t := &callTrace{base: e, agent: c.name, began: now, kept: schemas.Trace{At: now}}
	t.kept.Traceparent, t.kept.Tracestate = traces.Format(root.Span)
	if root.Parent.IsValid() {
		t.kept.Parent = root.Parent.String()
	}
	if root.Link.IsValid() {
		link, _ := traces.Format(root.Link)
		t.kept.Links = []string{link}
	}
	return t
}

// observe returns a context whose writes become spans of the call.
func (t *callTrace) observe(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return bus.ObserveWrites(ctx, func(w bus.StoreWrite) { t.add(t.storeSpans(trace.SpanContext{}, w)...) })
}

func (t *callTrace) add(spans ...traces.Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans = append(t.spans, spans...)
}

// now returns the time at which a span begins.
func (t *callTrace) now() (at time.Time) {
	if t != nil {
		at = t.clock.now()
	}
	return at
}

// checked adds the span of the policy check. The parameter began is the time at which the check
// began.
func (t *callTrace) checked(s *askState, began time.Time) {
	if t == nil {
		return
	}
	t.risk = s.verdict.Risk
	t.add(traces.Child(trace.SpanContext{}, "check policy", began, t.clock.now(),
		attribute.String("nod.verdict", string(s.verdict.Effect)), attribute.String("nod.rule", ruleName(s.verdict.Rule)), attribute.String("nod.risk", string(t.risk))))
}

// routed adds the span of the search for people to ask.
func (t *callTrace) routed(s *askState, began time.Time) {
	if t == nil {
		return
	}
	var channels []string
	for _, r := range s.plan.routes {
		if !slices.Contains(channels, r.Connector) {
			channels = append(channels, r.Connector)
		}
	}
	t.add(traces.Child(trace.SpanContext{}, "route", began, t.clock.now(), attribute.StringSlice("nod.channels", channels), attribute.Int("nod.recipients", len(s.plan.routes))))
}

// keep returns the trace for the request's new record, or nil.
func (t *callTrace) keep() *schemas.Trace {
	if t == nil {
		return nil
	}
	t.inNew = true
	kept := t.kept
	return &kept
}

// rejoin replaces the call's trace by the trace of the request's existing record. If that record has
// no trace, the call keeps its own trace.
func (t *callTrace) rejoin(rec *schemas.Record) {
	if t == nil {
		return
	}
	if t.inEarlier = rec.Trace != nil; t.inEarlier {
		t.kept = *rec.Trace
	}
	t.inNew = false
}

// end passes the spans of the call to the exporter, and also the request's own span if no record
// keeps the trace.
func (t *callTrace) end(r *schemas.Request, reply schemas.RequestReply, err error) {
	if t == nil {
		return
	}
	now, root := t.clock.now(), spanOf(&t.kept)
	ask := traces.Child(root, "ask", t.began, now)
	ask.Kind, ask.Error = trace.SpanKindServer, errorType(err)
	t.Traces.Write(ask)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.spans {
		if s.Trace = root.TraceID(); !s.Parent.IsValid() {
			s.Parent = root.SpanID()
		}
		s.State = root.TraceState().String()
		t.Traces.Write(s)
	}
	if t.inEarlier || t.inNew && err == nil {
		return
	}
	whole := rootSpan(&t.kept, now, requestAttributes(t.agent, r, t.risk))
	if d, decided := reply.(*schemas.Decision); decided && d != nil {
		whole.Attributes = append(whole.Attributes, decisionAttributes(d)...)
	}
	whole.Error = errorType(err)
	t.Traces.Write(whole)
}

// storeSpans returns the spans of one write to a store: the write and, inside it, the wait for the
// disk.
func (e *base) storeSpans(parent trace.SpanContext, w bus.StoreWrite) []traces.Span {
	s := traces.Child(parent, "store", e.clock.at(w.Sent), e.clock.at(later(w.Acked, w.Synced)), attribute.String("nod.store", w.Store), attribute.String("messaging.system", "nats"))
	s.Kind = trace.SpanKindClient
	if w.Failed {
		s.Error = "store"
	}
	if w.Synced.IsZero() {
		return []traces.Span{s}
	}
	return []traces.Span{s, traces.Child(s.Context(), "sync", e.clock.at(w.Acked), e.clock.at(w.Synced))}
}

// spanOf returns the span of a request; it is invalid if the request is not traced.
func spanOf(kept *schemas.Trace) trace.SpanContext {
	if kept == nil {
		return trace.SpanContext{}
	}
	return traces.Parse(kept.Traceparent, kept.Tracestate)
}

// traceContext returns a context in which messages carry the trace of a record.
func traceContext(ctx context.Context, rec *schemas.Record) context.Context {
	if rec.Trace == nil {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, spanOf(rec.Trace))
}

// traced reports whether this engine writes spans about a record.
func (e *base) traced(rec *schemas.Record) bool { return rec.Trace != nil && e.Traces != nil }

// joinTrace returns the trace of a request that joins a question, with a link to the question.
func joinTrace(own, question *schemas.Trace) *schemas.Trace {
	if own == nil || question == nil || slices.Contains(own.Links, question.Traceparent) {
		return own
	}
	linked := *own
	linked.Links = append(slices.Clone(own.Links), question.Traceparent)
	return &linked
}

// rootSpan returns the request's own span.
func rootSpan(kept *schemas.Trace, end time.Time, attributes ...[]attribute.KeyValue) traces.Span {
	s := traces.Child(spanOf(kept), "permission request", kept.At, end, slices.Concat(attributes...)...)
	s.ID, s.Parent, s.Kind = s.Parent, trace.SpanID{}, trace.SpanKindServer
	if parent, err := trace.SpanIDFromHex(kept.Parent); err == nil { // empty if the trace begins here
		s.Parent = parent
	}
	for _, text := range kept.Links {
		if link := traces.Parse(text, ""); link.IsValid() {
			s.Links = append(s.Links, link)
		}
	}
	return s
}

func requestAttributes(agent string, r *schemas.Request, risk schemas.Risk) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("nod.agent", agent), attribute.String("nod.session", r.SessionID), attribute.String("nod.request", r.PendingID),
		attribute.String("nod.kind", string(r.Kind)),
	}
	if risk != "" {
		all = append(all, attribute.String("nod.risk", string(risk)))
	}
	if tool := firstWord(r.ToolName); tool != "" && tool == r.ToolName { // an agent may choose any text as its tool's name
		all = append(all, attribute.String("gen_ai.tool.name", tool))
	}
	return all
}

func decisionAttributes(d *schemas.Decision) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("nod.outcome", string(d.Outcome)), attribute.String("nod.decided_by", string(d.By.Kind))}
	switch {
	case d.By.Kind == schemas.ByPolicy:
		all = append(all, attribute.String("nod.rule", ruleName(d.By.Name)))
	case d.By.Connector != "":
		all = append(all, attribute.String("nod.channel", d.By.Connector))
	}
	return all
}

// maxWord is the length, in bytes, to which firstWord cuts a word.
const maxWord = 64

// firstWord returns the letters, digits and signs of a name at the beginning of text, such as the
// tool of a rule.
func firstWord(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '@')
	})
	if end < 0 {
		end = len(text)
	}
	return text[:min(end, maxWord)]
}

// ruleName returns a rule's list and tool, such as "allow Bash". It leaves out the pattern, which may
// contain commands, paths and names of people.
func ruleName(rule string) string {
	switch list, of, _ := strings.Cut(rule, " "); {
	case slices.Contains([]string{"default contained", "default nod", "default permissions", "default secrets", "already granted"}, rule):
		return rule
	case slices.Contains([]string{"allow", "ask", "deny", "always"}, list):
		return strings.TrimSpace(list + " " + firstWord(of))
	}
	return firstWord(rule)
}

// errorType returns the code of an error for the attribute error.type, or "".
func errorType(err error) string {
	if err == nil {
		return ""
	}
	return string(bus.ErrorCode(err))
}
