package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// A session's standing answers can end with the session, and by any freeze: a leave, and a grant whose reach was
// offered for one session only. The functions in this file mark them as ended, so that lists show it.

// endByFreeze marks as ended all standing answers that end by a freeze and are older than this revision of the
// freezes. It only logs an error, and stops after obeyWithin, because the stored freeze has ended these answers
// already and its reply must not wait long for them.
func (e *admin) endByFreeze(ctx context.Context, revision uint64, by string) {
	ctx, cancel := context.WithTimeout(ctx, obeyWithin)
	defer cancel()
	err := e.holdings.endMatching(ctx, "*", by, func(g *schemas.StandingAnswer) bool {
		since, ends := g.EndsByFreeze()
		return ends && since < revision
	})
	if err != nil {
		e.Log.Warn("engine: standing answers that a freeze has ended are still listed", "error", err)
	}
}

// endWithSession ends the grants of an agent's session that were offered for this session only. It first stores
// those grants that another engine has decided and not stored yet, because they would otherwise begin after the end.
func (e *holdings) endWithSession(ctx context.Context, agent, session string) error {
	changed, err := e.store.Records.ChangedSince(ctx, session, e.clock.now().Add(-schemas.MaxSessionOnly))
	if err != nil {
		return err
	}
	for _, question := range changed {
		if d := question.Record.Decision; d == nil || d.Grant == nil || d.Grant.SessionOnly == nil || d.Grant.Agent != agent {
			continue
		}
		if err := e.applyEffects(ctx, question); err != nil {
			return err
		}
	}
	return e.endMatching(ctx, session, "the end of its session", func(g *schemas.StandingAnswer) bool {
		return g.SessionOnly != nil && g.Agent == agent
	})
}

// endMatching ends those standing answers in force of a session, or with "*" of all sessions, for which matches
// returns true.
func (e *holdings) endMatching(ctx context.Context, session, by string, matches func(*schemas.StandingAnswer) bool) error {
	keys, err := e.store.Sessions.ListKeys(ctx, standingFilter(sessionKey(session)))
	if err != nil {
		return err
	}
	keys = slices.DeleteFunc(keys, func(key string) bool {
		_, id, _ := splitStanding(key)
		return strings.HasPrefix(id, callPrefix)
	})
	errs := make([]error, len(keys))
	each(len(keys), func(i int) {
		owner, id, _ := splitStanding(keys[i])
		entry, err := e.readEntry(ctx, keys[i])
		if err == nil && entry != nil && entry.Live(e.clock.now()) && matches(&entry.StandingAnswer) {
			_, err = e.endGrantAlone(ctx, &schemas.Revoke{GrantID: id, SessionID: strings.TrimPrefix(owner, sessionKey(""))}, by)
		}
		errs[i] = err
	})
	return cmp.Or(errs...)
}
