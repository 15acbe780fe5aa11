package acp

import (
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// noticeUpdate is a notification to the editor. Its update is a thought of the agent, because the
// protocol has no messages of a third party.
type noticeUpdate struct {
	Version string       `json:"jsonrpc"`
	Method  string       `json:"method"`
	Params  noticeParams `json:"params"`
}

type noticeParams struct {
	Session string `json:"sessionId"`
	Update  any    `json:"update"`
}

// tellNotices passes the notices of the request's session on to the editor until the request has its
// answer. That a question is shown is news only for the request itself, and only during a turn.
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
