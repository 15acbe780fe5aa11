package schemas

import "time"

// Register announces a running worker of a connector, or its end if Leave is set. The
// announcement is a lease: the worker must send it again before LeaseUntil of the reply.
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

// ShownOp is an operation on an entry of shown_prompts.
type ShownOp string

// The operations on entries of shown_prompts.
const (
	ShownGet ShownOp = "get"
	// ShownClaim claims the entry for one attempt to show the version Revision, or the
	// outcome if Settled is set. The reply has another worker's claim if that claim is
	// still valid, and no claim if there is nothing to show.
	ShownClaim ShownOp = "claim"
	// ShownRenew extends the claim of an attempt, if the entry still has it. It never
	// claims an entry.
	ShownRenew ShownOp = "renew"
	ShownSet   ShownOp = "set" // writes the entry if its revision is still the one in the field Entry
)

// Shown reads, claims or writes an entry of shown_prompts, which names the message that
// shows a prompt to one recipient. With the entry any worker can edit the message, and
// the claim lets only one worker edit it at a time. The reply has the same type; Entry is the
// entry's revision, or 0 if there is no entry.
type Shown struct {
	Type      string  `json:"type"`
	Op        ShownOp `json:"op"`
	Recipient string  `json:"recipient"`
	SessionID string  `json:"session_id"`
	PendingID string  `json:"pending_id"`
	Entry     uint64  `json:"entry,omitempty"`
	Ref       string  `json:"ref,omitempty"` // the channel's handle for the message
	// Also lists further messages that show the same prompt, sent by workers whose claim
	// had passed to another worker before they sent.
	Also []string `json:"also,omitempty"`
	// Revision is the version of the record that the message shows. It is 0 if nothing is
	// shown, or if the message is sent and does not have its choices yet.
	Revision uint64 `json:"revision,omitempty"`
	Settled  bool   `json:"settled,omitempty"` // the message shows the outcome, and no edit follows
	Claim    *Claim `json:"claim,omitempty"`
	// Repeat means that one more message may show the request: a worker stopped while it was
	// sending that message. nod does not have the message's handle, so no worker can edit
	// it. If the channel can edit messages, that message has no choices.
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

// Claim is one worker's attempt to show a prompt. Before Until, a broker time, no other worker
// shows the prompt.
type Claim struct {
	Worker string    `json:"worker"`
	Try    string    `json:"try"`
	Until  time.Time `json:"until,omitzero"` // the end of the claim, set by the engine
}

// DeliveryState is the result of showing a prompt.
type DeliveryState string

// The delivery states.
const (
	DeliveryShown       DeliveryState = "shown"
	DeliveryFailed      DeliveryState = "failed"      // the prompt cannot be shown to this recipient
	DeliveryUnreachable DeliveryState = "unreachable" // the recipient cannot be reached now
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
