// Package agents is what every way in for agents shares: what it may do with
// nod, how a host's ids become nod's, and what a decision lets it do.
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

// Asker is what a way in may do with nod.
type Asker interface {
	// Ask blocks until the one decision about r is there, however long that
	// takes, and rejoins r where it was asked before. Nod's own refusals are a
	// *schemas.Error, of code UNAVAILABLE where nod does not take r in soon. When
	// ctx ends it returns an error, and r stays open:
	// taking it back is the caller's, with Withdraw.
	Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error)
	// Withdraw takes a request back that nobody waits for any more, whether or
	// not it has reached nod yet. Where it was decided first, the error says so
	// and nothing changes.
	Withdraw(ctx context.Context, sessionID, pendingID, reason string) error
}

// MayBeOpen reports whether a request whose asking failed so may be waiting
// for a person. A refusal leaves nothing behind, and after a CONFLICT the id
// is somebody else's, whose request is not ours to withdraw.
func MayBeOpen(err error) bool {
	var refused *schemas.Error
	if !errors.As(err, &refused) {
		return true
	}
	return refused.Code == schemas.CodeUnavailable || refused.Code == schemas.CodeInternal
}

// ID makes nod's id of a host's: the same one where it can name a request or a
// session, else "h-" and 32 hex digits of its SHA-256, and a random one where
// the host has none. It never depends on what is asked.
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

// NewID returns a random id of 16 lower-case letters and digits, 80 bits: its
// first schemas.MinPrefix characters usually tell it from all others.
func NewID() string { return strings.ToLower(rand.Text()[:16]) }
