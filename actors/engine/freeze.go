package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// frozenKey is the key of permission_settings under which the freezes are stored.
const frozenKey = "frozen"

// freezeState holds the newest freezes that this engine has read, which are in force on it,
// and counts the requests that are being checked against them.
type freezeState struct {
	watchedCache[schemas.FreezeState]

	checks  sync.Mutex
	entered map[uint64]int // requests in progress, by the revision of the freezes that they are checked against
}

// freezeSnapshot is one reading of the freezes from the store.
type freezeSnapshot struct {
	schemas.FreezeState
	read time.Time
}

func (b *freezeState) now() *freezeSnapshot {
	r := b.last(frozenKey)
	return &freezeSnapshot{r.value, r.began}
}

// enter returns the freezes to check a request against. The caller must call leave once the
// request has its reply: no allow that was checked against these freezes can be sent after
// that.
func (b *freezeState) enter() (now *freezeSnapshot, leave func()) {
	b.checks.Lock()
	defer b.checks.Unlock()
	now = b.now()
	if b.entered == nil {
		b.entered = map[uint64]int{}
	}
	b.entered[now.Revision]++
	return now, func() {
		b.checks.Lock()
		defer b.checks.Unlock()
		if b.entered[now.Revision]--; b.entered[now.Revision] == 0 {
			delete(b.entered, now.Revision)
		}
	}
}

// obeyed returns the oldest revision of the freezes that a new decision can still be
// checked against: the oldest one that a request in progress uses, or the current one if no
// request is in progress.
func (b *freezeState) obeyed() uint64 {
	b.checks.Lock()
	defer b.checks.Unlock()
	revision := b.now().Revision
	for r := range b.entered {
		revision = min(revision, r)
	}
	return revision
}

// loadFreezes reads the freezes from the store, for the cache.
func (e *base) loadFreezes(ctx context.Context, key string, _ *reading[schemas.FreezeState]) (schemas.FreezeState, uint64, error) {
	var f schemas.FreezeState
	revision, err := e.store.Settings.Get(ctx, key, &f)
	f.Revision = revision
	return f, revision, ignoreNotFound(err)
}

// readFrozen reads the freezes from the store, and puts them in force.
func (e *base) readFrozen(ctx context.Context) error {
	_, err := e.freezes.renew(ctx, frozenKey)
	return err
}

// obeyWithin is how long the reply to a freeze waits for all engines to obey it; the reply
// names the engines that do not obey it by then. It is shorter than the caller's timeout.
const obeyWithin = 2 * time.Second

// freeze adds a freeze for an approver. It denies the pending requests that the freeze
// covers, and replies once every running engine denies new ones, or names the engines that
// do not deny them yet.
func (e *admin) freeze(ctx context.Context, c *caller, b *schemas.FreezeRequest) (schemas.FreezeState, error) {
	return e.changeFreezes(ctx, c.name, b, false)
}

// thaw denies the pending requests that freezes cover, and then removes the freezes that b
// names, for an approver. FORBIDDEN gives the reason of a refusal.
func (e *admin) thaw(ctx context.Context, c *caller, b *schemas.FreezeRequest) (schemas.FreezeState, error) {
	return e.changeFreezes(ctx, c.name, b, true)
}

