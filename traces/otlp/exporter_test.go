package otlp_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/nodbus/nod/internal/testcollector"
	"github.com/nodbus/nod/traces"
	"github.com/nodbus/nod/traces/otlp"
)

func open(t *testing.T, endpoint string, more ...string) (*otlp.Exporter, *strings.Builder) {
	t.Helper()
	variables := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_BSP_SCHEDULE_DELAY": "1"}
	for _, m := range more {
		name, value, _ := strings.Cut(m, "=")
		variables[name] = value
	}
	c, on, err := otlp.FromEnvironment(func(name string) string { return variables[name] }, "1.2.3")
	require.NoError(t, err)
	require.True(t, on)
	var log strings.Builder // a goroutine writes the log until Close, so the test reads the log only after that
	e := otlp.Open(c, slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { closeNow(e) })
	return e, &log
}

// closeNow ends an exporter without waiting for its collector.
func closeNow(e *otlp.Exporter) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	e.Close(ctx)
}

func span(name string) traces.Span {
	parent := traces.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1")
	at := time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC)
	return traces.Child(parent, name, at, at.Add(9*time.Hour))
}

func TestASpanArrivesWithEachOfItsParts(t *testing.T) {
	c := testcollector.Start(t)
	e, _ := open(t, c.URL)
	s := span("whole")
	s.Kind, s.Error, s.Links = trace.SpanKindClient, "UNAVAILABLE", []trace.SpanContext{traces.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "")}
	s.Attributes = []attribute.KeyValue{attribute.String("text", "ä"), attribute.Int("number", -3), attribute.Bool("yes", true), attribute.StringSlice("list", []string{"a", "", "c"}), attribute.Float64("other", 1.5)}
	e.Write(s)
	e.Close(t.Context())
	require.Equal(t, []testcollector.Span{{
		Trace: "4bf92f3577b34da6a3ce929d0e0e4736", ID: s.ID.String(), Parent: "00f067aa0ba902b7", Name: "whole", State: "vendor=1", Kind: tracepb.Span_SPAN_KIND_CLIENT,
		Start: s.Start.Local(), End: s.End.Local(), Links: []string{"0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"}, Failed: true, Service: "nod",
		Attributes: map[string]string{"text": "ä", "number": "-3", "yes": "true", "list": "a,,c", "other": "1.5", "error.type": "UNAVAILABLE"},
	}}, c.Spans())
	require.Equal(t, otlp.Stats{Exported: 1}, e.Stats())
	e.Write(s)
	require.EqualValues(t, 1, e.Stats().Dropped, "after Close")
}

// A collector that accepts no spans delays no caller. Write returns at once, and spans for which the
// queue has no room are counted as dropped.
func TestAHangingCollectorBlocksNothing(t *testing.T) {
	t.Parallel()
	hangs := make(chan struct{})
	reached := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(hangs); server.Close() })
	e, _ := open(t, server.URL, "OTEL_BSP_MAX_QUEUE_SIZE=8")
	e.Write(span("first"))
	<-reached
	began := time.Now()
	for range 1000 {
		e.Write(span("more"))
	}
	require.Less(t, time.Since(began), time.Second)
	require.EqualValues(t, 1000-8, e.Stats().Dropped)
	began = time.Now()
	closeNow(e)
	require.Less(t, time.Since(began), 5*time.Second)
	s := e.Stats()
	require.EqualValues(t, 1001, s.Dropped+s.Failed+s.Exported)
}

func TestABusyCollectorIsTriedAgain(t *testing.T) {
	t.Parallel()
	c := testcollector.Start(t)
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		c.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	e, _ := open(t, server.URL)
	e.Write(span("again"))
	c.Await("again", 1)
	require.EqualValues(t, 2, calls.Load())
}

// If the collector refuses spans, the exporter does not send them again. It counts them, and logs the
// refusal once, without the secrets in the headers. A redirect counts as a refusal.
func TestARefusalIsCountedAndLoggedOnce(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusTemporaryRedirect} {
		var calls atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			http.Redirect(w, r, "/elsewhere", status)
		}))
		t.Cleanup(server.Close)
		e, log := open(t, strings.Replace(server.URL, "http://", "http://user:sosecret@", 1)+"?key=sosecret", "OTEL_EXPORTER_OTLP_HEADERS=key=sosecret", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=1")
		e.Write(span("a"))
		e.Write(span("b"))
		e.Close(t.Context())
		require.EqualValues(t, 2, calls.Load())
		require.Equal(t, otlp.Stats{Failed: 2}, e.Stats())
		require.Equal(t, 1, strings.Count(log.String(), "the collector took no spans"), log)
		require.NotContains(t, log.String(), "sosecret")
	}
}

func TestSpansThatTheCollectorRejectsAreCounted(t *testing.T) {
	t.Parallel()
	for reply, failed := range map[string]uint64{
		"\x0a\x02\x08\x02": 2, "": 0, "\x0a\x02\x12\x00": 0, "\xff\xff": 0, "\x0a\x03\x08\xe7\x07": 3,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(reply)) }))
		t.Cleanup(server.Close)
		e, _ := open(t, server.URL, "OTEL_BSP_SCHEDULE_DELAY=100")
		for range 3 {
			e.Write(span("x"))
		}
		e.Close(t.Context())
		require.Equal(t, otlp.Stats{Exported: 3 - failed, Failed: failed}, e.Stats(), "%q", reply)
	}
}
