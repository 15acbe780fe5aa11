package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// pageSize is the number of requests on a page if the query names no limit. Each page costs the
// broker a consumer, so a few large pages are cheaper than many small ones.
const pageSize = 500

const readAtOnce = 32

func (e *connectors) showSettings(context.Context, *caller, *schemas.Query) (schemas.SettingsState, error) {
	now := e.settings.now()
	return schemas.SettingsState{Type: schemas.TypeSettingsState, Revision: now.revision, Settings: *now.settings, Freezes: e.freezes.now().Freezes}, nil
}

// listPending lists the pending requests in pages, in the order in which their records
// were last written.
func (e *connectors) listPending(ctx context.Context, c *caller, q *schemas.Query) (schemas.Page, error) {
	return e.listRequests(ctx, c, q, false)
}

// listHistory lists, in pages, the decided requests whose record is still kept. A request that was
// decided at once has a record only if its agent may have sent it before, or if its input was edited.
// If the query asks for older requests, the page has those in the log.
func (e *connectors) listHistory(ctx context.Context, c *caller, q *schemas.Query) (schemas.Page, error) {
	if q.Log {
		return e.listLogged(ctx, c, q)
	}
	return e.listRequests(ctx, c, q, true)
}

// listRequests replies with a page of the decided requests or of the pending requests. A page
// has at most as many requests as the query asks for, and no more than fit into one message.
func (e *connectors) listRequests(ctx context.Context, c *caller, q *schemas.Query, decided bool) (schemas.Page, error) {
	found, more, err := e.scanPage(ctx, q, decided)
	if err != nil {
		return schemas.Page{}, err
	}
	page := schemas.Page{Type: schemas.TypePage, Prompts: []schemas.Prompt{}, Now: e.clock.now()}
	if more {
		page.Next = cursor(found[len(found)-1])
	}
	if err := e.fillPage(ctx, &page, found, c.name, q.Recipient, decided); err != nil {
		return schemas.Page{}, err
	}
	sort.SliceStable(page.Prompts, func(i, j int) bool {
		return page.Prompts[i].Request.CreatedAt.Before(page.Prompts[j].Request.CreatedAt)
	})
	return page, nil
}

// scanPage finds the records of a page, and reports whether more follow. Its cost depends on the number
// of records between the page's first and last record, and not on the number of all records. One scan
// may fill several pages.
func (e *connectors) scanPage(ctx context.Context, q *schemas.Query, decided bool) (page []bus.ScannedRecord, more bool, err error) {
	after, err := afterCursor(q.After)
	if err != nil {
		return nil, false, err
	}
	limit := cmp.Or(q.Limit, pageSize)
	listing := listing{session: q.SessionID, decided: decided}
	if page, more = e.ahead.page(listing, after, limit); more {
		return page, true, nil
	}
	last := after
	if len(page) > 0 { // the cached records do not fill the page
		last = page[len(page)-1].Revision
	}
	found, scanned := page, 0
	err = e.store.Records.Scan(ctx, q.SessionID, last, func(r bus.ScannedRecord) bool {
		if r.Decided == decided {
			found = append(found, r)
		}
		scanned++
		return len(found) <= limit || after > 0 && scanned < scanAhead
	})
	if err != nil {
		return nil, false, err
	}
	if more = len(found) > limit; more && after > 0 {
		e.ahead.keep(listing, after, found)
	}
	return found[:min(limit, len(found))], more, nil
}

// cursor returns the revision of a page's last record, in decimal. A client sends it back to
// get the next page.
func cursor(last bus.ScannedRecord) string { return strconv.FormatUint(last.Revision, 10) }

func afterCursor(after string) (revision uint64, err error) {
	if after == "" {
		return 0, nil
	}
	if revision, err = strconv.ParseUint(after, 10, 64); err != nil {
		return 0, schemas.Errorf(schemas.CodeValidation, "after: %q is not the next of a page: list from the beginning", after)
	}
	return revision, nil
}

// pageBytes bounds the prompts of a page, in bytes, because a page is one message.
const pageBytes = schemas.MaxPayloadBytes - 8<<10

