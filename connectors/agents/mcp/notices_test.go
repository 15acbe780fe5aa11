package mcp_test

//lint:file-ignore SA1019 The protocol has deprecated log messages, and names nothing in their place.

import (
	"context"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/mcp"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

// A client that wants log messages gets the notices of a session while a call of this session waits,
// over every transport. It gets the notices that nod has kept, and those that are new.
func TestNoticesAreLogMessages(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, w way) {
		hold := make(chan struct{})
		client := nodtest.Start(t, func(schemas.Prompt) nodtest.Answer {
			<-hold
			return nodtest.Allow()
		})
		logged := make(chan *sdk.LoggingMessageParams, 10)
		n := watch(client)
		c := reach(t, serve(t, n, mcp.Options{}), w, &sdk.ClientOptions{LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) {
			logged <- r.Params
		}})
		params := callOf("approve", use("Deploy", `{}`, ""))
		if w.version == later {
			params.Meta = sdk.Meta{sdk.MetaKeyLogLevel: "info"}
		} else {
			require.NoError(t, c.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: "info"}))
		}
		called := make(chan error, 1)
		go func() {
			_, err := c.CallTool(t.Context(), params)
			called <- err
		}()
		asked := <-n.asked
		gate := func(name string) {
			_, err := client.Gate(t.Context(), schemas.Gate{SessionID: asked.SessionID, GateID: "g", Name: name, Permissions: []string{"@network"}})
			require.NoError(t, err)
		}
		for _, name := range []string{"one", "two"} {
			gate(name)
			got := <-logged
			assert.Contains(t, got.Data, `nod: Cron gate permissions not allowed for "`+name+`"`)
			assert.Equal(t, sdk.LoggingLevel("warning"), got.Level)
			assert.Equal(t, "nod", got.Logger)
		}
		close(hold)
		require.NoError(t, <-called)

		gate("between two calls")
		kept, err := client.TakeNotices(t.Context(), asked.SessionID)
		require.NoError(t, err)
		require.Len(t, kept, 1, "nobody listens after the call")
		assert.Empty(t, logged)
	})
}
