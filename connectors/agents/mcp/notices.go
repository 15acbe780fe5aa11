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

// noteLogLevels remembers which log messages the client of a session asks for, in the earlier protocol.
func (s *Server) noteLogLevels(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		session, _ := req.GetSession().(*mcp.ServerSession)
		if set, ok := req.GetParams().(*mcp.SetLoggingLevelParams); ok && session != nil {
			if _, known := s.logging.Swap(session, set.Level); !known {
				go func() {
					_ = session.Wait() // returns an error if the client is gone, which ends the session too
					s.logging.Delete(session)
				}()
			}
		}
		return next(ctx, method, req)
	}
}

// wantsLogs reports whether the client asks for all log messages of the server. In the later protocol
// each call says so.
func (c *call) wantsLogs() bool {
	level, _ := c.server.logging.Load(c.Session)
	name, _ := level.(mcp.LoggingLevel)
	if one, ok := c.Params.Meta[mcp.MetaKeyLogLevel].(string); ok {
		name = mcp.LoggingLevel(one)
	}
	return name == "debug" || name == "info"
}

// tellNotices sends the notices of the call's session to the client, as log messages, until ctx ends. If
// the client does not ask for log messages, nod keeps the notices. That a question is shown is news only
// for the call that waits for it, whose request is id.
func (c *call) tellNotices(ctx context.Context, id string) {
	if !c.wantsLogs() {
		return
	}
	err := c.server.nod.Notices(ctx, c.session, func(n schemas.Notice) {
		if !agents.IsNews(n, id) {
			return
		}
		level := mcp.LoggingLevel("info")
		if n.Kind == schemas.NoticeUndeliverable || n.Kind == schemas.NoticeGate {
			level = "warning"
		}
		ctx := context.WithoutCancel(ctx)                                                                              // a notice that was taken when the call ended is sent nevertheless
		_ = c.Session.Log(ctx, &mcp.LoggingMessageParams{Logger: "nod", Level: level, Data: agents.DescribeNotice(n)}) // fails if the client is gone
	})
	if err != nil && ctx.Err() == nil {
		c.server.opts.Log.Info("mcp: a call hears no notices", "session", c.session, "error", err)
	}
}
