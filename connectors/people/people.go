// Package people holds everything that the channels to people share: the Carrier
// interface that each channel implements, the Desk interface through which it answers,
// and the texts that people read. A channel lays these texts out and never makes its own.
//
// Every text that an agent supplied passes through Line or Lines before a person sees it.
// A prompt whose exact payload does not fit on a channel cannot be allowed there.
package people

import (
	"context"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Ref is a channel's own handle of a message that it sent. It is all that any worker of
// the connector needs, even after a restart, to edit the message or to reply to it. A Ref
// holds no secret. It is empty if the channel has no handles.
type Ref string

// Carrier shows prompts to people on one channel and brings their answers back.
//
// Errors: a method that sends returns ctx's own error or an *Error, which tells the
// worker whether and when to call again. A Carrier never retries by itself: the worker is
// the only retry loop.
//
// Concurrency: a worker calls the methods at the same time for different recipients, and
// one after the other for the same recipient, all while Run runs. Several workers may
// share a channel; only one of them at a time sends or edits a prompt's message.
//
// Ownership: the worker stores the Ref of each message. A Carrier keeps no state that
// another worker, or the same one after a restart, would miss.
type Carrier interface {
	// Run receives answers and passes them to desk until ctx ends; then it returns
	// promptly with ctx's error. Any other error means that the channel is out of order;
	// the worker then calls Run again.
	//
	// Run acknowledges an answer to the channel only after desk has stored it or refused
	// it for good. The same answer may therefore reach desk twice, which is harmless.
	// Once the request is decided, Run removes the choices from the message that was
	// answered, even if no worker knows that message.
	Run(ctx context.Context, desk Desk) error

	// Prompt sends p to p.Recipient and returns the message's handle, once the channel
	// has confirmed the message. After an error the message may have been sent
	// nevertheless, unless the error is an *Error with After, Permanent or Unreachable.
	//
	// If p.Repeat is set, an earlier message about p may exist, and the new message says
	// so. If p has a Decision, the earlier message cannot be edited: the new message
	// shows the outcome and offers no choices.
	Prompt(ctx context.Context, p schemas.Prompt) (Ref, error)

	// Settle replaces the message at ref by p's outcome: the choices go, the command
	// stays. A channel that cannot edit sends the outcome as a new message. Settle may be
	// called twice, and a message that has been deleted is no error. If p.Repeat is set,
	// the message also says that choices in another message about p have no effect.
	Settle(ctx context.Context, ref Ref, p schemas.Prompt) error
}

// Reviser is a Carrier that can update the message of a pending request, for example when
// its agent stops waiting for the answer or starts to wait again.
type Reviser interface {
	// Revise replaces the message at ref by p, which is still pending. The choices stay,
	// and so does the notice of p.Repeat. A message that has been deleted, or that can no
	// longer be edited, is no error.
	Revise(ctx context.Context, ref Ref, p schemas.Prompt) error
}

// Desk is the client through which a people connector lists, shows and answers requests.
// It is safe for concurrent use. Its errors are *schemas.Error, which Refusal turns into
// a text for people, or ctx's own.
type Desk interface {
	// Answer submits a person's answer. It returns the stored decision if this answer
	// made it or agrees with it; only then may the channel report success. CONFLICT and
	// STALE carry the decision that was stored instead, if there is one. UNAVAILABLE
	// means that the outcome is unknown: the person reads Recording, never that it
	// failed.
	Answer(ctx context.Context, a schemas.Answer) (schemas.Decision, error)

	// Pending lists the pending requests that may be shown on this connector, oldest
	// first; with a recipient, only those that this person may see. For an id that is
	// unknown, or belongs to another connector, the list is empty.
	Pending(ctx context.Context, q schemas.Query) ([]schemas.Prompt, error)

	// Show returns one request that may be shown on this connector, pending or decided,
	// by its session and its whole id. The page has the broker's time. The error is
	// NOT_FOUND for an unknown request and for one of another connector alike.
	Show(ctx context.Context, session, id string) (schemas.Prompt, schemas.Page, error)

	// Hold reports that a client is present, or takes the session's input lock for it.
	// The caller must renew the lease before it ends; Granted is false once it is lost.
	Hold(ctx context.Context, p schemas.Presence) (schemas.Lock, error)
}

// Freezer is a Desk that can freeze agents. A channel offers the freeze only if its Desk
// is a Freezer.
type Freezer interface {
	// Freeze denies the pending requests of b's target, and every new one, until a thaw.
	// It does not stop commands that already run.
	Freeze(ctx context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error)
	// Thaw lifts the freeze that b names, or all freezes if b names no target.
	Thaw(ctx context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error)
}

// Pairer is a Desk that accepts the code by which a person is paired with a channel.
type Pairer interface {
	// Pair submits the code that from sent. NOT_FOUND means that no pairing waits for it.
	Pair(ctx context.Context, code string, from schemas.From) error
}

// LoginLinker is a Desk that logs a channel's users in to the web inbox.
type LoginLinker interface {
	// LoginLink makes a code that logs the person in to the web inbox once, with the
	// inbox's address. FORBIDDEN carries the reason why there is no code.
	LoginLink(ctx context.Context, from schemas.From) (schemas.LoginCode, error)
}

// Revoker is a Desk through which people revoke standing answers.
type Revoker interface {
	// GrantsFor lists the standing answers that a user gave or may revoke, in no
	// particular order, including some that ended recently. The error is FORBIDDEN for a user who is no approver.
	GrantsFor(ctx context.Context, userID string) ([]schemas.StandingAnswer, error)
	// Revoke ends one of them for the user; it changes nothing if g has ended. The error is
	// NOT_FOUND for any other standing answer, and FORBIDDEN for a user who is no
	// approver.
	Revoke(ctx context.Context, g *schemas.StandingAnswer, userID string) error
}

// Error is how a Carrier reports a message that did not get through.
//
// The zero Error is a temporary fault: the message may or may not have been sent, and the
// worker retries with backoff. With any field but Err set, the channel has said that it
// did not send the message.
type Error struct {
	After       time.Duration // how long the channel asked to wait
	Permanent   bool          // a retry cannot help
	Unreachable bool          // the recipient cannot be reached now; reported at once
	Err         error         // the cause, without secrets; may be nil
}

// Error returns the cause in one line.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	switch {
	case e.Unreachable:
		return "this person cannot be reached on this channel"
	case e.Permanent:
		return "the channel refused the message for good"
	case e.After > 0:
		return "the channel asks to wait " + schemas.Words(e.After)
	}
	return "the channel did not take the message"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
