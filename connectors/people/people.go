// Package people holds everything that the channels to people share: the Carrier
// interface that each channel implements, the Desk interface through which a channel
// submits answers, and the texts about requests, which every channel shows in the same
// words and in its own layout.
//
// Every text that an agent supplied passes through Line or Lines before a person sees it.
// A prompt whose exact payload does not fit on a channel cannot be allowed there.
package people

import (
	"context"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Ref is a channel's own handle of a message that it sent. With it alone, any worker of
// the connector can edit the message or reply to it, even after a restart. A Ref holds no
// secret. It is empty if the channel has no handles.
type Ref string

// Carrier shows prompts to people on one channel and brings their answers back.
//
// Errors: Prompt, Settle and Revise return ctx's own error or an *Error, which tells the
// worker whether and when to call again. A Carrier never retries by itself: the worker is
// the only retry loop.
//
// Concurrency: a worker calls the methods at the same time for different recipients, and
// one after the other for the same recipient, all while Run runs. Several workers may
// share a channel; only one of them at a time sends or edits a prompt's message.
//
// Ownership: the worker stores the Ref of each message. A Carrier keeps no state that
// another worker, or the same worker after a restart, would need.
type Carrier interface {
	// Run receives answers and passes them to desk until ctx ends; then it returns
	// promptly with ctx's error. Any other error means that the channel does not work at
	// the moment; the worker then calls Run again.
	//
	// Run acknowledges an answer to the channel only after desk has stored it or refused
	// it for good. The same answer may therefore reach desk twice, which is harmless.
	// Once the request is decided, Run removes the choices from the message that was
	// answered. It must not leave this to Settle, whose turn may come much later.
	Run(ctx context.Context, desk Desk) error

	// Prompt sends p to p.Recipient and returns the message's handle once the channel has
	// confirmed the message. After an error the message may have been sent nevertheless,
	// unless the error is an *Error with After, Permanent or Unreachable.
	//
	// If the Carrier is a Reviser, the message offers no choices: the worker stores its
	// Ref and then calls Revise, which adds them. If a channel shows p in several
	// messages, it sends all of them before it returns the last one's Ref.
	//
	// If p.Repeat is set, an earlier message about p may exist, and the new message must
	// say so. If p has a Decision, the earlier message cannot be edited; the new message
	// shows the outcome and offers no choices.
	Prompt(ctx context.Context, p schemas.Prompt) (Ref, error)

	// Settle updates the message at ref to show p's outcome: it removes the choices and
	// keeps the command. A channel that cannot edit sends the outcome as a new message.
	// Settle may be called twice. It returns no error if the message has been deleted. If
	// p.Repeat is set, the message also states that choices in another message about p
	// have no effect.
	Settle(ctx context.Context, ref Ref, p schemas.Prompt) error
}

// Reviser is a Carrier that can edit the message of a pending request. Its Prompt sends a
// message without choices, and Revise adds the choices once the message's Ref is stored. So a
// worker that dies in between leaves no live choices in a message that no worker can find.
// Every Carrier whose channel can edit messages must be a Reviser.
type Reviser interface {
	// Revise updates the message at ref to show p, which is still pending, with its choices
	// and the notice of p.Repeat. The worker calls it after each Prompt, and when p changes,
	// for example because its agent stops waiting for the answer. If the message has been
	// deleted or can no longer be edited, the error has Permanent set.
	Revise(ctx context.Context, ref Ref, p schemas.Prompt) error
}

// Desk is the client through which a people connector lists, shows and answers requests.
// It is safe for concurrent use. Its errors are ctx's own or a *schemas.Error, which
// Refusal turns into a text for people.
type Desk interface {
	// Answer submits a person's answer. It returns the stored decision if this answer
	// made the decision or agrees with it; only then may the channel report success. The
	// errors CONFLICT and STALE carry the decision that was stored instead, if there is
	// one. UNAVAILABLE means that the outcome is unknown: the channel then shows Recording
	// or NotConfirmed, and never that the answer failed.
	Answer(ctx context.Context, a schemas.Answer) (schemas.Decision, error)

	// Pending lists the pending requests that may be shown on this connector, oldest
	// first; if q has a recipient, only the requests that this person may see. If q names
	// a request that is unknown or belongs to another connector, the list is empty.
	Pending(ctx context.Context, q schemas.Query) ([]schemas.Prompt, error)

	// Show returns one request that may be shown on this connector, pending or decided,
	// by its session and its whole id; for a call that has joined a question, it returns
	// the question. The page holds the broker's time. The error is NOT_FOUND for an
	// unknown request, and also for a request of another connector.
	Show(ctx context.Context, session, id string) (schemas.Prompt, schemas.Page, error)

	// Hold reports that a client is present, takes the session's input lock for it, or
	// releases the lock, as p.Op says. The caller must call Hold again before the lease ends.
	// Granted is false if the client does not hold the lock.
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
	// Pair submits the code that a person sent; from is the person's identity on the channel.
	// The error is NOT_FOUND if no pairing waits for this code.
	Pair(ctx context.Context, code string, from schemas.From) error
}

// LoginLinker is a Desk that logs a channel's users in to the web inbox.
type LoginLinker interface {
	// LoginLink makes a code that logs the person in to the web inbox once, and returns it
	// with the inbox's address. The message of a FORBIDDEN error is the reason why no code
	// was made.
	LoginLink(ctx context.Context, from schemas.From) (schemas.LoginCode, error)
}

// Revoker is a Desk through which people revoke standing answers.
type Revoker interface {
	// GrantsFor lists the standing answers that a user gave or may revoke, in no
	// particular order, including some that ended recently. The error is FORBIDDEN for a
	// user who is no approver.
	GrantsFor(ctx context.Context, userID string) ([]schemas.StandingAnswer, error)
	// Revoke ends g for the user; it changes nothing if g has ended. The error is
	// NOT_FOUND if GrantsFor would not list g for this user, and FORBIDDEN for a user who
	// is no approver.
	Revoke(ctx context.Context, g *schemas.StandingAnswer, userID string) error
}

// Error is how a Carrier reports a message that did not get through.
//
// The zero Error is a temporary fault: the message may or may not have been sent, and the
// worker retries with backoff. After, Permanent and Unreachable each mean that the channel
// certainly did not send the message.
type Error struct {
	After       time.Duration // the wait that the channel asked for
	Permanent   bool          // a retry cannot help
	Unreachable bool          // the recipient cannot be reached now; the worker does not retry
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
