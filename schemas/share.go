package schemas

// Share is one session's wish that another session of the same agent hold what
// it holds itself.
type Share struct {
	Type        string   `json:"type"`
	SessionID   string   `json:"session_id"` // who shares
	AgentID     string   `json:"agent_id"`   // the session that gets it
	Permissions []string `json:"permissions"`
	Reason      string   `json:"reason"`
}

// Gate asks whether a session holds what a scheduled task needs. It asks no
// person, and the task runs whatever the answer is.
type Gate struct {
	Type        string   `json:"type"`
	SessionID   string   `json:"session_id"`
	GateID      string   `json:"gate_id"`
	Name        string   `json:"name"`
	Permissions []string `json:"permissions"`
}

// GateReply answers a Gate: what is missing, as the gate named it.
type GateReply struct {
	Type    string   `json:"type"`
	Missing []string `json:"missing"`
}
