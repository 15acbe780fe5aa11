package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// detach leaves a tool call open that its asker can wait for no longer. The
// session remembers it, so that asking the same again takes its place.
func (e *Engine) detach(ctx context.Context, c *bus.Call, entry bus.Entry, r *schemas.Request) error {
	same, err := schemas.Sameness(r)
	if err != nil {
		return err
	}
	entry, err = e.setDetached(ctx, entry, true)
	if err != nil {
		return err
	}
	if entry.Record.Terminal() {
		return e.tell(c, entry)
	}
	note := schemas.Detached{PendingID: r.PendingID, Same: same, Until: entry.Record.Deadline}
	err = e.changeSessionOf(ctx, r.SessionID, func(s *schemas.Session) bool {
		if slices.ContainsFunc(s.Detached, func(d schemas.Detached) bool { return d.PendingID == note.PendingID }) {
			return false
		}
		s.Detached = append(s.Detached, note)
		return true
	})
	if err != nil {
		return err
	}
	c.Reply(receipt(entry, r))
	return nil
}

// detachLate leaves an approval behind of a call that a person allowed at the very
// moment at which its asker, which says so only now, had stopped waiting: its host
// was told no, and the same may be asked once more.
func (e *Engine) detachLate(ctx context.Context, entry bus.Entry) (bus.Entry, error) {
	for !entry.Record.Detached && e.clock.now().Before(entry.Record.Deadline) {
		next := entry
		next.Record.Detached = true
		d, err := asItEnds(&next.Record, entry.Record.Decision)
		if err != nil || d == entry.Record.Decision { // nothing that can be left behind
			return entry, nil
		}
		next.Record.Decision = d
		revision, err := e.store.Records.Decide(ctx, next)
		if err == nil {
			next.Revision = revision
			return next, nil
		}
		if !errors.Is(err, bus.ErrMoved) {
			return entry, fmt.Errorf("note that nobody waited for %s: %w", entry.Key, err)
		}
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil {
			return entry, err
		}
	}
	return entry, nil
}

// setDetached notes in a pending record whether somebody waits for it.
func (e *Engine) setDetached(ctx context.Context, entry bus.Entry, detached bool) (bus.Entry, error) {
	for !entry.Record.Terminal() && entry.Record.Detached != detached {
		next := entry
		next.Record.Detached = detached
		revision, err := e.store.Records.Update(ctx, next)
		if err == nil {
			next.Revision = revision
			return next, nil
		}
		if !errors.Is(err, bus.ErrMoved) {
			return entry, fmt.Errorf("note whether anybody waits for %s: %w", entry.Key, err)
		}
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil {
			return entry, err
		}
	}
	return entry, nil
}

// notesKept bounds how many detached requests, and how many denials, a session
// remembers. What is forgotten is only asked about again: a request stays open,
// and an approval is found without its note.
const notesKept = 64

// latest are the last notesKept of notes.
func latest[T any](notes []T) []T { return notes[max(0, len(notes)-notesKept):] }

// changeSessionOf changes a session that is there, by compare-and-set, for as
// long as change says that there is something to change.
func (e *Engine) changeSessionOf(ctx context.Context, session string, change func(*schemas.Session) bool) error {
	for {
		var s schemas.Session
		revision, err := e.store.Sessions.Get(ctx, sessionKey(session), &s)
		if err != nil || !change(&s) {
			return err
		}
		now := e.clock.now()
		s.Detached = latest(slices.DeleteFunc(s.Detached, func(d schemas.Detached) bool { return d.Until.Before(now) }))
		s.Denials = latest(slices.DeleteFunc(s.Denials, func(d schemas.Denial) bool { return d.Until.Before(now) }))
		_, err = e.putSession(ctx, sessionKey(session), s, revision, sessionKept)
		if !errors.Is(err, bus.ErrMoved) {
			return err
		}
	}
}

// asItEnds is d as it ends this version of a record. Where a person allows a call
// that nobody waits for, that leaves behind that the same may be asked once more,
// until the deadline.
func asItEnds(rec *schemas.Record, d *schemas.Decision) (*schemas.Decision, error) {
	if !rec.Detached || d.Outcome != schemas.Allowed || d.By.Kind != schemas.ByHuman || d.Grant != nil {
		return d, nil
	}
	if d.UpdatedInput != nil {
		return nil, schemas.Errorf(schemas.CodeValidation, "updated_input: nobody waits for this call any more, so it can only be allowed as it was asked")
	}
	r, err := requestOf(rec)
	if err != nil {
		return nil, err
	}
	same, err := schemas.Sameness(&r)
	if err != nil {
		return nil, err
	}
	left := *d
	left.Grant = &schemas.StandingAnswer{
		GrantID: d.DecisionID, Scope: schemas.ScopeOnce, SessionID: r.SessionID, Agent: rec.Agent,
		Once: &schemas.Once{Same: same, PendingID: r.PendingID, ToolName: r.ToolName},
		By:   d.By, CreatedAt: d.DecidedAt, ExpiresAt: rec.Deadline,
	}
	return &left, nil
}

