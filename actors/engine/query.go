package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// pageSize is how many requests a page holds where the query names no limit.
const pageSize = 100

// readAtOnce is how many records are read at the same time.
const readAtOnce = 32

// query answers what connectors read.
func (e *Engine) query(ctx context.Context, c *bus.Call) error {
	var q schemas.Query
	if err := schemas.Decode(c.Data, &q); err != nil {
		return err
	}
	switch c.Tokens[1] {
	case schemas.QueryPending:
		return e.pending(ctx, c, &q)
	case schemas.QueryHistory:
		return e.history(ctx, c, &q)
	case schemas.QueryShow:
		return e.show(ctx, c, &q)
	case schemas.QuerySession:
		return e.showSession(ctx, c, &q)
	case schemas.QueryUnsettled:
		return e.unsettled(ctx, c, &q)
	case schemas.QueryGrants:
		return e.grants(ctx, c, &q)
	case schemas.QuerySettings:
		now := e.settings.now()
		c.Reply(schemas.SettingsState{Type: schemas.TypeSettingsState, Revision: now.revision, Settings: *now.settings, Freezes: e.brake.now().Freezes})
		return nil
	}
	return schemas.Errorf(schemas.CodeUnknownAction, "there is no query %q", c.Tokens[1])
}

// manage answers what the owner changes.
func (e *Engine) manage(ctx context.Context, c *bus.Call) error {
	switch c.Tokens[1] {
	case schemas.ManageSettings:
		return e.changeSettings(ctx, c)
	case schemas.ManageSession:
		return e.changeSession(ctx, c)
	case schemas.ManageRevoke:
		return e.revoke(ctx, c)
	case schemas.ManageFreeze:
		return e.freeze(ctx, c, false)
	case schemas.ManagePass:
		return e.pass(ctx, c)
	case schemas.ManagePair:
		return e.pair(ctx, c)
	case schemas.ManageThaw:
		return e.freeze(ctx, c, true)
	}
	return schemas.Errorf(schemas.CodeUnknownAction, "there is no operation %q", c.Tokens[1])
}

// pending lists what is undecided, a page at a time, in the order of keys.
func (e *Engine) pending(ctx context.Context, c *bus.Call, q *schemas.Query) error {
	keys, err := e.store.Records.Pending(ctx, q.SessionID)
	if err != nil {
		return err
	}
	return e.list(ctx, c, q, keys, func(p *schemas.Prompt) bool { return p.Decision == nil })
}

// history lists what was decided through a record, for as long as that is kept:
// by people, the clock, agents, and by rules where the asker named the id.
func (e *Engine) history(ctx context.Context, c *bus.Call, q *schemas.Query) error {
	keys, err := e.store.Records.Keys(ctx, q.SessionID)
	if err != nil {
		return err
	}
	return e.list(ctx, c, q, keys, func(p *schemas.Prompt) bool { return p.Decision != nil })
}

// list answers with a page of the wanted requests under keys: as many as the
// query asks for and one message carries.
func (e *Engine) list(ctx context.Context, c *bus.Call, q *schemas.Query, keys []string, wanted func(*schemas.Prompt) bool) error {
	page := schemas.Page{Type: schemas.TypePage, Prompts: []schemas.Prompt{}, Now: e.clock.now()}
	keys, page.Next = pageOf(keys, q)
	if err := e.fill(ctx, &page, keys, c.Tokens[0], q.Recipient, wanted); err != nil {
		return err
	}
	sort.SliceStable(page.Prompts, func(i, j int) bool {
		return page.Prompts[i].Request.CreatedAt.Before(page.Prompts[j].Request.CreatedAt)
	})
	c.Reply(page)
	return nil
}

// pageBytes is how much of a page prompts may fill: it is one message.
const pageBytes = schemas.MaxPayloadBytes - 8<<10

// fill reads what is wanted of keys into a page, as far as one message can carry
// it: where that is not all, the next page begins after the last.
func (e *Engine) fill(ctx context.Context, page *schemas.Page, keys []string, connector, recipient string, wanted func(*schemas.Prompt) bool) error {
	size := 0
	for some := range slices.Chunk(keys, readAtOnce) {
		prompts, err := e.read(ctx, some, connector, recipient)
		if err != nil {
			return err
		}
		for _, p := range prompts {
			if !wanted(&p) {
				continue
			}
			data, err := schemas.Encode(p)
			if err != nil {
				return fmt.Errorf("encode %s for a list: %w", p.Key(), err)
			}
			if size += len(data) + 1; size > pageBytes && len(page.Prompts) > 0 {
				page.Next = page.Prompts[len(page.Prompts)-1].Key()
				return nil
			}
			page.Prompts = append(page.Prompts, p)
		}
	}
	return nil
}

// pageOf is the part of keys that a query asks for, in their order, and where
// the next one begins.
func pageOf(keys []string, q *schemas.Query) (page []string, next string) {
	slices.Sort(keys)
	if q.After != "" {
		start, _ := slices.BinarySearch(keys, q.After+"\x00")
		keys = keys[start:]
	}
	if limit := cmp.Or(q.Limit, pageSize); len(keys) > limit {
		return keys[:limit], keys[limit-1]
	}
	return keys, ""
}

