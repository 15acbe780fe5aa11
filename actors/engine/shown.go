package engine

import (
	"context"
	"errors"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
	// shownFor is how long an entry of shown_prompts is kept. It is longer than a request may
	// wait, so that a late outcome finds the message to change.
	shownFor = schemas.MaxTimeout + 2*bus.Retention
	// settledFor is how long an entry is kept after its message shows the outcome. It is longer than
	// the decided record is kept. A worker that gets the prompt even later finds no pending request,
	// and sends nothing.
	settledFor = bus.Retention + time.Hour
)

func shownKey(connector, recipient, key string) string {
	return connector + "." + schemas.SubjectToken(recipient) + "." + key
}

// shown reads, claims or writes an entry of the bucket shown_prompts by compare-and-set. An entry names
// the message that shows a prompt to one recipient.
func (e *connectors) shown(ctx context.Context, c *caller, s *schemas.Shown) (schemas.Shown, error) {
	if s.Claim == nil && (s.Op == schemas.ShownClaim || s.Op == schemas.ShownRenew) {
		return schemas.Shown{}, schemas.Errorf(schemas.CodeValidation, "claim: is missing")
	}
	key := shownKey(c.name, s.Recipient, schemas.Key(s.SessionID, s.PendingID))
	var stored schemas.Shown
	var err error
	switch s.Op {
	case schemas.ShownGet:
		stored, err = e.readShown(ctx, key, s)
	case schemas.ShownClaim:
		stored, err = e.claimShown(ctx, key, s)
	case schemas.ShownRenew:
		stored, err = e.renewShown(ctx, key, s)
	default:
		stored, err = e.putShown(ctx, key, *s)
	}
	if errors.Is(err, bus.ErrMoved) {
		return schemas.Shown{}, schemas.Errorf(schemas.CodeConflict, "another worker has changed this entry: read it again")
	}
	if err != nil {
		return schemas.Shown{}, err
	}
	return stored, nil
}

func (e *connectors) readShown(ctx context.Context, key string, query *schemas.Shown) (schemas.Shown, error) {
	return e.changeShown(ctx, key, query, func(*schemas.Shown) (bool, error) { return false, nil })
}

// changeShown changes the entry under a key by compare-and-set. The function edit gets an empty entry
// if none is stored. If edit returns false, nothing is stored.
func (e *connectors) changeShown(ctx context.Context, key string, query *schemas.Shown, edit func(*schemas.Shown) (store bool, err error)) (schemas.Shown, error) {
	s, revision, err := bus.Change(ctx, e.store.Shown, key, func(s *schemas.Shown, found bool) (bus.Edit, error) {
		if !found {
			*s = schemas.Shown{
				Type: schemas.TypeShown, Op: schemas.ShownGet,
				Recipient: query.Recipient, SessionID: query.SessionID, PendingID: query.PendingID,
			}
		}
		s.Entry = 0
		store, err := edit(s)
		return bus.Edit{Store: store, Kept: shownKept(s)}, err
	})
	s.Entry = revision
	return s, err
}

func shownKept(s *schemas.Shown) time.Duration {
	if s.Settled {
		return settledFor
	}
	return shownFor
}

func (e *connectors) putShown(ctx context.Context, key string, s schemas.Shown) (schemas.Shown, error) {
	var err error
	s.Entry, err = e.store.Shown.Put(ctx, key, s, s.Entry, shownKept(&s))
	return s, err
}

