package connector

import (
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/traces"
)

// traceShow writes the span of an attempt to show a prompt or its outcome, if the request is traced.
// The parameter began is the time at which the attempt began.
func (c showAttempt) traceShow(began time.Time, err error) {
	if !c.trace.IsValid() || c.spans == nil {
		return
	}
	name := "show prompt"
	if c.prompt.Decision != nil {
		name = "show outcome"
	}
	s := traces.Child(c.trace, name, began, time.Now(), attribute.String("nod.channel", c.desk.connector), attribute.Int64("nod.revision", int64(c.prompt.Revision)))
	s.Kind, s.Error = trace.SpanKindClient, failure(err)
	c.spans.Write(s)
}

// failure returns the kind of a carrier's error. Spans have only the kind, because the error's text
// may contain addresses.
func failure(err error) string {
	var e *people.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e) && e.Unreachable:
		return "unreachable"
	case errors.As(err, &e) && e.Permanent:
		return "refused"
	}
	return "failed"
}
