package acp

import (
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// noticeUpdate shows a notice in the editor. It is an update with a thought of the agent, because ACP
// has no messages of anybody else.
type noticeUpdate struct {
	Version string       `json:"jsonrpc"`
	Method  string       `json:"method"`
	Params  noticeParams `json:"params"`
}

type noticeParams struct {
	Session string `json:"sessionId"`
	Update  any    `json:"update"`
}

// tellNotices shows the notices of a request's session in the editor until the request has an answer. It
// shows the notice that a question is shown only during a turn, and only if the question is this request.
func (s *sidecar) tellNotices(nod Nod, a *ask) {
	err := nod.Notices(a.ctx, a.request.SessionID, func(n schemas.Notice) {
		if !agents.IsNews(n, a.request.PendingID) || n.Kind == schemas.NoticeShown && !s.cache.prompting(a.session) {
			return
		}
		line, err := encodeLine(noticeUpdate{"2.0", methodUpdate, noticeParams{a.session, map[string]any{
			"sessionUpdate": "agent_thought_chunk",
			"content":       map[string]string{"type": "text", "text": "\n" + agents.DescribeNotice(n) + "\n"},
		}}})
		if err == nil {
			s.tellEditor(line)
		}
	})
	if err != nil {
		s.opts.Log.Info("acp: a request hears no notices", "error", err)
	}
}
