package mcp

//lint:file-ignore SA1019 The protocol has deprecated log messages, and names nothing in their place.

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// capabilities returns the features that the server announces to its clients.
func capabilities() *mcp.ServerCapabilities {
	return &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Logging: &mcp.LoggingCapabilities{}}
}

// noteLogLevels records the level of log messages that a client sets for its session, in the earlier
// version of the protocol.
func (s *Server) noteLogLevels(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		session, _ := req.GetSession().(*mcp.ServerSession)
		if set, ok := req.GetParams().(*mcp.SetLoggingLevelParams); ok && session != nil {
			if _, known := s.logging.Swap(session, set.Level); !known {
				go func() {
					_ = session.Wait() // the error does not matter: it means that the client is gone, which also ends the session
					s.logging.Delete(session)
				}()
			}
		}
		return next(ctx, method, req)
	}
}

// wantsLogs reports whether the client wants all log messages of the server. In the later version of
// the protocol, each call contains the level.
func (c *call) wantsLogs() bool {
	level, _ := c.server.logging.Load(c.Session)
	name, _ := level.(mcp.LoggingLevel)
	if one, ok := c.Params.Meta[mcp.MetaKeyLogLevel].(string); ok {
		name = mcp.LoggingLevel(one)
	}
	return name == "debug" || name == "info"
}

// tellNotices sends the notices of the call's session to the client until ctx ends. They are log
// messages of the protocol. If the client wants no log messages, nod keeps the notices. The client gets
// the notice that a question is shown only if the question is the request with this id.
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
		ctx := context.WithoutCancel(ctx)                                                                              // send this notice even if ctx has ended, because nod has forgotten it
		_ = c.Session.Log(ctx, &mcp.LoggingMessageParams{Logger: "nod", Level: level, Data: agents.DescribeNotice(n)}) // fails if the client is gone
	})
	if err != nil && ctx.Err() == nil {
		c.server.opts.Log.Info("mcp: a call hears no notices", "session", c.session, "error", err)
	}
}
