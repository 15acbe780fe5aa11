package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
	// maxCompared is how many open requests of a session one that is asked is
	// compared with. In a larger crowd an identical one is found by the engine that
	// stored it alone; else a person is asked twice, and no more than that.
	maxCompared = 8
	// maxJoiners bounds how many one request decides: its record must stay one
	// that a message carries with any answer in it.
	maxJoiners = 64
	// hintsKept bounds what an engine remembers of what it stored.
	hintsKept = 16384
)

// hints tell an engine under which key it stored a call last. They may be wrong:
// whoever follows one reads what is there.
type hints struct {
	mu   sync.Mutex
	keys map[string]string // by agent, session and Sameness
}

func hintOf(a *asked, same string) string { return a.agent + " " + a.request.SessionID + " " + same }

func (h *hints) get(hint string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keys[hint]
}

func (h *hints) put(hint, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys == nil || len(h.keys) >= hintsKept {
		h.keys = map[string]string{}
	}
	h.keys[hint] = key
}

// identical is the open request of the session that asks the very same of the same
// people, or none.
func (e *Engine) identical(ctx context.Context, a *asked, routes []schemas.Route) (bus.Entry, bool, error) {
	open := a.held.open
	if !a.under.settings.JoinsIdentical() || a.request.Kind != schemas.KindToolCall {
		return bus.Entry{}, false, nil
	}
	same, err := a.sameness()
	if err != nil {
		return bus.Entry{}, false, err
	}
	candidates := open
	if len(open) > maxCompared {
		candidates = nil
	}
	if hint := e.hints.get(hintOf(a, same)); hint != "" && len(open) > 0 && !slices.Contains(candidates, hint) {
		candidates = append(slices.Clone(candidates), hint)
	}
	found := make([]*bus.Entry, len(candidates))
	errs := make([]error, len(candidates))
	each(len(candidates), func(i int) { found[i], errs[i] = e.sameOpen(ctx, a, routes, candidates[i], same) })
	if err := errors.Join(errs...); err != nil {
		return bus.Entry{}, false, err
	}
	for _, entry := range found {
		if entry != nil {
			return *entry, true, nil
		}
	}
	e.hints.put(hintOf(a, same), a.key())
	return bus.Entry{}, false, nil
}

// joinOpen has the record of a request join an identical one that is open, and
// says whether it did.
func (e *Engine) joinOpen(ctx context.Context, a *asked, rec *schemas.Record) (bool, error) {
	other, found, err := e.identical(ctx, a, rec.Routes)
	if err != nil || !found {
		return false, err
	}
	joined, err := e.join(ctx, other, a.request.PendingID)
	if joined {
		_, rec.Joined = schemas.SplitKey(other.Key)
	}
	return joined, err
}

// sameOpen is the entry under key where a could join it.
func (e *Engine) sameOpen(ctx context.Context, a *asked, routes []schemas.Route, key, same string) (*bus.Entry, error) {
	if key == a.key() {
		return nil, nil
	}
	entry, err := e.store.Records.Get(ctx, key)
	if noRecord(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rec := &entry.Record
	if rec.Terminal() || rec.Agent != a.agent || rec.Joined != "" || rec.Detached || len(rec.Joiners) >= maxJoiners {
		return nil, nil
	}
	if rec.Risk != a.verdict.Risk || !slices.Equal(rec.Routes, routes) { // others decide, or it could not be shown
		return nil, nil
	}
	r, err := requestOf(rec)
	if err != nil || !slices.Equal(r.Options, a.request.Options) { // an option that is chosen is both's
		return nil, err
	}
	its, err := schemas.Sameness(&r)
	if err != nil || its != same {
		return nil, err
	}
	return &entry, nil
}

// join has a request decided by an identical one that is open: nobody is shown it
// twice. It reports false where that one has ended meanwhile. The other knows of
// it before it is stored, so that it is never forgotten.
func (e *Engine) join(ctx context.Context, entry bus.Entry, pendingID string) (bool, error) {
	for !entry.Record.Terminal() && entry.Record.Joined == "" {
		if slices.Contains(entry.Record.Joiners, pendingID) {
			return true, nil
		}
		next := entry
		next.Record.Joiners = append(slices.Clone(entry.Record.Joiners), pendingID)
		_, err := e.store.Records.Update(ctx, next)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, bus.ErrMoved) {
			return false, fmt.Errorf("join %s: %w", entry.Key, err)
		}
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil {
			return false, err
		}
	}
	return false, nil
}

