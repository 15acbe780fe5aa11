package schemas

// Notice is information for an agent about its session. It has no effect on decisions.
type Notice struct {
	Type      string     `json:"type"`
	SessionID string     `json:"session_id"`
	PendingID string     `json:"pending_id,omitempty"`
	Kind      NoticeKind `json:"kind"`
	Text      string     `json:"text"`
}

// NoticeKind says what a Notice is about.
type NoticeKind string

// The kinds of notice.
const (
	NoticeShown         NoticeKind = "shown"
	NoticeUndeliverable NoticeKind = "undeliverable"
	NoticeAsked         NoticeKind = "asked"   // the session shows the request of a background session
	NoticeDecided       NoticeKind = "decided" // a request that the session showed for a background session was decided
	NoticeGate          NoticeKind = "gate"    // a scheduled task of the session lacks permissions
)

// Notices are the notices that nod keeps for a session whose agent is not always connected, such as an
// agent that asks through hooks. nod keeps no notice of the kind NoticeShown.
type Notices struct {
	Type    string   `json:"type"`
	Notices []Notice `json:"notices"` // oldest first, at most MaxNotices
	// Taken is the number of these notices that the agent has already taken. Only the stored form has it.
	Taken int `json:"taken,omitempty"`
}

// MaxNotices is the greatest number of notices that nod keeps for a session. A further notice replaces
// the oldest.
const MaxNotices = 20
