package engine

import (
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
	case schemas.QueryShow:
		return e.show(ctx, c, &q)
	case schemas.QuerySession:
		return e.showSession(ctx, c, &q)
	case schemas.QuerySettings:
		now := e.settings.now()
		c.Reply(schemas.SettingsState{Type: schemas.TypeSettingsState, Revision: now.revision, Settings: *now.settings})
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
	}
	return schemas.Errorf(schemas.CodeUnknownAction, "there is no operation %q", c.Tokens[1])
}

// pending lists what is undecided, a page at a time, in the order of keys.
func (e *Engine) pending(ctx context.Context, c *bus.Call, q *schemas.Query) error {
	keys, err := e.store.Records.Pending(ctx, q.SessionID)
	if err != nil {
		return err
	}
	slices.Sort(keys)
	start, _ := slices.BinarySearch(keys, q.After+"\x00")
	if q.After == "" {
		start = 0
	}
	limit := q.Limit
	if limit == 0 {
		limit = pageSize
	}
	page := schemas.Page{Type: schemas.TypePage, Prompts: []schemas.Prompt{}, Now: e.clock.now()}
	if page.Prompts, page.Next, err = e.readPage(ctx, keys[start:], limit); err != nil {
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

// readPage reads what is undecided of the first keys, as far as limit allows and
// a message can carry, and returns the last key that it came to where there are
// more.
func (e *Engine) readPage(ctx context.Context, keys []string, limit int) (page []schemas.Prompt, next string, err error) {
	page = []schemas.Prompt{}
	size, done := 0, 0
	for done < min(limit, len(keys)) {
		prompts, err := e.read(ctx, keys[done:min(done+readAtOnce, limit, len(keys))])
		if err != nil {
			return nil, "", err
		}
		for _, p := range prompts {
			if p.Decision != nil {
				continue
			}
			data, err := schemas.Encode(p)
			if err != nil {
				return nil, "", fmt.Errorf("encode %s for a list: %w", p.Key(), err)
			}
			if size += len(data) + 1; size > pageBytes && len(page) > 0 {
				return page, page[len(page)-1].Key(), nil
			}
			page = append(page, p)
		}
		done = min(done+readAtOnce, limit, len(keys))
	}
	if done < len(keys) {
		next = keys[done-1]
	}
	return page, next, nil
}

// read returns the records under keys as viewers see them, without those that
// are gone.
func (e *Engine) read(ctx context.Context, keys []string) ([]schemas.Prompt, error) {
	found := make([]*schemas.Prompt, len(keys))
	errs := make([]error, len(keys))
	each(len(keys), func(i int) {
		entry, err := e.store.Records.Get(ctx, keys[i])
		if errors.Is(err, bus.ErrNotFound) {
			return
		}
		if err == nil {
			var p schemas.Prompt
			p, err = promptOf(entry)
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

// show answers one request, by its id or by a prefix that is unique among all
// that are kept.
func (e *Engine) show(ctx context.Context, c *bus.Call, q *schemas.Query) error {
	keys, err := e.named(ctx, q)
	if err != nil {
		return err
	}
	if len(keys) > 1 {
		slices.Sort(keys)
		return schemas.Errorf(schemas.CodeValidation, "pending_id: %q begins the ids of %d requests (%s, …): give more of it, or the whole of it and --session", q.PendingID, len(keys), strings.Join(keys[:2], ", "))
	}
	prompts, err := e.read(ctx, keys)
	if err != nil {
		return err
	}
	if len(prompts) == 0 {
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
		_, id, _ := strings.Cut(k, ".")
		return !strings.HasPrefix(id, q.PendingID)
	}), nil
}

func (e *Engine) showSession(ctx context.Context, c *bus.Call, q *schemas.Query) error {
	var s schemas.Session
	_, err := e.store.Sessions.Get(ctx, sessionKey(q.SessionID), &s)
	if errors.Is(err, bus.ErrNotFound) {
		return schemas.Errorf(schemas.CodeNotFound, "no session %s is known", q.SessionID)
	}
	if err != nil {
		return err
	}
	c.Reply(s)
	return nil
}
