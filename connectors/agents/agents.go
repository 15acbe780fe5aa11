// Package agents contains code that several agent connectors share: the interface to nod, the
// conversion of a host's ids to ids for nod, and the sentences that tell an agent the decision.
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
	// Withdraw ends a request that its agent no longer waits for. It also has an effect if the request
	// has not reached nod yet. If the request was decided before, the decision stays and Withdraw
	// returns nil.
	Withdraw(ctx context.Context, sessionID, pendingID, reason string) error
}

// CallAsker is the interface to nod of a connector that knows which calls its agent never runs.
type CallAsker interface {
	Asker
	// Abandon withdraws the request of a tool call that never runs. If the request was allowed before,
	// its record gets the aftermath schemas.AftermathNeverRan, which people read instead of the allow.
	Abandon(ctx context.Context, sessionID, pendingID, reason string) error
}

// storeWithin is the longest time that nod may take to store a request.
const storeWithin = 15 * time.Second

// UntilStored returns a context for the time in which nod must store a request. The context ends after
// 15 s, or after three quarters of the time to ctx's deadline if that is earlier. If nod has not
// stored the request by then, Ask fails with UNAVAILABLE before ctx ends, and the caller can report
// that failure instead of a pending request.
func UntilStored(ctx context.Context) (context.Context, context.CancelFunc) {
	within := storeWithin
	if deadline, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(deadline)*3/4)
	}
	return context.WithTimeout(ctx, within)
}

// MayBeOpen reports whether a request may be pending after Ask failed with err. The caller must
// then withdraw it. If nod refused the request with a code other than UNAVAILABLE or
// INTERNAL_ERROR, nod has not stored it and MayBeOpen returns false. After CONFLICT, the id belongs
// to another request, which the caller must not withdraw.
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

// NewID returns a random id of 16 lower-case letters and digits (80 bits). Its first schemas.MinPrefix
// characters are usually enough for a person to name the request.
func NewID() string { return strings.ToLower(rand.Text()[:16]) }
