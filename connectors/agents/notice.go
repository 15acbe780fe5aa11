package agents

import "github.com/nodbus/nod/schemas"

// IsNews reports whether a notice is news for a call that waits for the request pendingID. The notice
// that a question is shown is news only for the call of that question.
func IsNews(n schemas.Notice, pendingID string) bool {
	return n.Kind != schemas.NoticeShown || n.PendingID == pendingID
}

// DescribeNotice returns a notice as one line for an agent or its user.
func DescribeNotice(n schemas.Notice) string { return "nod: " + n.Text }
