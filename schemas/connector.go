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
	// ShownClaim takes the entry for one try to show Revision, or its outcome where
	// Settled. The reply has another's claim if that still runs, and no claim if there
	// is nothing to show any more.
	ShownClaim ShownOp = "claim"
	ShownSet   ShownOp = "set" // by compare-and-set on Entry
)

// Shown reads, claims or writes where a prompt was shown, so that any worker can
// edit it and one at a time does. The same noun answers: Entry is the entry's
// revision, 0 for none.
type Shown struct {
	Type      string  `json:"type"`
	Op        ShownOp `json:"op"`
	Recipient string  `json:"recipient"`
	SessionID string  `json:"session_id"`
	PendingID string  `json:"pending_id"`
	Entry     uint64  `json:"entry,omitempty"`
	Ref       string  `json:"ref,omitempty"` // the channel's own handle of the message
	// Also are further messages that show the same: workers sent them that were held up
	// for so long that another had taken over.
	Also []string `json:"also,omitempty"`
	// Revision is the newest version of the record that is shown; 0 for none.
	Revision uint64 `json:"revision,omitempty"`
	Settled  bool   `json:"settled,omitempty"` // the outcome is shown, and nothing follows
	Claim    *Claim `json:"claim,omitempty"`
	// Repeat: a message that nobody can edit may show the request as well, because a
	// worker did not come back from sending it.
	Repeat bool `json:"repeat,omitempty"`
}

// Claim is one try of a worker's to show a prompt. Nobody else tries before Until,
// in broker time.
type Claim struct {
	Worker string    `json:"worker"`
	Try    string    `json:"try"`
	Until  time.Time `json:"until,omitzero"` // the engine's to set
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