// claimShown stores a worker's claim to show a prompt, before the worker sends anything. If the worker
// dies before it stores the handle of its message, the next claim is marked as a repeat, because a
// message may exist.
//
// claimShown makes no claim, and returns the entry, if another worker's claim is still valid, if this
// version is already shown, or if the request ended before its first message.
func (e *connectors) claimShown(ctx context.Context, key string, s *schemas.Shown) (schemas.Shown, error) {
	return e.changeShown(ctx, key, s, func(stored *schemas.Shown) (bool, error) {
		now := e.clock.now()
		if held := stored.Claim; held != nil && (held.Try == s.Claim.Try || held.Worker != s.Claim.Worker && now.Before(held.Until)) {
			return false, nil
		}
		message := len(stored.Refs()) > 0
		mayBeThere := stored.Repeat || stored.Claim != nil && stored.Revision == 0 && stored.Ref == "" // a worker may have sent a message without storing its handle
		stored.Op, stored.Claim, stored.Repeat = schemas.ShownSet, nil, mayBeThere
		if stored.Revision >= s.Revision || stored.Settled && (!s.Settled || !message) {
			return false, nil // after the outcome, only a newer version is shown, such as one with an aftermath
		}
		if !s.Settled && stored.Revision == 0 {
			open, err := e.isPending(ctx, schemas.Key(s.SessionID, s.PendingID))
			if err != nil || !open { // the request has ended; the version with its outcome is delivered separately
				return false, err
			}
		}
		if s.Settled && stored.Revision == 0 && !message && !mayBeThere { // no message was sent under the claim, so there is no message to change
			stored.Settled, stored.Revision = true, s.Revision
		} else {
			stored.Claim = &schemas.Claim{Worker: s.Claim.Worker, Try: s.Claim.Try, Until: now.Add(e.AckWait)}
		}
		return true, nil
	})
}

// renewShown extends the claim of a worker that is still sending. It returns an entry without this
// claim unchanged.
func (e *connectors) renewShown(ctx context.Context, key string, s *schemas.Shown) (schemas.Shown, error) {
	return e.changeShown(ctx, key, s, func(stored *schemas.Shown) (bool, error) {
		if stored.Claim == nil || stored.Claim.Try != s.Claim.Try {
			return false, nil
		}
		stored.Op, stored.Claim.Until = schemas.ShownSet, e.clock.now().Add(e.AckWait)
		return true, nil
	})
}

func (e *connectors) isPending(ctx context.Context, key string) (bool, error) {
	entry, err := e.store.Records.Get(ctx, key)
	if noRecord(err) {
		return false, nil
	}
	return err == nil && !entry.Record.Terminal(), err
}

// isUnclaimed reports whether no worker has shown the prompt or has a claim to show it.
func isUnclaimed(s *schemas.Shown, now time.Time) bool {
	return !s.Settled && s.Revision == 0 && (s.Claim == nil || !now.Before(s.Claim.Until))
}

// listUnsettled lists, in pages, the decided requests that a carrier may still show as pending. Causes
// are that the queue lost the outcome, that a worker gave up on the outcome, or that a worker stopped
// after it had sent the prompt.
func (e *connectors) listUnsettled(ctx context.Context, c *caller, q *schemas.Query) (schemas.Page, error) {
	keys, err := e.store.Shown.ListKeys(ctx, c.name+".>")
	if err != nil {
		return schemas.Page{}, err
	}
	page := schemas.Page{Type: schemas.TypePage, Prompts: []schemas.Prompt{}, Now: e.clock.now()}
	keys, page.Next = pageOf(keys, q)
	found := make([]*schemas.Prompt, len(keys))
	errs := make([]error, len(keys))
	each(len(keys), func(i int) { found[i], errs[i] = e.missingOutcome(ctx, c.name, keys[i], page.Now) })
	if err := errors.Join(errs...); err != nil {
		return schemas.Page{}, err
	}
	size, last := 0, ""
	for i, p := range found {
		if p == nil {
			continue
		}
		data, err := schemas.Encode(p)
		if err != nil {
			return schemas.Page{}, err
		}
		if size += len(data) + 1; size > pageBytes && last != "" {
			page.Next = last
			break
		}
		page.Prompts, last = append(page.Prompts, *p), keys[i]
	}
	return page, nil
}

// missingOutcome returns the outcome that an entry's message does not show yet. It returns nil if the
// message shows the outcome, if a worker has a claim, or if the request is pending or its record is no
// longer kept.
func (e *connectors) missingOutcome(ctx context.Context, connector, key string, now time.Time) (*schemas.Prompt, error) {
	var s schemas.Shown
	_, err := e.store.Shown.Get(ctx, key, &s)
	if errors.Is(err, bus.ErrNotFound) || err == nil && (s.Settled || s.Claim != nil && now.Before(s.Claim.Until)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entry, err := e.store.Records.Get(ctx, schemas.Key(s.SessionID, s.PendingID))
	if noRecord(err) || err == nil && !entry.Record.Terminal() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := e.life.promptOf(entry)
	p.Connector, p.Recipient = connector, s.Recipient
	return &p, err
}
