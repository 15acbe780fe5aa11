package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/nodbus/nod/schemas"
)

// A request belongs to the trace that its caller's headers name; malformed ones change nothing.
func TestARequestContinuesTheTraceOfItsHeaders(t *testing.T) {
	seen := make(chan trace.SpanContext, 1)
	r := fake(t, before(scriptedNod{submit: func(ctx context.Context, q schemas.Request) (*schemas.Decision, schemas.Receipt, error) {
		seen <- trace.SpanContextFromContext(ctx)
		return &schemas.Decision{
			Type: schemas.TypeDecision, SessionID: q.SessionID, PendingID: q.PendingID, DecisionID: "d", Outcome: schemas.Denied,
			By: schemas.By{Kind: schemas.ByClock}, Digest: strings.Repeat("0", 64), DecidedAt: time.Now(),
		}, schemas.Receipt{}, nil
	}}))
	for parent, id := range map[string]string{
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": "4bf92f3577b34da6a3ce929d0e0e4736",
		"nonsense": "00000000000000000000000000000000", "": "00000000000000000000000000000000",
	} {
		got := r.does("POST", "/api/v1/requests", deploy("S", "1"), func(h *http.Request) {
			h.Header.Set("traceparent", parent)
			h.Header.Set("tracestate", "vendor=1")
			h.Header.Set("baggage", "who=ann")
		})
		r.Equal(http.StatusOK, got.status, got.body)
		r.Equal(id, (<-seen).TraceID().String())
	}
}
