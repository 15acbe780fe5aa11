// Package people is what every connector that reaches people shares: the
// interface it implements, the desk it works at, and the texts that a person
// reads and says. A channel lays these texts out; it never makes its own.
//
// Whatever an agent supplied goes through Line or Lines before a person sees
// it. Where the exact payload does not fit, there is no way to allow.
package people

import (
	"context"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Ref is a channel's own handle of a message that it showed: enough for any
// worker of the connector, after any restart, to edit or follow up on it. It
// holds no secret. Empty where the channel has no handle.
type Ref string

// Carrier shows prompts to people on one channel and brings their answers
// back. It never retries on its own: the connector actor is the only retry
// loop, and an *Error tells it how. A worker calls methods at once for different
// recipients, and one after the other for the same. Of several workers one at a time
// shows, changes or settles a prompt.
type Carrier interface {
	// Run receives answers and brings them to desk until ctx ends, then
	// returns promptly with ctx's error. An answer is acknowledged to the
	// channel only after desk took it or refused it for good, so it may be
	// reported twice, which is harmless. The message that was answered loses its
	// choices when its request is decided, also one that no worker knows of. Any
	// other error means that the channel is out of order; Run is then called again.
	Run(ctx context.Context, desk Desk) error

	// Prompt shows p to p.Recipient and says where. It returns only when the
	// channel confirmed the message. After an error it may have been shown all the
	// same, unless that is an *Error with After, Permanent or Unreachable. With
	// p.Repeat the message says that another one about p may be there. With a
	// p.Decision it says how p ended and has no choices: its question, if it is
	// there, cannot be edited.
	Prompt(ctx context.Context, p schemas.Prompt) (Ref, error)

	// Settle replaces what ref shows by p's outcome: the buttons go, the
	// command stays. Where the channel cannot edit, it follows up. It may be
	// called twice; a message that is gone is no error. With p.Repeat it says that
	// choices of another message about p change nothing.
	Settle(ctx context.Context, ref Ref, p schemas.Prompt) error
}

// Reviser is a Carrier that can change what an open question shows: that nobody
// waits for its answer any more, or that somebody does again.
type Reviser interface {
	// Revise replaces what ref shows by p, which is open still, and keeps its
	// choices, and the words of p.Repeat. A message that is gone, or can no longer be
	// changed, is no error.
	Revise(ctx context.Context, ref Ref, p schemas.Prompt) error
}

// Desk is what a connector may do with nod. Its errors are *schemas.Error,
// which Refusal puts into words, or ctx's own.
type Desk interface {
	// Answer records what a person said. It returns the stored decision when
	// this answer made it or said the same; success is shown only then. CONFLICT
	// and STALE carry the decision that stands instead. UNAVAILABLE leaves open
	// whether the answer counts: the person reads Recording, never "failed".
	Answer(ctx context.Context, a schemas.Answer) (schemas.Decision, error)

	// Pending lists what waits for an answer and may be shown on this
	// connector, oldest first; with a recipient, only what that person may be
	// shown. Unknown and foreign ids list nothing.
	Pending(ctx context.Context, q schemas.Query) ([]schemas.Prompt, error)

	// Show returns one request that may be shown on this connector, decided or
	// not, by its session and its whole id, and the page it came in, which has
	// the broker's time. NOT_FOUND for an unknown one and for a foreign one.
	Show(ctx context.Context, session, id string) (schemas.Prompt, schemas.Page, error)

	// Hold says that a client is there, or wants the session's input lock. The
	// lease must be renewed before it ends; Granted is false once it is lost.
	Hold(ctx context.Context, p schemas.Presence) (schemas.Lock, error)
}

// Freezer is a Desk from which agents can be stopped: a channel that has a word
// for it offers it where its Desk is one.
type Freezer interface {
	// Freeze denies what is open and whatever is asked, until a thaw. It stops no
	// command that runs already.
	Freeze(ctx context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error)
	// Thaw takes a freeze off, or all where b names nothing.
	Thaw(ctx context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error)
}

// Pairs is a Desk that takes the code by which a person is paired with a channel.
type Pairs interface {
	// Pair brings a code that somebody sent. NOT_FOUND where it is not awaited.
	Pair(ctx context.Context, code string, from schemas.From) error
}

// LoginLinker is a Desk that logs a channel's users in to the web inbox.
type LoginLinker interface {
	// LoginLink makes a code that logs the person in to the web inbox once, with the
	// inbox's address. FORBIDDEN carries the reason why there is no code.
	LoginLink(ctx context.Context, from schemas.From) (schemas.LoginCode, error)
}

// Revoker is a Desk from which people undo standing answers.
type Revoker interface {
	// GrantsFor lists the standing answers that a person gave or may decide about, in
	// no order, ended ones too for a while. FORBIDDEN for a stranger.
	GrantsFor(ctx context.Context, userID string) ([]schemas.StandingAnswer, error)
	// Revoke ends one of them for the person; one that has ended stays as it is.
	// NOT_FOUND for any other, FORBIDDEN for a stranger.
	Revoke(ctx context.Context, g *schemas.StandingAnswer, userID string) error
}

// Error is how a Carrier says that a message did not get through. The zero
// kind is a fault that may pass, after which the message may be there or not: try
// again with backoff. Of the other kinds the channel has said that there is none.
type Error struct {
	After       time.Duration // the channel asked to wait this long
	Permanent   bool          // trying again cannot help
	Unreachable bool          // this person cannot be reached now; say so at once
	Err         error         // what happened, without secrets; may be nil
}

// Error is one line that names what happened.
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

// Unwrap returns what happened.
func (e *Error) Unwrap() error { return e.Err }