// fillPage reads the records of a page from the stream's leader, as many as fit into one
// message. The next page begins with the first record that does not fit.
func (e *connectors) fillPage(ctx context.Context, page *schemas.Page, found []bus.ScannedRecord, connector, recipient string, decided bool) error {
	size := 0
	for len(found) > 0 {
		some := found[:min(readAtOnce, len(found))]
		prompts, err := e.readPrompts(ctx, keysOf(some), connector, recipient)
		if err != nil {
			return err
		}
		for i, p := range prompts {
			if p == nil || (p.Decision != nil) != decided {
				continue
			}
			data, err := schemas.Encode(p)
			if err != nil {
				return fmt.Errorf("encode %s for a list: %w", p.Key(), err)
			}
			if size += len(data) + 1; size > pageBytes && len(page.Prompts) > 0 {
				page.Next = strconv.FormatUint(some[i].Revision-1, 10)
				return nil
			}
			page.Prompts = append(page.Prompts, *p)
		}
		found = found[len(some):]
	}
	return nil
}

// pageOf returns the keys on the page that a query asks for, in order, and the cursor of the next page.
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

func keysOf(found []bus.ScannedRecord) []string {
	keys := make([]string, len(found))
	for i, r := range found {
		keys[i] = r.Key
	}
	return keys
}

// readPrompts returns the prompts of the records under the given keys, in the same order, with the
// recipient's time zone if the settings name it. A prompt is nil if its record is missing, unreadable
// or invisible to the connector and recipient, or if its pending request has joined a question.
func (e *connectors) readPrompts(ctx context.Context, keys []string, connector, recipient string) ([]*schemas.Prompt, error) {
	found := make([]*schemas.Prompt, len(keys))
	errs := make([]error, len(keys))
	who, _ := e.settings.now().settings.Approver(connector, schemas.From{UserID: recipient})
	zone := who.TimeZone
	each(len(keys), func(i int) {
		entry, err := e.store.Records.Get(ctx, keys[i])
		if noRecord(err) || err == nil && (!visible(&entry.Record, connector, recipient) || entry.Record.Joined != "" && !entry.Record.Terminal()) {
			return
		}
		if err == nil {
			var p schemas.Prompt
			p, err = e.life.promptOf(entry)
			p.Zone = zone
			found[i] = &p
		}
		errs[i] = err
	})
	return found, errors.Join(errs...)
}

// seesAll reports whether the queries of a connector see every request and every session. Only the
// queries of viewers and observers do.
func seesAll(connector string) bool {
	return schemas.IsViewer(connector) || connector == schemas.ConnectorObserver
}

// visible reports whether a connector may see a request. A carrier sees the requests that are
// routed to the recipient or, if no recipient is named, to any person on the carrier.
func visible(rec *schemas.Record, connector, recipient string) bool {
	if seesAll(connector) {
		return true
	}
	return slices.ContainsFunc(rec.Routes, func(r schemas.Route) bool {
		return r.Connector == connector && (recipient == "" || r.Recipient == recipient)
	})
}

// show replies with one request. The query names the request by its id or by a prefix of the id that is
// unique among all records. If the pending request has joined a question, the reply is the question.
func (e *connectors) show(ctx context.Context, c *caller, q *schemas.Query) (schemas.Page, error) {
	keys, err := e.matchingKeys(ctx, q)
	if err != nil {
		return schemas.Page{}, err
	}
	if len(keys) > 1 {
		slices.Sort(keys)
		some := strings.Join(keys[:2], ", ")
		if len(keys) > 2 {
			some += ", …"
		}
		return schemas.Page{}, schemas.Errorf(schemas.CodeValidation, "pending_id: %q begins the ids of %d requests (%s): give more of it, or the whole of it and --session", q.PendingID, len(keys), some)
	}
	if err := e.asQuestions(ctx, keys); err != nil {
		return schemas.Page{}, err
	}
	read, err := e.readPrompts(ctx, keys, c.name, q.Recipient)
	if err != nil {
		return schemas.Page{}, err
	}
	var prompts []schemas.Prompt
	for _, p := range read {
		if p != nil {
			prompts = append(prompts, *p)
		}
	}
	if len(prompts) == 0 {
		if q.SessionID == "" && len(q.PendingID) < schemas.MinPrefix {
			return schemas.Page{}, schemas.Errorf(schemas.CodeValidation, "no request has the id %s, which is too short for the beginning of one: give %d characters or more", q.PendingID, schemas.MinPrefix)
		}
		return schemas.Page{}, schemas.Errorf(schemas.CodeNotFound, "no request %s is known", q.PendingID)
	}
	return schemas.Page{Type: schemas.TypePage, Prompts: prompts, Now: e.clock.now()}, nil
}