// newestJoiner is whom an "allow once" goes to instead of the request that was
// shown: the newest that joined it and still waits. ok is false where there is
// none. One that was let through already is that one, so that an answer that comes
// again lets no second one through.
func (e *Engine) newestJoiner(ctx context.Context, entry bus.Entry) (newest bus.Entry, ok bool, err error) {
	session, id := schemas.SplitKey(entry.Key)
	now := e.clock.now()
	for _, joinerID := range slices.Backward(entry.Record.Joiners) {
		joiner, err := e.store.Records.Get(ctx, schemas.Key(session, joinerID))
		if errors.Is(err, bus.ErrNotFound) {
			continue
		}
		if err != nil {
			return joiner, false, err
		}
		rec := &joiner.Record
		switch d := rec.Decision; {
		case rec.Joined != id: // the id was another request's before
		case d != nil && d.Outcome == schemas.Allowed && d.By.Kind == schemas.ByHuman:
			return joiner, true, nil
		case d == nil && !ok && !rec.Detached && now.Before(rec.Deadline):
			newest, ok = joiner, true
		}
	}
	return newest, ok, nil
}

// handOver gives an "allow once" to the newest joiner, and returns its decision:
// the request that was shown is withdrawn then, and with it all others. It returns
// nil where nobody joined.
func (e *Engine) handOver(ctx context.Context, entry bus.Entry, d *schemas.Decision) (*schemas.Decision, error) {
	for len(entry.Record.Joiners) > 0 && d.Outcome == schemas.Allowed && d.Grant == nil {
		joiner, ok, err := e.newestJoiner(ctx, entry)
		if err != nil || !ok {
			return nil, err
		}
		settled, err := e.settle(ctx, joiner, copied(d, joiner))
		if err != nil {
			return nil, err
		}
		theirs := settled.Record.Decision
		if theirs.Outcome != schemas.Allowed {
			continue // it was withdrawn at this moment
		}
		e.publish(settled)
		w := schemas.Withdraw{SessionID: d.SessionID, PendingID: d.PendingID, Reason: "allowed once, as " + theirs.PendingID + ", by which the same was asked again"}
		gone := e.withdrawal(entry.Record.Agent, &w, entry.Record.Digest)
		gone.By = d.By
		ended, err := e.settle(ctx, entry, gone)
		if err != nil {
			return nil, err
		}
		e.publish(ended)
		return theirs, nil
	}
	return nil, nil
}

// handedOver is how a request ended for those who were shown it: where a person's
// "allow once" went to one that joined it, that.
func (e *Engine) handedOver(ctx context.Context, entry bus.Entry) (*schemas.Decision, error) {
	d := entry.Record.Decision
	if d.Outcome == schemas.Allowed || d.By.Kind != schemas.ByHuman {
		return d, nil
	}
	joiner, ok, err := e.newestJoiner(ctx, entry)
	if theirs := joiner.Record.Decision; err == nil && ok && theirs != nil {
		return theirs, nil
	}
	return d, err
}

// copied is a decision about an identical request.
func copied(d *schemas.Decision, entry bus.Entry) *schemas.Decision {
	theirs := *d
	_, theirs.PendingID = schemas.SplitKey(entry.Key)
	theirs.DecisionID, theirs.Digest, theirs.Grant, theirs.Scope = bus.NewID(), entry.Record.Digest, nil, ""
	return &theirs
}

// followJoiners has what follows for those that joined a request when it ends: a
// person's word counts for all of them; where there was none, or it was for one
// alone, each is asked about by itself again.
func (e *Engine) followJoiners(ctx context.Context, entry bus.Entry) error {
	session, _ := schemas.SplitKey(entry.Key)
	for _, id := range entry.Record.Joiners {
		joiner, err := e.store.Records.Get(ctx, schemas.Key(session, id))
		if errors.Is(err, bus.ErrNotFound) {
			continue
		}
		if err == nil {
			err = e.followJoiner(ctx, entry, joiner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) followJoiner(ctx context.Context, entry, joiner bus.Entry) error {
	_, id := schemas.SplitKey(entry.Key)
	for !joiner.Record.Terminal() && joiner.Record.Joined == id {
		d := entry.Record.Decision
		if d.By.Kind == schemas.ByHuman && (d.Outcome != schemas.Allowed || d.Lasts()) {
			settled, err := e.settle(ctx, joiner, copied(d, joiner))
			if err != nil {
				return err
			}
			return e.announce(settled)
		}
		next := joiner
		next.Record.Joined = ""
		_, err := e.store.Records.Update(ctx, next)
		if !errors.Is(err, bus.ErrMoved) {
			return err
		}
		if joiner, err = e.store.Records.Get(ctx, joiner.Key); err != nil {
			return err
		}
	}
	return nil
}

// mendJoined looks after a joined request whose other has ended before it was
// stored.
func (e *Engine) mendJoined(ctx context.Context, joiner bus.Entry) error {
	session, _ := schemas.SplitKey(joiner.Key)
	other, err := e.store.Records.Get(ctx, schemas.Key(session, joiner.Record.Joined))
	if errors.Is(err, bus.ErrNotFound) {
		other = bus.Entry{Key: schemas.Key(session, joiner.Record.Joined), Record: schemas.Record{Decision: &schemas.Decision{}}}
		err = nil
	}
	if err != nil || !other.Record.Terminal() {
		return err
	}
	return e.followJoiner(ctx, other, joiner)
}
