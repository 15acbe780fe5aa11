// Package testcollector is an OpenTelemetry collector for tests. It receives spans by OTLP over HTTP,
// decodes them with OpenTelemetry's own messages, and refuses every message that breaks the
// specification.
package testcollector

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Span is a span in the form in which the collector has received it.
type Span struct {
	Trace, ID, Parent string
	Name              string
	State             string
	Kind              tracepb.Span_SpanKind
	Start, End        time.Time
	Attributes        map[string]string
	Links             []string // each in the form TRACE-SPAN
	Failed            bool
	Service           string
}

// Collector is a running collector.
type Collector struct {
	URL string

	t       *testing.T
	mu      sync.Mutex
	spans   []Span
	bodies  [][]byte
	headers []http.Header
}

// Start starts a collector, which ends with the test.
func Start(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{t: t}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// ServeHTTP handles one message with spans, an ExportTraceServiceRequest.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && (r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf") {
		err = fmt.Errorf("%s %s of %s is no export", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
	}
	var message collectorpb.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &message)
	}
	var spans []Span
	if err == nil {
		spans, err = read(&message)
	}
	if err != nil {
		c.t.Errorf("the collector got a malformed message: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = append(c.spans, spans...)
	c.bodies, c.headers = append(c.bodies, body), append(c.headers, r.Header)
}

func read(message *collectorpb.ExportTraceServiceRequest) (all []Span, err error) {
	if err := known(message.ProtoReflect()); err != nil {
		return nil, err
	}
	for _, resource := range message.ResourceSpans {
		service := attributes(resource.GetResource().GetAttributes())["service.name"]
		if service == "" {
			return nil, fmt.Errorf("a resource without service.name")
		}
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				span, err := readSpan(s)
				if err != nil {
					return nil, err
				}
				span.Service = service
				all = append(all, span)
			}
		}
	}
	return all, nil
}

// known returns an error if a message, or any message inside it, has a field that is not in
// OpenTelemetry's definition.
func known(m protoreflect.Message) (err error) {
	if len(m.GetUnknown()) > 0 {
		return fmt.Errorf("%s has unknown fields", m.Descriptor().FullName())
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				if err = known(v.List().Get(i).Message()); err != nil {
					return false
				}
			}
		default:
			err = known(v.Message())
		}
		return err == nil
	})
	return err
}

func readSpan(s *tracepb.Span) (Span, error) {
	span := Span{
		Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
		Name: s.Name, State: s.TraceState, Kind: s.Kind, Attributes: attributes(s.Attributes), Failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
		Start: time.Unix(0, int64(s.StartTimeUnixNano)), End: time.Unix(0, int64(s.EndTimeUnixNano)),
	}
	for _, l := range s.Links {
		span.Links = append(span.Links, hex.EncodeToString(l.TraceId)+"-"+hex.EncodeToString(l.SpanId))
	}
	switch {
	case len(s.TraceId) != 16, len(s.SpanId) != 8, len(s.ParentSpanId) != 0 && len(s.ParentSpanId) != 8:
		return span, fmt.Errorf("the span %q has malformed ids", s.Name)
	case span.Trace == strings.Repeat("0", 32), span.ID == strings.Repeat("0", 16):
		return span, fmt.Errorf("the span %q has ids of zeros", s.Name)
	case s.Name == "", s.Kind == tracepb.Span_SPAN_KIND_UNSPECIFIED:
		return span, fmt.Errorf("the span %q has no name or no kind", s.Name)
	case s.StartTimeUnixNano == 0, s.EndTimeUnixNano < s.StartTimeUnixNano:
		return span, fmt.Errorf("the span %q is from %s to %s", s.Name, span.Start, span.End)
	case span.Failed != (span.Attributes["error.type"] != ""):
		return span, fmt.Errorf("the span %q has a status that does not fit its error.type", s.Name)
	}
	return span, nil
}

func attributes(list []*commonpb.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		switch v := a.Value.GetValue().(type) {
		case *commonpb.AnyValue_ArrayValue:
			var texts []string
			for _, one := range v.ArrayValue.Values {
				texts = append(texts, one.GetStringValue())
			}
			all[a.Key] = strings.Join(texts, ",")
		case *commonpb.AnyValue_IntValue:
			all[a.Key] = fmt.Sprint(v.IntValue)
		default:
			all[a.Key] = a.Value.GetStringValue()
		}
	}
	return all
}

// Spans returns the spans that the collector has received.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Received returns the bytes of all messages, and their HTTP headers.
func (c *Collector) Received() (bodies [][]byte, headers []http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.bodies), slices.Clone(c.headers)
}

// Named returns the spans of this name.
func (c *Collector) Named(name string) (found []Span) {
	for _, s := range c.Spans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// Await waits until the collector has the given number of spans of a name, and returns these spans.
func (c *Collector) Await(name string, n int) (found []Span) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { found = c.Named(name); return len(found) >= n }, 30*time.Second, 10*time.Millisecond, "%d spans %q", n, name)
	return found
}
