package mcp

//lint:file-ignore SA1019 The protocol has deprecated log messages, and names nothing in their place.

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// capabilities returns what the server offers its clients.
func capabilities() *mcp.ServerCapabilities {
	return &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Logging: &mcp.LoggingCapabilities{}}
}

// tellNotices sends the notices of the call's session to the client, as log messages, until ctx ends. A
// client gets them only if it has asked for log messages. That a question is shown is news only for the
// call that waits for it, whose request is id.
func (c *call) tellNotices(ctx context.Context, id string) {
	err := c.server.nod.Notices(ctx, c.session, func(n schemas.Notice) {
		if n.Kind == schemas.NoticeShown && n.PendingID != id {
			return
		}
		level := mcp.LoggingLevel("info")
		if n.Kind == schemas.NoticeUndeliverable || n.Kind == schemas.NoticeGate {
			level = "warning"
		}
		_ = c.Session.Log(ctx, &mcp.LoggingMessageParams{Logger: "nod", Level: level, Data: agents.DescribeNotice(n)}) // fails if the client is gone
	})
	if err != nil && ctx.Err() == nil {
		c.server.opts.Log.Info("mcp: a call hears no notices", "session", c.session, "error", err)
	}
}
