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

// frozenKey is the key of the freezes in the bucket permission_settings.
const frozenKey = "frozen"

// freezeState holds the newest freezes that this engine has read, and counts the requests that
// are being checked against each revision of them.
type freezeState struct {
	watchedCache[schemas.FreezeState]

	checks  sync.Mutex
	entered map[uint64]int // the number of requests being checked, by the revision of the freezes against which they are checked
}

type freezeSnapshot struct {
	schemas.FreezeState
	read time.Time
}

func (b *freezeState) now() *freezeSnapshot {
	r := b.last(frozenKey)
	return &freezeSnapshot{r.value, r.began}
}

// enter returns the freezes for the check of a request. The caller must call the returned function
// after its reply to the request, when it can no longer send an allow that was checked against these
// freezes.
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

// obeyed returns the oldest revision of the freezes by which a request in progress is checked,
// or the current revision if no request is in progress.
func (b *freezeState) obeyed() uint64 {
	b.checks.Lock()
	defer b.checks.Unlock()
	revision := b.now().Revision
	for r := range b.entered {
		revision = min(revision, r)
	}
	return revision
}

func (e *base) loadFreezes(ctx context.Context, key string, _ *reading[schemas.FreezeState]) (schemas.FreezeState, uint64, error) {
	var f schemas.FreezeState
	revision, err := e.store.Settings.Get(ctx, key, &f)
	f.Revision = revision
	return f, revision, ignoreNotFound(err)
}

// readFrozen reads the freezes from the store. When it returns, they are in force on this engine.
func (e *base) readFrozen(ctx context.Context) error {
	_, err := e.freezes.renew(ctx, frozenKey)
	return err
}

// obeyWithin is how long the reply to a freeze waits until all engines obey the freeze. It is
// shorter than the caller's timeout. The reply names the engines that do not obey in time.
const obeyWithin = 2 * time.Second

// freeze stores a freeze for an approver and denies the pending requests that the freeze covers. The
// reply comes when every running engine denies new requests, or names the engines that do not deny them
// yet.
func (e *admin) freeze(ctx context.Context, c *caller, b *schemas.FreezeRequest) (schemas.FreezeState, error) {
	return e.changeFreezes(ctx, c.name, b, false)
}

// thaw removes the freezes that an approver names. Before that, it denies the pending requests that
// any freeze covers. If the settings do not let the approver thaw, the error is FORBIDDEN and states
// the reason.
func (e *admin) thaw(ctx context.Context, c *caller, b *schemas.FreezeRequest) (schemas.FreezeState, error) {
	return e.changeFreezes(ctx, c.name, b, true)
}

func (e *admin) changeFreezes(ctx context.Context, connector string, b *schemas.FreezeRequest, thaw bool) (schemas.FreezeState, error) {
	approver, err := e.approver(ctx, connector, &b.From)
	if err != nil {
		return schemas.FreezeState{}, err
	}
	if thaw {
		err = e.mayThaw(ctx, &approver, connector, b.CodeWord)
		if err == nil {
			err = e.refuseStale()
		}
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
	if err := e.logVouched(ctx, &approver, connector, &b.From, z.SessionID, "", bus.NewID()); err != nil {
		return schemas.FreezeState{}, err
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
		e.endByFreeze(ctx, stored.Revision, z.By.Name+"'s freeze")
	}
	return stored, nil
}

// storeFreeze stores the freeze z if the parameter thaw is false. If it is true, it removes the
// freeze of the agent or session that z names, or all freezes if z names neither an agent nor a
// session. The error is NOT_FOUND if there is no freeze to remove.
func (e *admin) storeFreeze(ctx context.Context, z schemas.Freeze, thaw bool) (schemas.FreezeState, error) {
	same := func(old schemas.Freeze) bool { return old.Agent == z.Agent && old.SessionID == z.SessionID }
	f, revision, err := bus.Change(ctx, e.store.Settings, frozenKey, func(f *schemas.FreezeState, _ bool) (bus.Edit, error) {
		f.Type = schemas.TypeFreezeState
		before := len(f.Freezes)
		if i := slices.IndexFunc(f.Freezes, same); i >= 0 && !thaw {
			z.Reason = cmp.Or(z.Reason, f.Freezes[i].Reason) // a freeze without a reason keeps the reason of the earlier freeze
		}
		all := thaw && z.Agent == "" && z.SessionID == ""
		ends := func(old schemas.Freeze) bool { return all || same(old) }
		if thaw && slices.ContainsFunc(f.Freezes, func(old schemas.Freeze) bool { return ends(old) && schemas.HasLater(&old) }) {
			return bus.Edit{}, schemas.Errorf(schemas.CodeUnavailable, "a later version of nod made this freeze, with conditions that this engine does not know: let an engine of that version thaw it")
		}
		f.Freezes = slices.DeleteFunc(f.Freezes, ends)
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

func (e *base) freezeDenial(r *schemas.Request, digest string, z *schemas.Freeze) *schemas.Decision {
	d := e.decision(r, digest, schemas.Denied, schemas.By{Kind: schemas.ByPolicy, Name: "frozen by " + z.By.Name})
	if o, ok := r.OptionOfKind(schemas.RejectOnce); ok {
		d.OptionID, d.OptionKind = o.OptionID, o.Kind
	}
	d.Message = z.String()
	return d
}

// refuseFrozen returns FORBIDDEN if a stored freeze covers the session.
func (e *base) refuseFrozen(ctx context.Context, agent, session string) error {
	return e.beginFreezeCheck(ctx)(agent, session)
}

// A freezeCheck waits until the freezes are read from the store, and returns FORBIDDEN if a freeze
// covers the session. It may be called at most once.
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
