// Package agents contains code that several agent connectors share: the interface to nod, the
// conversion of a host's ids to ids for nod, and the texts that tell an agent a decision.
package agents

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Asker is the interface to nod that an agent connector needs.
type Asker interface {
	// Ask sends r and blocks until r is decided, without a time limit. If nod has stored r already,
	// Ask waits for the decision about the stored request. If nod refuses r, the error is a
	// *schemas.Error. Its code is UNAVAILABLE if nod does not accept r in time. When ctx ends, Ask
	// returns an error and r may stay pending. The caller must then withdraw r.
	Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error)
	// Withdraw ends a request that its agent no longer waits for. It works even if the request reaches
	// nod only later. If the request is decided already, the decision stays and Withdraw returns nil.
	Withdraw(ctx context.Context, sessionID, pendingID, reason string) error
}

// CallAsker is the interface to nod of a connector that learns which calls its agent never runs.
type CallAsker interface {
	Asker
	// Abandon withdraws the request of a tool call that never runs. If nod has allowed the request already,
	// its record gets the aftermath schemas.AftermathNeverRan, which people read instead of the allow.
	Abandon(ctx context.Context, sessionID, pendingID, reason string) error
}

// storeWithin is the longest time that nod may take to store a request.
const storeWithin = 15 * time.Second

// UntilStored returns a context for the time in which nod must store a request. It ends after 15 s or,
// if ctx has a deadline soon, after three quarters of the time until then. If nod has not stored the
// request by then, Ask fails with UNAVAILABLE while ctx still runs, so that the caller can report this
// failure instead of a pending request.
func UntilStored(ctx context.Context) (context.Context, context.CancelFunc) {
	within := storeWithin
	if deadline, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(deadline)*3/4)
	}
	return context.WithTimeout(ctx, within)
}

// MayBeOpen reports whether a request may be pending although Ask failed with err. If so, the caller
// must withdraw the request. If nod refused the request with a code other than UNAVAILABLE and
// INTERNAL_ERROR, nod has not stored it, and MayBeOpen returns false. One such code is CONFLICT:
// another request has the id, and the caller must not withdraw that request.
func MayBeOpen(err error) bool {
	var refused *schemas.Error
	if !errors.As(err, &refused) {
		return true
	}
	return refused.Code == schemas.CodeUnavailable || refused.Code == schemas.CodeInternal
}

// ID converts a host's id of a request or session to an id for nod. It keeps a valid id. It replaces
// an invalid id by "h-" and 32 hex digits of its SHA-256, and an empty id by a random one.
func ID(host string) string {
	switch {
	case host == "":
		return NewID()
	case schemas.ValidID(host):
		return host
	}
	sum := sha256.Sum256([]byte(host))
	return "h-" + hex.EncodeToString(sum[:16])
}

// NewID returns a random id of 16 lower-case letters and digits (80 bits). People can usually name the
// request by the first schemas.MinPrefix characters.
func NewID() string { return strings.ToLower(rand.Text()[:16]) }
