package schemas

// Share grants permissions of one session to another session of the same agent.
type Share struct {
	Type        string   `json:"type"`
	SessionID   string   `json:"session_id"` // the sharing session
	AgentID     string   `json:"agent_id"`   // the receiving session
	Permissions []string `json:"permissions"`
	Reason      string   `json:"reason"`
}

// Gate asks whether a session has the permissions that a scheduled task needs. nod asks no person,
// and does not stop a task that lacks permissions.
type Gate struct {
	Type        string   `json:"type"`
	SessionID   string   `json:"session_id"`
	GateID      string   `json:"gate_id"`
	Name        string   `json:"name"`
	Permissions []string `json:"permissions"`
}

// GateReply is the reply to a Gate. It has the missing permissions, spelled as in the Gate.
type GateReply struct {
	Type    string   `json:"type"`
	Missing []string `json:"missing"`
}