// asQuestions replaces the key of each pending request that has joined a question by the key of the
// question.
func (e *connectors) asQuestions(ctx context.Context, keys []string) error {
	for i, key := range keys {
		entry, err := e.store.Records.Get(ctx, key)
		if noRecord(err) {
			continue
		}
		if err != nil {
			return err
		}
		if !entry.Record.Terminal() && entry.Record.Joined != "" {
			session, _ := schemas.SplitKey(key)
			keys[i] = schemas.Key(session, entry.Record.Joined)
		}
	}
	return nil
}

// matchingKeys returns the keys of the requests that a query may mean by its id. Unless the query names
// a session, its id matches every id that begins with it, because lists shorten ids, and one id may be
// the beginning of another.
func (e *connectors) matchingKeys(ctx context.Context, q *schemas.Query) ([]string, error) {
	if !schemas.ValidID(q.PendingID) {
		return nil, schemas.Errorf(schemas.CodeValidation, "pending_id: %q is no id: expected 1 to 128 letters, digits, _ or -", q.PendingID)
	}
	exact, err := e.exactKeys(ctx, q)
	if err != nil || len(exact) > 0 && q.SessionID != "" || len(q.PendingID) < schemas.MinPrefix {
		return exact, err
	}
	var keys []string
	err = e.store.Records.Scan(ctx, q.SessionID, 0, func(r bus.ScannedRecord) bool {
		_, id := schemas.SplitKey(r.Key)
		if strings.HasPrefix(id, q.PendingID) && !slices.Contains(keys, r.Key) {
			keys = append(keys, r.Key)
		}
		return len(keys) <= someKeys
	})
	return keys, err
}

// exactKeys returns the keys of the requests with exactly the id of a query. If the query names a
// session, it reads one key instead of listing keys, because a listing is slow if many records are
// stored.
func (e *connectors) exactKeys(ctx context.Context, q *schemas.Query) ([]string, error) {
	if q.SessionID == "" {
		return e.store.Records.Named(ctx, q.PendingID)
	}
	key := schemas.Key(q.SessionID, q.PendingID)
	_, err := e.store.Records.Get(ctx, key)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return nil, nil
	case err != nil && !noRecord(err):
		return nil, err
	}
	return []string{key}, nil
}

// someKeys bounds the matching requests that the error about an ambiguous id counts.
const someKeys = 20

func (e *connectors) showSession(ctx context.Context, c *caller, q *schemas.Query) (schemas.Session, error) {
	if !seesAll(c.name) { // a session contains grants and people's messages to agents, which a carrier must not see
		return schemas.Session{}, schemas.Errorf(schemas.CodeForbidden, "a connector that carries questions to people may not look into sessions")
	}
	var s schemas.Session
	revision, err := e.store.Sessions.Get(ctx, sessionKey(q.SessionID), &s)
	if errors.Is(err, bus.ErrNotFound) {
		return schemas.Session{}, schemas.Errorf(schemas.CodeNotFound, "no session %s is known", q.SessionID)
	}
	if err != nil {
		return schemas.Session{}, err
	}
	e.standing.doubt(sessionKey(q.SessionID))
	h, err := e.holdings.entitlementsOf(ctx, s.Agent, q.SessionID)
	if err != nil {
		return schemas.Session{}, err
	}
	s.Grants, s.Revision = h.live(e.clock.now()), revision
	return s, nil
}