// again settles a call that was asked before and that nobody waited for then: it
// takes the place of the open one, and uses up what was allowed.
func (e *Engine) again(ctx context.Context, a *asked) error {
	once := func(g schemas.StandingAnswer) bool { return g.Once != nil }
	if len(a.held.session.Denials) == 0 && len(a.held.session.Detached) == 0 && !slices.ContainsFunc(a.held.session.Grants, once) {
		return nil
	}
	entry, err := e.store.Records.Get(ctx, a.key())
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		return err
	}
	if err == nil && entry.Record.Terminal() {
		return nil // it has its decision, and uses nothing up
	}
	same, err := a.sameness()
	if err != nil {
		return err
	}
	if a.denial = e.denied(a, same); a.denial != nil {
		a.verdict.Effect, a.verdict.Rule = policy.Deny, "denied by "+a.denial.By.Name
		return nil
	}
	grants := slices.Clone(a.held.session.Grants)
	for _, d := range a.held.session.Detached {
		if d.Same != same || d.PendingID == a.request.PendingID {
			continue
		}
		g, err := e.replace(ctx, a, d)
		if err != nil {
			return err
		}
		if g != nil {
			grants = append(grants, *g)
		}
	}
	for _, g := range grants {
		if !once(g) || g.Once.Same != same || g.Agent != a.agent || g.Once.PendingID == a.request.PendingID { // which its record answers
			continue
		}
		used, err := e.use(ctx, &g, a.request.PendingID)
		if err != nil {
			return err
		}
		if used {
			a.verdict.Effect, a.verdict.Rule = policy.Allow, fmt.Sprintf("approval of %s by %s", g.Once.PendingID, g.By.Name)
			return nil
		}
	}
	return nil
}

// replace ends a request that nobody waits for, because the same is asked again.
// Where it was allowed first, it returns what that left behind.
func (e *Engine) replace(ctx context.Context, a *asked, d schemas.Detached) (*schemas.StandingAnswer, error) {
	entry, err := e.store.Records.Get(ctx, schemas.Key(a.request.SessionID, d.PendingID))
	if errors.Is(err, bus.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if entry.Record.Agent != a.agent || !entry.Record.Terminal() && !entry.Record.Detached {
		return nil, nil
	}
	w := schemas.Withdraw{SessionID: a.request.SessionID, PendingID: d.PendingID, Reason: "asked again as " + a.request.PendingID}
	settled, err := e.settle(ctx, entry, e.withdrawal(a.agent, &w, entry.Record.Digest))
	if err != nil {
		return nil, err
	}
	if g := settled.Record.Decision.Grant; g != nil && g.Once != nil {
		return g, nil
	}
	return nil, nil
}

// usedFor is how long the request that an approval let through finds it again:
// within it the log knows what was decided under an id, and no longer.
const usedFor = 30 * time.Minute

// use lets one request through on what was allowed for one, and says whether it
// did. The same request may come again, for as long as its decision is kept.
func (e *Engine) use(ctx context.Context, g *schemas.StandingAnswer, pendingID string) (used bool, err error) {
	err = e.changeGrants(ctx, g.Scope, g.SessionID, g.Agent, func(all *[]schemas.StandingAnswer) bool {
		used = false
		i := slices.IndexFunc(*all, func(old schemas.StandingAnswer) bool { return old.GrantID == g.GrantID })
		if i < 0 || (*all)[i].Once == nil {
			return false
		}
		old, now := &(*all)[i], e.clock.now()
		if old.Once.UsedBy == pendingID {
			own := old.Once.PendingID == pendingID // whose record is there
			used = own || old.RevokedAt.IsZero() && now.Before(old.Once.UsedAt.Add(usedFor))
			return false
		}
		if used = old.Live(now); used {
			old.Once.UsedBy, old.Once.UsedAt = pendingID, now
		}
		return used
	})
	if err != nil {
		return false, fmt.Errorf("use the approval of %s: %w", g.Once.PendingID, err)
	}
	return used, nil
}

// useOwn is use for the very request that was allowed when nobody waited for it,
// where it is asked about again: unless another was let through instead.
func (e *Engine) useOwn(ctx context.Context, entry bus.Entry) error {
	d := entry.Record.Decision
	if d == nil || d.Grant == nil || d.Grant.Once == nil {
		return nil
	}
	if err := e.thawFirst(ctx, entry.Record.Agent, d.SessionID); err != nil {
		return err
	}
	used, err := e.use(ctx, d.Grant, d.PendingID)
	if err == nil && !used {
		return schemas.Errorf(schemas.CodeConflict, "what was allowed of %s was used for the same request asked again, revoked, or is over: ask again under a new id", entry.Key)
	}
	return err
}