// read returns the records under keys as viewers see them, without those that
// are gone, and for a carrier without those that it was not to show: to this
// recipient, or to anybody where none is named.
func (e *Engine) read(ctx context.Context, keys []string, connector, recipient string) ([]schemas.Prompt, error) {
	found := make([]*schemas.Prompt, len(keys))
	errs := make([]error, len(keys))
	each(len(keys), func(i int) {
		entry, err := e.store.Records.Get(ctx, keys[i])
		if noRecord(err) || err == nil && (!visible(&entry.Record, connector, recipient) || entry.Record.Joined != "" && !entry.Record.Terminal()) {
			return
		}
		if err == nil {
			var p schemas.Prompt
			p, err = e.promptOf(entry)
			found[i] = &p
		}
		errs[i] = err
	})
	prompts := make([]schemas.Prompt, 0, len(keys))
	for _, p := range found {
		if p != nil {
			prompts = append(prompts, *p)
		}
	}
	return prompts, errors.Join(errs...)
}

// visible reports whether a request may be seen on a connector, by one person
// where a recipient is named: a carrier sees what was routed to it.
func visible(rec *schemas.Record, connector, recipient string) bool {
	if schemas.Inbox(connector) {
		return true
	}
	return slices.ContainsFunc(rec.Routes, func(r schemas.Route) bool {
		return r.Connector == connector && (recipient == "" || r.Recipient == recipient)
	})
}

// show answers one request, by its id or by a prefix that is unique among all
// that are kept.
func (e *Engine) show(ctx context.Context, c *bus.Call, q *schemas.Query) error {
	keys, err := e.named(ctx, q)
	if err != nil {
		return err
	}
	if len(keys) > 1 {
		slices.Sort(keys)
		some := strings.Join(keys[:2], ", ")
		if len(keys) > 2 {
			some += ", …"
		}
		return schemas.Errorf(schemas.CodeValidation, "pending_id: %q begins the ids of %d requests (%s): give more of it, or the whole of it and --session", q.PendingID, len(keys), some)
	}
	prompts, err := e.read(ctx, keys, c.Tokens[0], q.Recipient)
	if err != nil {
		return err
	}
	if len(prompts) == 0 {
		if q.SessionID == "" && len(q.PendingID) < schemas.MinPrefix {
			return schemas.Errorf(schemas.CodeValidation, "no request has the id %s, which is too short for the beginning of one: give %d characters or more", q.PendingID, schemas.MinPrefix)
		}
		return schemas.Errorf(schemas.CodeNotFound, "no request %s is known", q.PendingID)
	}
	c.Reply(schemas.Page{Type: schemas.TypePage, Prompts: prompts, Now: e.clock.now()})
	return nil
}

// named are the keys that a query may mean. Without a session even a whole id
// means all that begin with it: agents choose ids, and one that is just the
// beginning of another's, as a list shows it, must not be taken for it.
func (e *Engine) named(ctx context.Context, q *schemas.Query) ([]string, error) {
	if !schemas.ValidID(q.PendingID) {
		return nil, schemas.Errorf(schemas.CodeValidation, "pending_id: %q is no id: expected 1 to 128 letters, digits, _ or -", q.PendingID)
	}
	exact, err := e.store.Records.Named(ctx, q.PendingID)
	if err != nil {
		return nil, err
	}
	if q.SessionID != "" {
		exact = slices.DeleteFunc(exact, func(k string) bool { return k != schemas.Key(q.SessionID, q.PendingID) })
	}
	if len(exact) > 0 && q.SessionID != "" || len(q.PendingID) < schemas.MinPrefix {
		return exact, nil
	}
	keys, err := e.store.Records.Keys(ctx, q.SessionID)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(keys, func(k string) bool {
		_, id := schemas.SplitKey(k)
		return !strings.HasPrefix(id, q.PendingID)
	}), nil
}

func (e *Engine) showSession(ctx context.Context, c *bus.Call, q *schemas.Query) error {
	if !schemas.Inbox(c.Tokens[0]) { // it holds grants, and messages to agents
		return schemas.Errorf(schemas.CodeForbidden, "a connector that carries questions to people may not look into sessions")
	}
	var s schemas.Session
	revision, err := e.store.Sessions.Get(ctx, sessionKey(q.SessionID), &s)
	if errors.Is(err, bus.ErrNotFound) {
		return schemas.Errorf(schemas.CodeNotFound, "no session %s is known", q.SessionID)
	}
	if err != nil {
		return err
	}
	if s.Agent != "" {
		grants, err := e.grantsUnder(ctx, agentKey(s.Agent))
		if err != nil {
			return err
		}
		s.Grants = append(s.Grants, grants...)
	}
	if s.Grants, err = e.rooted(ctx, live(s.Grants, e.clock.now())); err != nil {
		return err
	}
	s.Revision = revision
	c.Reply(s)
	return nil
}
