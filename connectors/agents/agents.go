// Package agents holds the code that all agent connectors share: the interface to nod,
// the mapping of host ids to nod's ids, and the meaning of a decision for the agent.
package agents

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// Asker is the interface to nod that an agent connector needs.
type Asker interface {
	// Ask blocks until r has its one decision, however long that takes. If r is
	// stored already, Ask rejoins it. Nod's own refusals are a *schemas.Error;
	// its code is UNAVAILABLE if nod does not accept r in time. When ctx ends,
	// Ask returns an error and r stays pending: the caller must Withdraw it.
	Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error)
	// Withdraw ends a request that its agent no longer waits for, even one that
	// has not reached nod yet. If the request was decided first, Withdraw returns
	// an error that says so, and the decision stands.
	Withdraw(ctx context.Context, sessionID, pendingID, reason string) error
}

// MayBeOpen reports whether a request may still be pending after Ask failed with
// err. A refused request is not stored. After a CONFLICT the id belongs to
// another caller's request, which must not be withdrawn.
func MayBeOpen(err error) bool {
	var refused *schemas.Error
	if !errors.As(err, &refused) {
		return true
	}
	return refused.Code == schemas.CodeUnavailable || refused.Code == schemas.CodeInternal
}

// ID converts a host's id of a request or session to nod's. A valid id stays as it
// is, an invalid one becomes "h-" and 32 hex digits of its SHA-256, and an empty
// one becomes a random id. The result never depends on the request's content.
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

// NewID returns a random id of 16 lower-case letters and digits (80 bits). Its
// first schemas.MinPrefix characters are usually unique.
func NewID() string { return strings.ToLower(rand.Text()[:16]) }
