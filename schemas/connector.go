package schemas

import "time"

// Register announces a running worker of a connector or, if Leave is set, the worker's end. The
// registration is a lease: the worker must register again before the LeaseUntil in the reply.
type Register struct {
	Type     string `json:"type"`
	WorkerID string `json:"worker_id"`
	Leave    bool   `json:"leave,omitempty"`
}

// Registered is the reply to a Register.
type Registered struct {
	Type       string    `json:"type"`
	LeaseUntil time.Time `json:"lease_until"`
}

// ShownOp is an operation on an entry of the bucket shown_prompts.
type ShownOp string

const (
	ShownGet ShownOp = "get"
	// ShownClaim claims an entry for one attempt to show the version Revision or, if Settled is set, the
	// outcome. If another worker's claim is still valid, the reply has that claim. If there is nothing to
	// show, the reply has no claim.
	ShownClaim ShownOp = "claim"
	// ShownRenew extends the claim of one attempt to show a prompt. It does nothing if the attempt has
	// lost its claim.
	ShownRenew ShownOp = "renew"
	ShownSet   ShownOp = "set" // writes the entry if the entry's stored revision equals the field Entry
)

// Shown is a request to read, claim or write an entry of the bucket shown_prompts. An entry names the
// message that shows a prompt to one recipient, so that each worker could edit that message. Only the
// worker with the claim edits it. The reply has the type Shown, too. In the reply, Entry is the
// revision of the stored entry, or 0 if none is stored.
type Shown struct {
	Type      string  `json:"type"`
	Op        ShownOp `json:"op"`
	Recipient string  `json:"recipient"`
	SessionID string  `json:"session_id"`
	PendingID string  `json:"pending_id"`
	Entry     uint64  `json:"entry,omitempty"`
	Ref       string  `json:"ref,omitempty"` // the channel's handle of the message
	// Also lists further messages that show the same prompt. Workers sent these messages after they had
	// lost their claims.
	Also []string `json:"also,omitempty"`
	// Revision is the version of the record that the message shows. It is 0 if no message has been sent
	// yet, or if the message still has no buttons.
	Revision uint64 `json:"revision,omitempty"`
	Settled  bool   `json:"settled,omitempty"` // the message shows the outcome, and no edit follows
	Claim    *Claim `json:"claim,omitempty"`
	// Repeat means that the channel may have one more message about the request, because a worker
	// stopped while it was sending that message. No worker can edit that message, because nod does not
	// have its handle. If the channel can edit messages, that message has no buttons.
	Repeat bool `json:"repeat,omitempty"`
}

// Refs returns the handles of all messages that show the prompt.
func (s *Shown) Refs() []string {
	var refs []string
	for _, ref := range append([]string{s.Ref}, s.Also...) {
		if ref != "" {
			refs = append(refs, ref)
		}
	}
	return refs
}

// Claim is one worker's exclusive attempt to show a prompt. No other worker shows the prompt before the
// time Until.
type Claim struct {
	Worker string    `json:"worker"`
	Try    string    `json:"try"`
	Until  time.Time `json:"until,omitzero"` // the end of the claim, in broker time; the engine sets it
}

// DeliveryState is the result of showing a prompt.
type DeliveryState string

// The delivery states.
const (
	DeliveryShown       DeliveryState = "shown"
	DeliveryFailed      DeliveryState = "failed"      // the prompt can never be shown to the recipient
	DeliveryUnreachable DeliveryState = "unreachable" // the recipient cannot be reached at the moment
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

// OK is a successful reply without content.
type OK struct {
	Type string `json:"type"`
}
