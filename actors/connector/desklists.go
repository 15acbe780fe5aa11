package connector

import (
	"context"
	"errors"
	"sort"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// Pending lists all pending requests that match q, oldest first. It makes one call for each page, and
// keeps all requests in memory.
func (d *Desk) Pending(ctx context.Context, q schemas.Query) ([]schemas.Prompt, error) {
	var prompts []schemas.Prompt
	place := map[string]int{} // the index of each request in the slice prompts, by the request's key; a request that changes between the reading of two pages may be on both
	err := d.EachPending(ctx, q, func(page []schemas.Prompt) error {
		for _, p := range page {
			if i, again := place[p.Key()]; again {
				prompts[i] = p
				continue
			}
			place[p.Key()] = len(prompts)
			prompts = append(prompts, p)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sort.SliceStable(prompts, func(i, j int) bool { return prompts[i].Request.CreatedAt.Before(prompts[j].Request.CreatedAt) })
	return prompts, nil
}

// EachPending calls f with each page of the pending requests that match q; people.Desk.EachPending
// describes the order of the pages.
func (d *Desk) EachPending(ctx context.Context, q schemas.Query, f func(page []schemas.Prompt) error) error {
	return d.eachPage(ctx, schemas.QueryPending, q, f)
}

// EachDecided calls f with one page after another of the decided requests of a session. If no session
// is given, the pages have the requests of all sessions. A record is listed for 24 h after its
// decision. Logged lists older requests. Most requests that are decided at once, without a person,
// have no record and are only in the log.
func (d *Desk) EachDecided(ctx context.Context, session string, f func(page []schemas.Prompt) error) error {
	return d.eachPage(ctx, schemas.QueryHistory, schemas.Query{SessionID: session}, f)
}

// Logged returns one page of the requests in the log that EachDecided no longer lists, newest first.
// An empty session means all sessions. If the parameter id is not empty, the page has only requests
// whose ids begin with it. The parameter after is the field Next of the previous page. Even if a page
// is empty, its Next may lead to a further page.
func (d *Desk) Logged(ctx context.Context, session, id, after string) (schemas.Page, error) {
	page, err := d.page(ctx, schemas.QueryHistory, schemas.Query{Type: schemas.TypeQuery, SessionID: session, PendingID: id, After: after, Log: true})
	if err == nil && page.Log == nil {
		err = schemas.Errorf(schemas.CodeUnknownAction, "an engine of an older version runs, which has no history before the last 24 hours: update nod on its machine")
	}
	return page, err
}

func (d *Desk) eachPage(ctx context.Context, query string, q schemas.Query, f func([]schemas.Prompt) error) error {
	q.Type = schemas.TypeQuery
	for {
		page, err := d.page(ctx, query, q)
		if err == nil {
			err = f(page.Prompts)
		}
		if err != nil {
			return err
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
}

func (d *Desk) page(ctx context.Context, query string, q schemas.Query) (page schemas.Page, err error) {
	if d.PageTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.PageTimeout)
		defer cancel()
	}
	err = d.conn.CallInto(ctx, schemas.QuerySubject(d.connector, query), q, &page)
	return page, err
}

// Grants lists the standing answers of a session, or of all sessions if session is empty. The list
// includes recently ended standing answers.
func (d *Desk) Grants(ctx context.Context, session string) ([]schemas.StandingAnswer, error) {
	return d.grants(ctx, schemas.Query{SessionID: session})
}

// GrantsFor lists the standing answers that the approver with this user id may revoke.
func (d *Desk) GrantsFor(ctx context.Context, userID string) ([]schemas.StandingAnswer, error) {
	return d.grants(ctx, schemas.Query{Recipient: userID})
}

func (d *Desk) grants(ctx context.Context, q schemas.Query) ([]schemas.StandingAnswer, error) {
	q.Type = schemas.TypeQuery
	var all []schemas.StandingAnswer
	for {
		var page schemas.Grants
		if err := d.conn.CallInto(ctx, schemas.QuerySubject(d.connector, schemas.QueryGrants), q, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Grants...)
		if q.After = page.Next; q.After == "" {
			return all, nil
		}
	}
}

// Session returns one session.
func (d *Desk) Session(ctx context.Context, id string) (schemas.Session, error) {
	var s schemas.Session
	err := d.conn.CallInto(ctx, schemas.QuerySubject(d.connector, schemas.QuerySession), schemas.Query{Type: schemas.TypeQuery, SessionID: id}, &s)
	return s, err
}

// Show returns one request by its session and its whole id.
func (d *Desk) Show(ctx context.Context, session, id string) (schemas.Prompt, schemas.Page, error) {
	p, page, err := d.Find(ctx, session, id)
	ambiguous := errors.Is(err, &schemas.Error{Code: schemas.CodeValidation}) && schemas.ValidID(id)
	longer := err == nil && p.PendingID != id && strings.HasPrefix(p.PendingID, id)
	if ambiguous || longer {
		return schemas.Prompt{}, page, schemas.Errorf(schemas.CodeNotFound, "no request %s is known", id)
	}
	return p, page, err
}

// Find returns one request by its id or by a prefix of its id. The prefix must be unique in the
// session, or among all requests if session is empty.
func (d *Desk) Find(ctx context.Context, session, id string) (schemas.Prompt, schemas.Page, error) {
	var page schemas.Page
	q := schemas.Query{Type: schemas.TypeQuery, SessionID: session, PendingID: id}
	if err := d.conn.CallInto(ctx, schemas.QuerySubject(d.connector, schemas.QueryShow), q, &page); err != nil {
		return schemas.Prompt{}, page, err
	}
	if len(page.Prompts) != 1 {
		return schemas.Prompt{}, page, schemas.Errorf(schemas.CodeInternal, "nod returned %d requests for %s", len(page.Prompts), id)
	}
	return page.Prompts[0], page, nil
}
