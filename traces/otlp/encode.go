package otlp

import (
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/nodbus/nod/traces"
)

// encode returns spans as an ExportTraceServiceRequest.
func (e *Exporter) encode(batch []traces.Span) ([]byte, error) {
	spans := make([]*tracepb.Span, len(batch))
	for i := range batch {
		spans[i] = spanMessage(&batch[i])
	}
	body, err := proto.Marshal(&collectorpb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: attributeMessages(e.config.Resource)},
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &commonpb.InstrumentationScope{Name: "github.com/nodbus/nod", Version: e.config.Version},
			Spans: spans,
		}},
	}}})
	if err != nil {
		return nil, fmt.Errorf("encode spans: %w", err)
	}
	return body, nil
}

func spanMessage(s *traces.Span) *tracepb.Span {
	m := &tracepb.Span{
		TraceId: s.Trace[:], SpanId: s.ID[:], TraceState: s.State, Name: s.Name,
		Kind:              tracepb.Span_SpanKind(s.Kind), // OpenTelemetry's library and its protocol use the same numbers
		StartTimeUnixNano: uint64(s.Start.UnixNano()), EndTimeUnixNano: uint64(s.End.UnixNano()),
		Attributes: attributeMessages(s.Attributes),
	}
	if s.Parent.IsValid() {
		m.ParentSpanId = s.Parent[:]
	}
	if s.Error != "" {
		m.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR}
		m.Attributes = append(m.Attributes, attributeMessages([]attribute.KeyValue{attribute.String("error.type", s.Error)})...)
	}
	for _, l := range s.Links {
		id, span := l.TraceID(), l.SpanID()
		m.Links = append(m.Links, &tracepb.Span_Link{TraceId: id[:], SpanId: span[:], TraceState: l.TraceState().String()})
	}
	return m
}

func attributeMessages(all []attribute.KeyValue) (messages []*commonpb.KeyValue) {
	for _, a := range all {
		messages = append(messages, &commonpb.KeyValue{Key: string(a.Key), Value: valueMessage(a.Value)})
	}
	return messages
}

// valueMessage returns an attribute's value as a message. A value of a type that nod itself never
// uses becomes text.
func valueMessage(v attribute.Value) *commonpb.AnyValue {
	switch v.Type() {
	case attribute.INT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v.AsInt64()}}
	case attribute.STRINGSLICE:
		list := &commonpb.ArrayValue{}
		for _, s := range v.AsStringSlice() {
			list.Values = append(list.Values, valueMessage(attribute.StringValue(s)))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}
	}
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v.Emit()}}
}

// rejected returns the number of spans that a collector says it has refused. A malformed response
// counts as 0.
func rejected(response []byte) uint64 {
	var r collectorpb.ExportTraceServiceResponse
	if proto.Unmarshal(response, &r) != nil {
		return 0
	}
	return uint64(max(0, r.GetPartialSuccess().GetRejectedSpans()))
}
