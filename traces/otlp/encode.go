package otlp

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/nodbus/nod/traces"
)

// The functions of this file write the messages of opentelemetry.proto.trace.v1. The official
// encoder would add gRPC and its start-up to each process of nod, also to hooks.

// encode returns an ExportTraceServiceRequest. resource and scope are encoded already.
func encode(resource, scope []byte, spans []traces.Span) []byte {
	scoped := message(nil, 1, scope)
	for i := range spans {
		scoped = message(scoped, 2, encodeSpan(&spans[i]))
	}
	return message(nil, 1, message(message(nil, 1, resource), 2, scoped))
}

func encodeResource(attributes []attribute.KeyValue) (b []byte) {
	for _, a := range attributes {
		b = message(b, 1, encodeAttribute(a))
	}
	return b
}

func encodeScope(version string) []byte {
	return message(message(nil, 1, []byte("github.com/nodbus/nod")), 2, []byte(version))
}

func encodeSpan(s *traces.Span) []byte {
	b := message(nil, 1, s.Trace[:])
	b = message(b, 2, s.ID[:])
	b = text(b, 3, s.State)
	if s.Parent.IsValid() {
		b = message(b, 4, s.Parent[:])
	}
	b = text(b, 5, s.Name)
	b = number(b, 6, uint64(s.Kind))
	b = nanoseconds(b, 7, s.Start)
	b = nanoseconds(b, 8, s.End)
	for _, a := range s.Attributes {
		b = message(b, 9, encodeAttribute(a))
	}
	if s.Error != "" {
		b = message(b, 9, encodeAttribute(attribute.String("error.type", s.Error)))
	}
	for _, l := range s.Links {
		b = message(b, 13, encodeLink(l))
	}
	if s.Error != "" {
		b = message(b, 15, number(nil, 3, 2)) // a status with the code ERROR
	}
	return b
}

func encodeLink(l trace.SpanContext) []byte {
	id, span := l.TraceID(), l.SpanID()
	return text(message(message(nil, 1, id[:]), 2, span[:]), 3, l.TraceState().String())
}

func encodeAttribute(a attribute.KeyValue) []byte {
	return message(message(nil, 1, []byte(a.Key)), 2, encodeValue(a.Value))
}

// encodeValue encodes an attribute's value; of a type that nod does not use, it encodes the text.
func encodeValue(v attribute.Value) []byte {
	switch v.Type() {
	case attribute.BOOL:
		return number(nil, 2, protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		return number(nil, 3, uint64(v.AsInt64()))
	case attribute.STRINGSLICE:
		var values []byte
		for _, s := range v.AsStringSlice() {
			values = message(values, 1, message(nil, 1, []byte(s)))
		}
		return message(nil, 5, values)
	}
	return message(nil, 1, []byte(v.Emit()))
}

func message(b []byte, field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), content)
}

func text(b []byte, field protowire.Number, content string) []byte {
	if content == "" {
		return b
	}
	return message(b, field, []byte(content))
}

func number(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func nanoseconds(b []byte, field protowire.Number, at time.Time) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), uint64(at.UnixNano()))
}

// rejected returns the number of spans that a collector says it has refused, from its
// ExportTraceServiceResponse. A malformed response counts as 0.
func rejected(response []byte) uint64 {
	n, _ := protowire.ConsumeVarint(field(field(response, 1), 1))
	return n
}

// field returns the content of a field of a message, without its length, or nil if it is missing.
func field(b []byte, want protowire.Number) []byte {
	for len(b) > 0 {
		found, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(found, typ, b); n < 0 {
			return nil
		}
		if found == want && typ == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(b)
			return content
		}
		if found == want {
			return slices.Clone(b[:n])
		}
		b = b[n:]
	}
	return nil
}
