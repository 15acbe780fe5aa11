package schemas

import "time"

// Register announces a live worker of a connector, as a lease to renew.
type Register struct {
	Type     string `json:"type"`
	WorkerID string `json:"worker_id"`
	Leave    bool   `json:"leave,omitempty"`
}

// Registered answers a Register.
type Registered struct {
	Type       string    `json:"type"`
	LeaseUntil time.Time `json:"lease_until"`
}

// ShownOp is what a worker does with a shown entry.
type ShownOp string

// The operations on shown entries.
const (
	ShownGet ShownOp = "get"
	ShownSet ShownOp = "set" // by compare-and-set on Entry
)

// Shown reads or writes where a prompt was shown, so that any worker can edit
// it. The same noun answers: Entry is the entry's revision, 0 for none.
type Shown struct {
	Type      string  `json:"type"`
	Op        ShownOp `json:"op"`
	Recipient string  `json:"recipient"`
	SessionID string  `json:"session_id"`
	PendingID string  `json:"pending_id"`
	Entry     uint64  `json:"entry,omitempty"`
	Ref       string  `json:"ref,omitempty"` // the channel's own handle of the message
	Revision  uint64  `json:"revision,omitempty"`
	Settled   bool    `json:"settled,omitempty"`
}

// DeliveryState is how a prompt fared.
type DeliveryState string

// The delivery states.
const (
	DeliveryShown       DeliveryState = "shown"
	DeliveryFailed      DeliveryState = "failed"      // this recipient, for good
	DeliveryUnreachable DeliveryState = "unreachable" // nobody there to be shown it
)

// Delivery reports how a prompt fared with one recipient.
type Delivery struct {
	Type      string        `json:"type"`
	Recipient string        `json:"recipient"`
	SessionID string        `json:"session_id"`
	PendingID string        `json:"pending_id"`
	State     DeliveryState `json:"state"`
	Reason    string        `json:"reason,omitempty"`
}

// OK answers what needs no other answer.
type OK struct {
	Type string `json:"type"`
}
