// Package people contains the code that all channels to people share. Each channel implements the
// interface Carrier and submits answers through the interface Desk. The texts about requests are the
// same on all channels; only their layout differs.
//
// Every text from an agent passes through Line or Lines before a person sees it. If a channel cannot
// show the exact payload of a prompt completely, a person cannot allow the request there.
package people

import (
	"context"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Ref is a channel's handle for a message that it sent. With it, any worker of the connector can edit the
// message or reply to it, even after a restart. A Ref contains no secret. It is empty if the channel has
// no handles.
type Ref string

// Carrier shows prompts to people on one channel, and receives their answers.
//
// Errors: Prompt, Settle and Revise return ctx's own error or an *Error. An *Error tells the worker
// whether and when to call again. A Carrier never retries by itself.
//
// Concurrency: while Run runs, a worker calls the other methods at the same time for different
// recipients, but one after another for the same recipient. Several workers may share a channel, but
// only one of them at a time sends or edits the message of a prompt.
//
// Ownership: the worker stores the Ref of each message. A Carrier keeps no state that another worker
// would need, or the same worker after a restart.
type Carrier interface {
	// Run receives answers and passes them to the Desk. When ctx ends, Run returns promptly with ctx's
	// error. Any other error means that the channel does not work at the moment; the worker then calls
	// Run again.
	//
	// Run acknowledges an answer to the channel only after the Desk has stored the answer or refused it
	// permanently. The same answer may therefore reach the Desk twice, which is harmless. If an answer
	// ends the request, Run itself removes the choices from the answered message. The worker also calls
	// Settle, but possibly much later.
	Run(ctx context.Context, desk Desk) error

	// Prompt sends p to p.Recipient. After the channel has confirmed the message, Prompt returns the
	// message's handle. After an error the message may have been sent, unless the error is an *Error
	// with After, Permanent or Unreachable.
	//
	// If the Carrier is a Reviser, the message has no choices. The worker stores its Ref and then
	// calls Revise, which adds the choices. If a channel shows p in several messages, Prompt sends all
	// of them and returns the Ref of the last.
	//
	// If p.Repeat is set, the channel may already contain a message about p, and the new message must
	// say so. If p has a Decision, the earlier message cannot be edited. The new message then shows
	// the outcome and has no choices.
	Prompt(ctx context.Context, p schemas.Prompt) (Ref, error)

	// Settle updates the message that ref identifies, to show the outcome of p. It removes the choices,
	// but the message still shows the command or other payload. A channel that cannot edit messages sends
	// the outcome as a new message. Settle may be called twice. If the message was deleted, Settle
	// returns no error. If p.Repeat is set, the message also says that choices in another message about p
	// have no effect.
	Settle(ctx context.Context, ref Ref, p schemas.Prompt) error
}

// Reviser is a Carrier that can edit the message of a pending request. Its Prompt sends a message
// without choices, and Revise adds the choices after the worker has stored the message's Ref. If a
// worker dies in between, the message has no choices. No worker can remove choices from a message whose
// Ref is not stored. A Carrier must be a Reviser if its channel can edit messages.
type Reviser interface {
	// Revise updates the message that ref identifies, to show the pending request p, with its choices
	// and, if p.Repeat is set, a sentence about an earlier message. The worker calls it after each
	// Prompt. It also calls it when p changes, for example because its agent stops waiting for the
	// answer. If the message was deleted or can no longer be edited, the error has Permanent set.
	Revise(ctx context.Context, ref Ref, p schemas.Prompt) error
}

// Desk is the client with which a people connector lists, shows and answers requests. It is safe for
// concurrent use. Its errors are ctx's own error or a *schemas.Error. Refusal converts a
// *schemas.Error to a text for people.
type Desk interface {
	// Answer submits a person's answer. It returns the stored decision if this answer made the
	// decision or agrees with it. Only then may the channel report success. The errors CONFLICT and
	// STALE contain the decision that was stored instead, if there is one. UNAVAILABLE means that the
	// result is unknown. The channel then shows Recording or NotConfirmed, and never that the answer
	// failed.
	Answer(ctx context.Context, a schemas.Answer) (schemas.Decision, error)

	// EachPending calls f with one page after another of the pending requests that this connector may
	// show, and keeps only one page in memory. If q has a recipient, the pages contain only the
	// requests that this person may see. A request whose last change is older is on an earlier page.
	// Within a page, the request that was made first is first. A request that changes meanwhile may be
	// on two pages. An error of f ends the list, and EachPending returns it.
	EachPending(ctx context.Context, q schemas.Query, f func(page []schemas.Prompt) error) error

	// Show returns one request that this connector may show, pending or decided, by its session and
	// its whole id. If the id belongs to a call that has joined a question, Show returns the question.
	// The page contains the broker's time. The error is NOT_FOUND for an unknown request and for a
	// request of another connector.
	Show(ctx context.Context, session, id string) (schemas.Prompt, schemas.Page, error)

	// Hold does one of three things, as p.Op says: it reports that a client is present, takes a session's
	// input lock for the client, or releases the lock. The caller must call Hold again before the lease
	// ends. Granted is false if the client does not have the lock.
	Hold(ctx context.Context, p schemas.Presence) (schemas.Lock, error)
}

// Freezer is a Desk that can freeze agents. A channel offers freezes only if its Desk is a Freezer.
type Freezer interface {
	// Freeze denies all pending and new requests of b's target until a thaw. It does not stop commands
	// that are already running.
	Freeze(ctx context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error)
	// Thaw ends the freeze of b's target. If b names no target, it ends all freezes.
	Thaw(ctx context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error)
}

// Pairer is a Desk that accepts pairing codes. A person sends such a code on a channel to become an
// approver there.
type Pairer interface {
	// Pair submits the code that a person sent. from is the person's identity on the channel. The
	// error is NOT_FOUND if no pairing waits for this code.
	Pair(ctx context.Context, code string, from schemas.From) error
}

// LoginLinker is a Desk that can log a channel's users in to the web inbox.
type LoginLinker interface {
	// LoginLink creates a login code for the person, and returns it with the address of the web inbox.
	// The code works once. If the person gets no code, the error is FORBIDDEN and its message is the
	// reason.
	LoginLink(ctx context.Context, from schemas.From) (schemas.LoginCode, error)
}

// Revoker is a Desk through which people can end standing answers.
type Revoker interface {
	// GrantsFor lists the standing answers that a user gave or may revoke, in no particular order. The
	// list includes some that have ended recently. If the user is no approver, the error is FORBIDDEN.
	GrantsFor(ctx context.Context, userID string) ([]schemas.StandingAnswer, error)
	// Revoke ends g in the name of a user. If g has already ended, it changes nothing. The error is
	// NOT_FOUND if GrantsFor would not list g for this user, and FORBIDDEN if the user is no approver.
	Revoke(ctx context.Context, g *schemas.StandingAnswer, userID string) error
}

// Deduper is a Desk that remembers which messages of a channel were handled, for a channel that
// delivers a message more than once. It remembers them over restarts, for all workers of the channel.
type Deduper interface {
	// Handled reports whether a message was marked as handled.
	Handled(ctx context.Context, message string) (bool, error)
	// MarkHandled marks a message as handled until a time that is at most 30 days ahead. If several
	// callers mark the same message, only one of them gets the result true in first.
	MarkHandled(ctx context.Context, message string, until time.Time) (first bool, err error)
}

// Reporter is a Desk for a channel that learns only later whether a message has reached its
// recipient.
type Reporter interface {
	// Report reports to nod what became of a prompt's message. DeliveryUnreachable and
	// DeliveryFailed end the route to the recipient, as the errors of Carrier.Prompt do.
	// DeliveryShown with a Reason reports a receipt, such as "read".
	Report(ctx context.Context, d schemas.Delivery) error
}

// Error is the error of a Carrier that could not send or change a message.
//
// The zero Error is a temporary fault: the message may or may not have been sent, and the worker
// retries with backoff. After, Permanent and Unreachable each mean that the channel certainly has not
// sent the message.
type Error struct {
	After       time.Duration // the time for which the channel asked the worker to wait
	Permanent   bool          // a retry cannot help
	Unreachable bool          // the channel cannot reach the recipient now, and the worker must not retry
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
		return "the channel asks to wait " + schemas.FormatDuration(e.After)
	}
	return "the channel did not take the message"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
