package schemas

import (
	"fmt"
	"time"
)

// The limits of a leave.
const (
	DefaultLeave      = 30 * time.Minute
	MaxLeave          = 8 * time.Hour
	DefaultLeaveCalls = 100
	MaxLeaveCalls     = 200
)

// LeaveRequest lets a session go on while its approver is away. Until the leave ends, nod allows
// those tool calls of the session that no rule decides, whose risk is at most MaxRisk, and whose
// words and files nod understands. A leave never covers secrets, calls that a rule denies or asks
// about, calls of high risk, questions, or permissions that a managed session lacks.
type LeaveRequest struct {
	Type       string `json:"type"`
	SessionID  string `json:"session_id"`
	From       From   `json:"from"`        // the approver who leaves
	ForSeconds int    `json:"for_seconds"` // how long the leave lasts; at most MaxLeave
	MaxRisk    Risk   `json:"max_risk"`    // RiskLow or RiskMedium
	MaxCalls   int    `json:"max_calls"`   // how many calls the leave allows; at most MaxLeaveCalls
}

// Leave is the part of a standing answer that is specific to a leave.
type Leave struct {
	MaxRisk  Risk `json:"max_risk"`
	MaxCalls int  `json:"max_calls"`
	// Freezes is the revision of the stored freezes at the beginning of the leave. Any later freeze ends
	// the leave.
	Freezes uint64 `json:"freezes,omitempty"`
	Later   Later  `json:"-"`
}

// String describes, for people, the calls that the leave covers.
func (l *Leave) String() string {
	return fmt.Sprintf("calls up to risk %s that no rule decides", l.MaxRisk)
}
