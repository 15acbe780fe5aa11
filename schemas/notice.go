package schemas

// Notice is information for an agent's session. It has no effect on decisions.
type Notice struct {
	Type      string     `json:"type"`
	SessionID string     `json:"session_id"`
	PendingID string     `json:"pending_id,omitempty"`
	Kind      NoticeKind `json:"kind"`
	Text      string     `json:"text"`
}

// NoticeKind is the topic of a Notice.
type NoticeKind string

// The kinds of notice.
const (
	NoticeShown         NoticeKind = "shown"
	NoticeUndeliverable NoticeKind = "undeliverable"
	NoticeAsked         NoticeKind = "asked"   // the session shows the request of a background session
	NoticeDecided       NoticeKind = "decided" // a request that the session shows for a background session was decided
	NoticeGate          NoticeKind = "gate"    // a scheduled task lacks permissions
)

// Notices are the notices that nod keeps for a session whose agent is not always connected, such as
// one that asks through hooks. Of the kind NoticeShown nod keeps none.
type Notices struct {
	Type    string   `json:"type"`
	Notices []Notice `json:"notices"` // oldest first, at most MaxNotices
	// Taken is the number of those that the agent has taken. Only the store has it.
	Taken int `json:"taken,omitempty"`
}

// MaxNotices is the largest number of notices that nod keeps for a session. A further one replaces the
// oldest.
const MaxNotices = 20
