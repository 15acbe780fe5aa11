package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
	// endedKept is how long an ended standing answer is kept. It is longer than bus.Retention, because
	// an engine may handle a decision again while the decision's record is kept. The engine must then
	// find the ended answer, so that it does not create the answer again.
	endedKept = 48 * time.Hour
	// standingKept is how long a session's standing answer without an expiry is kept.
	standingKept = 365 * 24 * time.Hour
)

// standingPrefix begins the keys of standing answers in the bucket of sessions.
const standingPrefix = "standing."

// standingFilter matches the keys of an owner's answers. An owner is "session.S" or "agent.A".
func standingFilter(owner string) string { return standingPrefix + owner + ".*" }

func ownerOf(g *schemas.StandingAnswer) string {
	if g.Scope == schemas.ScopeAgent {
		return agentKey(g.Agent)
	}
	return sessionKey(g.SessionID)
}

func standingKey(owner, id string) string { return standingPrefix + owner + "." + id }

// splitStanding splits the key of a standing answer. The result ok is false for any other key.
func splitStanding(key string) (owner, id string, ok bool) {
	rest, ok := strings.CutPrefix(key, standingPrefix)
	i := strings.LastIndexByte(rest, '.')
	if !ok || i < 0 {
		return "", "", false
	}
	return rest[:i], rest[i+1:], true
}

type standingEntry struct {
	schemas.StandingAnswer
	key      string
	revision uint64
}

// readEntries reads standing answers by their keys. It returns the answers by id, and the
// newest revision among them.
func (e *holdings) readEntries(ctx context.Context, keys []string) (byID map[string]*standingEntry, newest uint64, err error) {
	found := make([]*standingEntry, len(keys))
	errs := make([]error, len(keys))
	each(len(keys), func(i int) { found[i], errs[i] = e.readEntry(ctx, keys[i]) })
	if err := errors.Join(errs...); err != nil {
		return nil, 0, err
	}
	byID = make(map[string]*standingEntry, len(keys))
	for _, s := range found {
		if s != nil {
			_, id, _ := splitStanding(s.key)
			byID[id], newest = s, max(newest, s.revision)
		}
	}
	return byID, newest, nil
}

func (e *holdings) readEntry(ctx context.Context, key string) (*standingEntry, error) {
	var page schemas.Grants
	revision, err := e.store.Sessions.Get(ctx, key, &page)
	if errors.Is(err, bus.ErrNotFound) || err == nil && len(page.Grants) != 1 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e.endRestored(&page.Grants[0])
	return &standingEntry{page.Grants[0], key, revision}, nil
}

// readAnswer reads a standing answer from the store into the cache. It returns nil if none is stored.
func (e *holdings) readAnswer(ctx context.Context, owner, id string) (*standingEntry, error) {
	entry, err := e.readEntry(ctx, standingKey(owner, id))
	if err != nil {
		return nil, err
	}
	revision := uint64(0)
	if entry != nil {
		revision = entry.revision
	}
	e.standing.mu.Lock()
	if o := e.standing.owners[owner]; o != nil && entry == nil {
		revision = max(o.stale[id], o.newest)
	}
	e.standing.mu.Unlock()
	e.standing.stored(owner, id, entry, revision, e.clock.now())
	return entry, nil
}

// changeAnswer changes a standing answer by compare-and-set, and returns the stored answer. The
// function change gets a zero answer if none is stored, and runs again after a conflict. If change
// returns false, nothing is written.
func (e *holdings) changeAnswer(ctx context.Context, owner, id string, change func(*schemas.StandingAnswer) bool) (schemas.StandingAnswer, error) {
	key := standingKey(owner, id)
	var g schemas.StandingAnswer
	changed := false
	_, revision, err := bus.Change(ctx, e.store.Sessions, key, func(page *schemas.Grants, _ bool) (bus.Edit, error) {
		g = schemas.StandingAnswer{}
		if len(page.Grants) == 1 {
			g = page.Grants[0]
			e.endRestored(&g)
		}
		if changed = change(&g); !changed {
			return bus.Edit{}, nil
		}
		if g.GrantID != "" { // the outbox may create an answer late, because of a decision from before a restore
			e.endRestored(&g)
		}
		*page = schemas.Grants{Type: schemas.TypeGrants, Grants: []schemas.StandingAnswer{g}}
		return bus.Edit{Store: true, Kept: keptFor(&g, e.clock.now())}, nil
	})
	if err != nil {
		return g, fmt.Errorf("store the standing answer %s: %w", id, err)
	}
	if changed {
		e.standing.stored(owner, id, &standingEntry{g, key, revision}, revision, e.clock.now())
	}
	return g, nil
}

// keptFor returns how long the broker keeps a standing answer; 0 means without limit.
func keptFor(g *schemas.StandingAnswer, now time.Time) time.Duration {
	switch {
	case !g.RevokedAt.IsZero(), g.Limited && g.Uses == 0:
		return endedKept
	case !g.ExpiresAt.IsZero():
		return max(g.ExpiresAt.Sub(now), 0) + endedKept
	case g.Scope == schemas.ScopeAgent:
		return 0
	}
	return standingKept
}