func (e *admin) changeFreezes(ctx context.Context, connector string, b *schemas.FreezeRequest, thaw bool) (schemas.FreezeState, error) {
	approver, err := e.approver(ctx, connector, b.From.UserID)
	if err != nil {
		return schemas.FreezeState{}, err
	}
	if thaw {
		err = e.mayThaw(ctx, &approver, connector, b.CodeWord)
		if err == nil {
			err = e.denyBeforeThaw(ctx)
		}
	}
	if err != nil {
		return schemas.FreezeState{}, err
	}
	z := schemas.Freeze{
		Agent: b.Agent, SessionID: b.SessionID, Reason: b.Reason, At: e.clock.now(),
		By: schemas.By{Kind: schemas.ByHuman, Name: approver.Name, Connector: connector},
	}
	stored, err := e.storeFreeze(ctx, z, thaw)
	if err != nil {
		return schemas.FreezeState{}, err
	}
	if err := e.readFrozen(ctx); err != nil {
		return schemas.FreezeState{}, err
	}
	kind, rule := schemas.LogFrozen, z.String()
	if thaw {
		kind, rule = schemas.LogThawed, "thawed by "+approver.Name
	}
	_, _, err = e.store.Log.Append(ctx, "brake:"+bus.NewID(), schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: z.At, Kind: kind, SessionID: z.SessionID, Actor: approver.Name + "@" + connector, Rule: rule,
	})
	if err != nil {
		return schemas.FreezeState{}, err
	}
	if !thaw {
		e.enforceFreeze(ctx, &stored)
	}
	return stored, nil
}

// storeFreeze stores the freeze z. If thaw is true, it instead removes the freeze of the same
// agent or session, or all freezes if z names neither; NOT_FOUND means that there is no such
// freeze.
func (e *admin) storeFreeze(ctx context.Context, z schemas.Freeze, thaw bool) (schemas.FreezeState, error) {
	same := func(old schemas.Freeze) bool { return old.Agent == z.Agent && old.SessionID == z.SessionID }
	f, revision, err := bus.Change(ctx, e.store.Settings, frozenKey, func(f *schemas.FreezeState, _ bool) (bus.Edit, error) {
		f.Type = schemas.TypeFreezeState
		before := len(f.Freezes)
		if i := slices.IndexFunc(f.Freezes, same); i >= 0 && !thaw {
			z.Reason = cmp.Or(z.Reason, f.Freezes[i].Reason) // a freeze without a reason keeps the earlier one
		}
		all := thaw && z.Agent == "" && z.SessionID == ""
		f.Freezes = slices.DeleteFunc(f.Freezes, func(old schemas.Freeze) bool { return all || same(old) })
		switch {
		case thaw && len(f.Freezes) == before:
			return bus.Edit{}, schemas.Errorf(schemas.CodeNotFound, "there is no such freeze")
		case !thaw:
			f.Freezes = append(f.Freezes, z)
		}
		return bus.Edit{Store: true}, nil
	})
	f.Revision = revision
	return f, err
}

// freezeDenial returns the decision about a request that a freeze covers.
func (e *base) freezeDenial(r *schemas.Request, digest string, z *schemas.Freeze) *schemas.Decision {
	d := e.decision(r, digest, schemas.Denied, schemas.By{Kind: schemas.ByPolicy, Name: "frozen by " + z.By.Name})
	if o, ok := r.OptionOfKind(schemas.RejectOnce); ok {
		d.OptionID, d.OptionKind = o.OptionID, o.Kind
	}
	d.Message = z.String()
	return d
}

// refuseFrozen reads the freezes from the store, and returns FORBIDDEN if one covers the
// session.
func (e *base) refuseFrozen(ctx context.Context, agent, session string) error {
	return e.beginFreezeCheck(ctx)(agent, session)
}

// A freezeCheck waits until the freezes are read from the store, and then returns FORBIDDEN
// if one covers the session. It may be called at most once.
type freezeCheck func(agent, session string) error

func (e *base) beginFreezeCheck(ctx context.Context) freezeCheck {
	read := async(func() error { return e.readFrozen(ctx) })
	return func(agent, session string) error {
		if err := read(); err != nil {
			return fmt.Errorf("read the freezes: %w", err)
		}
		if z := e.freezes.now().Of(agent, session); z != nil {
			return schemas.Errorf(schemas.CodeForbidden, "%s, %s: nothing is allowed before a thaw", z, cmp.Or(z.SessionID, z.Agent, "everything"))
		}
		return nil
	}
}
