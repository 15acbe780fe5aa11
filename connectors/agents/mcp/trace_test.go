package mcp_test

import (
	"context"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/nodbus/nod/connectors/agents/mcp"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

// tracedNod is the interface to a running nod. It notes the trace of each request.
type tracedNod struct {
	*realNod
	traces chan trace.SpanContext
}

func (n *tracedNod) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	n.traces <- trace.SpanContextFromContext(ctx)
	return n.realNod.Ask(ctx, r)
}

// A call's request belongs to the trace that the call's _meta names. A malformed trace has no effect.
func TestACallContinuesTheTraceOfItsMeta(t *testing.T) {
	t.Parallel()
	n := &tracedNod{watch(nodtest.Start(t, byTool)), make(chan trace.SpanContext, 10)}
	everyWay(t, func(t *testing.T, w way) {
		n := &tracedNod{n.realNod, make(chan trace.SpanContext, 10)}
		c := reach(t, serve(t, n, mcp.Options{}), w, nil)
		for parent, valid := range map[any]bool{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": true, "nonsense": false, 7: false, nil: false} {
			for tool, arguments := range map[string]string{"approve": use("Yes", `{}`, ""), "request_permission": `{"permission":"@network","reason":"r","wait":false}`} {
				p := callOf(tool, arguments)
				if p.Meta == nil {
					p.Meta = sdk.Meta{}
				}
				p.Meta["traceparent"], p.Meta["tracestate"] = parent, "vendor=1"
				_, err := c.CallTool(t.Context(), p)
				require.NoError(t, err)
				require.Equal(t, valid, (<-n.traces).IsValid(), "%s %v", tool, parent)
			}
		}
	})
}
