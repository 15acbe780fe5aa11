package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// basis lists the stored entries on which an allow depends: standing answers and, if revision
// is not 0, the session's own permissions at that revision. An allow counts only if these
// entries have not changed.
type basis struct {
	session  string
	revision uint64
	answers  []*standingEntry
}

// basisOf collects permissions until the function enough returns true. It begins with the session's own
// permissions and adds one standing answer after another, each with the answers from which it was
// shared. If enough never returns true, basisOf returns all permissions.
func (h *entitlements) basisOf(enough func(schemas.SessionPermissions) bool) basis {
	b := basis{session: h.session.SessionID}
	if h.managed() {
		b.revision = h.revision
	}
	used := []*standingEntry{}
	for _, s := range h.perms {
		if enough(policy.Held(h.session.Permissions, answersIn(used))) {
			break
		}
		used = append(used, s)
	}
	for _, s := range used {
		b.answers = append(append(b.answers, s), h.sources[s.GrantID]...)
	}
	return b
}

// confirmBasis reports whether no entry of a basis has changed or expired. A majority of the
// stream's servers confirms the revisions during the call. Entries that have changed are read
// again at their next use.
func (e *holdings) confirmBasis(ctx context.Context, b basis) (bool, error) {
	for _, s := range b.answers {
		if s.ExpiresAt.IsZero() {
			continue
		}
		if over, err := e.clock.late(ctx, s.ExpiresAt); over || err != nil {
			return false, err
		}
	}
	keys, revisions := []string{}, []uint64{}
	if b.revision != 0 {
		keys, revisions = append(keys, sessionKey(b.session)), append(revisions, b.revision)
	}
	for _, s := range b.answers {
		if !slices.Contains(keys, s.key) {
			keys, revisions = append(keys, s.key), append(revisions, s.revision)
		}
	}
	errs := make([]error, len(keys))
	each(len(keys), func(i int) { errs[i] = e.store.Sessions.Confirm(ctx, keys[i], revisions[i]) })
	ok := true
	for i, err := range errs {
		if errors.Is(err, bus.ErrMoved) {
			ok = false
			if owner, _, standing := splitStanding(keys[i]); standing {
				e.standing.doubt(owner)
			} else {
				e.sessionCache.forget(keys[i])
			}
			continue
		}
		if err != nil {
			return false, err
		}
	}
	return ok, nil
}

// requireBasis returns UNAVAILABLE if an entry of a basis has changed or expired.
func (e *holdings) requireBasis(ctx context.Context, b basis) error {
	ok, err := e.confirmBasis(ctx, b)
	if err == nil && !ok {
		err = schemas.Errorf(schemas.CodeUnavailable, "the permissions of session %s are just being changed; ask again", b.session)
	}
	return err
}
