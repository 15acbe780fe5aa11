package schemas

import "time"

// Register announces a live worker of a connector. The announcement is a lease and must
// be renewed.
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

// ShownOp is an operation on a shown entry.
type ShownOp string

// The operations on shown entries.
const (
	ShownGet ShownOp = "get"
	// ShownClaim claims the entry for one attempt to show Revision, or the outcome if
	// Settled. The reply contains another worker's claim if that is still valid, and no
	// claim if there is nothing left to show.
	ShownClaim ShownOp = "claim"
	ShownSet   ShownOp = "set" // by compare-and-set on Entry
)

// Shown reads, claims or writes the entry that says how a prompt was shown. It lets every
// worker edit the message, and only one at a time. The reply has the same type; Entry is
// the entry's revision, 0 if there is no entry.
type Shown struct {
	Type      string  `json:"type"`
	Op        ShownOp `json:"op"`
	Recipient string  `json:"recipient"`
	SessionID string  `json:"session_id"`
	PendingID string  `json:"pending_id"`
	Entry     uint64  `json:"entry,omitempty"`
	Ref       string  `json:"ref,omitempty"` // the channel's own handle of the message
	// Also lists further messages that show the same prompt. They come from workers that
	// were delayed until another worker had taken over.
	Also []string `json:"also,omitempty"`
	// Revision is the newest version of the record that is shown; 0 if there is no such
	// version.
	Revision uint64 `json:"revision,omitempty"`
	Settled  bool   `json:"settled,omitempty"` // the outcome is shown, and no edit follows
	Claim    *Claim `json:"claim,omitempty"`
	// Repeat: an unknown message, which no worker can edit, may also show the request,
	// because a worker disappeared while sending it.
	Repeat bool `json:"repeat,omitempty"`
}

// Claim is one worker's attempt to show a prompt. No other worker attempts it before
// Until, a broker time.
type Claim struct {
	Worker string    `json:"worker"`
	Try    string    `json:"try"`
	Until  time.Time `json:"until,omitzero"` // set by the engine
}

// DeliveryState is the result of showing a prompt.
type DeliveryState string

// The delivery states.
const (
	DeliveryShown       DeliveryState = "shown"
	DeliveryFailed      DeliveryState = "failed"      // for this recipient, permanently
	DeliveryUnreachable DeliveryState = "unreachable" // no recipient could be shown it
)

// Delivery reports the result of showing a prompt to one recipient.
type Delivery struct {
	Type      string        `json:"type"`
	Recipient string        `json:"recipient"`
	SessionID string        `json:"session_id"`
	PendingID string        `json:"pending_id"`
	State     DeliveryState `json:"state"`
	Reason    string        `json:"reason,omitempty"`
}

// OK is the reply to a request that needs no content in return.
type OK struct {
	Type string `json:"type"`
}
