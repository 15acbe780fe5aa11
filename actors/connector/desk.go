// Package connector runs the actors between nod and people: the desk of every connector, the
// worker of a carrier, and the viewer of a connector that shows all pending requests.
package connector

import (
	"context"
	"errors"
	"sort"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// Desk is a connector's client of nod, over the bus. It implements people.Desk. If nod does not
// reply, or replies UNAVAILABLE, a call retries until its context ends. Errors in nod's replies
// are *schemas.Error.
type Desk struct {
	// PageTimeout is the time limit for each page of a list; 0 means no limit besides the context.
	PageTimeout time.Duration

	conn      *bus.Conn
	connector string
}

var (
	_ people.Desk        = (*Desk)(nil)
	_ people.Revoker     = (*Desk)(nil)
	_ people.Freezer     = (*Desk)(nil)
	_ people.Pairer      = (*Desk)(nil)
	_ people.LoginLinker = (*Desk)(nil)
	_ people.Deduper     = (*Desk)(nil)
	_ people.Reporter    = (*Desk)(nil)
)

// NewDesk returns the desk of a connector. The connection c must use the connector's key.
func NewDesk(c *bus.Conn, connector string) *Desk { return &Desk{conn: c, connector: connector} }

// Answer submits a person's answer and returns the decision; people.Desk.Answer lists the errors.
func (d *Desk) Answer(ctx context.Context, a schemas.Answer) (schemas.Decision, error) {
	a.Type = schemas.TypeAnswer
	var decision schemas.Decision
	err := d.conn.CallInto(ctx, schemas.AnswerSubject(d.connector, a.SessionID, a.PendingID), a, &decision)
	return decision, err
}

// Pending lists all pending requests that match q, oldest first. It makes one call for each page, and
// holds all requests in memory.
func (d *Desk) Pending(ctx context.Context, q schemas.Query) ([]schemas.Prompt, error) {
	var prompts []schemas.Prompt
	place := map[string]int{} // the index of each request in the slice prompts, by key, because a request that changes between two pages may be on both pages
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

// EachDecided calls f with one page after another of the decided requests of a session. If session is
// empty, the pages hold the requests of all sessions. A record is listed for 24 h after its decision;
// Logged lists earlier records. Most requests that are decided at once, without a person, have only log
// entries and no record.
func (d *Desk) EachDecided(ctx context.Context, session string, f func(page []schemas.Prompt) error) error {
	return d.eachPage(ctx, schemas.QueryHistory, schemas.Query{SessionID: session}, f)
}

// Logged returns one page of the requests in the log that EachDecided no longer lists, newest first.
// An empty session means all sessions. If id is not empty, the page holds only requests whose ids
// begin with id. The parameter after is the Next of the previous page. An empty page may have a Next.
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

// GrantsFor lists the standing answers that the approver userID may revoke.
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

// Revoke ends a grant on behalf of the approver userID. Requests that are sent after Revoke
// returns are decided without the grant. The error is NOT_FOUND if the grant does not exist or
// the approver may not revoke it.
func (d *Desk) Revoke(ctx context.Context, g *schemas.StandingAnswer, userID string) error {
	return d.RevokeAs(ctx, g, schemas.From{UserID: userID})
}

// RevokeAs is Revoke for a person who may have logged in at an issuer.
func (d *Desk) RevokeAs(ctx context.Context, g *schemas.StandingAnswer, from schemas.From) error {
	return revoke(ctx, d.conn, d.connector, g, &from)
}

// Leave lets a session go on while an approver is away, and returns the new standing answer.
func (d *Desk) Leave(ctx context.Context, r schemas.LeaveRequest) (schemas.StandingAnswer, error) {
	r.Type = schemas.TypeLeaveRequest
	var made schemas.Grants
	err := d.conn.CallInto(ctx, schemas.ManageSubject(d.connector, schemas.ManageLeave), r, &made)
	if err == nil && len(made.Grants) != 1 {
		err = schemas.Errorf(schemas.CodeInternal, "nod made %d standing answers for one leave", len(made.Grants))
	}
	if err != nil {
		return schemas.StandingAnswer{}, err
	}
	return made.Grants[0], nil
}

func revoke(ctx context.Context, conn *bus.Conn, connector string, g *schemas.StandingAnswer, from *schemas.From) error {
	r := schemas.Revoke{Type: schemas.TypeRevoke, GrantID: g.GrantID, Agent: g.Agent, From: from}
	if g.Scope != schemas.ScopeAgent {
		r.SessionID = g.SessionID
	}
	var ended schemas.Grants
	return conn.CallInto(ctx, schemas.ManageSubject(connector, schemas.ManageRevoke), r, &ended)
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

// Settings returns the settings in force.
func (d *Desk) Settings(ctx context.Context) (schemas.SettingsState, error) {
	var state schemas.SettingsState
	err := d.conn.CallInto(ctx, schemas.QuerySubject(d.connector, schemas.QuerySettings), schemas.Query{Type: schemas.TypeQuery}, &state)
	return state, err
}

// Approver returns the approver with the identity userID on this connector. The error is
// FORBIDDEN and names the remedy if the settings name no such approver.
func (d *Desk) Approver(ctx context.Context, userID string) (schemas.Approver, error) {
	return d.ApproverAs(ctx, schemas.From{UserID: userID})
}

// ApproverAs is Approver for a person who may have logged in at an issuer.
func (d *Desk) ApproverAs(ctx context.Context, from schemas.From) (schemas.Approver, error) {
	state, err := d.Settings(ctx)
	if err != nil {
		return schemas.Approver{}, err
	}
	a, ok := state.Settings.Approver(d.connector, from)
	if !ok {
		return a, from.NotApprover(d.connector)
	}
	return a, nil
}

// Freezes returns the freezes in force.
func (d *Desk) Freezes(ctx context.Context) ([]schemas.Freeze, error) {
	state, err := d.Settings(ctx)
	return state.Freezes, err
}

// NotifyAfter returns how long phones wait before they show a request. Phones wait only while an
// approver is at the session.
func (d *Desk) NotifyAfter(ctx context.Context) (time.Duration, error) {
	state, err := d.Settings(ctx)
	return state.Settings.NotifyAfter(), err
}

// Now returns the broker's time.
func (d *Desk) Now(ctx context.Context) (time.Time, error) {
	var page schemas.Page
	err := d.conn.CallInto(ctx, schemas.QuerySubject(d.connector, schemas.QueryPending), schemas.Query{Type: schemas.TypeQuery, Limit: 1}, &page)
	return page.Now, err
}

// Hold tells nod that a client is present, or requests the input lock for the client.
func (d *Desk) Hold(ctx context.Context, p schemas.Presence) (schemas.Lock, error) {
	p.Type = schemas.TypePresence
	var lock schemas.Lock
	err := d.conn.CallInto(ctx, schemas.PresenceSubject(d.connector), p, &lock)
	return lock, err
}

// register starts or renews the lease of a worker of this connector. If leave is true, it ends the lease.
func (d *Desk) register(ctx context.Context, worker string, leave bool) error {
	var r schemas.Registered
	return d.conn.CallInto(ctx, schemas.RegisterSubject(d.connector), schemas.Register{Type: schemas.TypeRegister, WorkerID: worker, Leave: leave}, &r)
}

func (d *Desk) shownTo(ctx context.Context, p *schemas.Prompt) (schemas.Shown, error) {
	return d.askShown(ctx, schemas.Shown{Op: schemas.ShownGet, Recipient: p.Recipient, SessionID: p.SessionID, PendingID: p.PendingID})
}

// claim claims a prompt's entry for one attempt of a worker. If another attempt has a valid claim, the
// returned entry has that claim. If the returned entry has no claim, there is nothing to show.
func (d *Desk) claim(ctx context.Context, p *schemas.Prompt, worker, try string) (schemas.Shown, error) {
	return d.askShown(ctx, schemas.Shown{
		Op: schemas.ShownClaim, Recipient: p.Recipient, SessionID: p.SessionID, PendingID: p.PendingID,
		Revision: p.Revision, Settled: p.Decision != nil, Claim: &schemas.Claim{Worker: worker, Try: try},
	})
}

// renewClaim extends an attempt's claim, unless the attempt has lost it.
func (d *Desk) renewClaim(ctx context.Context, p *schemas.Prompt, worker, try string) error {
	_, err := d.askShown(ctx, schemas.Shown{
		Op: schemas.ShownRenew, Recipient: p.Recipient, SessionID: p.SessionID, PendingID: p.PendingID,
		Claim: &schemas.Claim{Worker: worker, Try: try},
	})
	return err
}

func (d *Desk) askShown(ctx context.Context, s schemas.Shown) (schemas.Shown, error) {
	s.Type = schemas.TypeShown
	var stored schemas.Shown
	err := d.conn.CallInto(ctx, schemas.ShownSubject(d.connector), s, &stored)
	return stored, err
}

// setShown writes the entry s. The error is CONFLICT if the revision of the stored entry is not s.Entry.
func (d *Desk) setShown(ctx context.Context, s schemas.Shown) (schemas.Shown, error) {
	s.Op = schemas.ShownSet
	return d.askShown(ctx, s)
}

func (d *Desk) delivered(ctx context.Context, p *schemas.Prompt, state schemas.DeliveryState, reason string) error {
	return d.Report(ctx, schemas.Delivery{Recipient: p.Recipient, SessionID: p.SessionID, PendingID: p.PendingID, State: state, Reason: reason})
}

// Freeze denies all pending and new requests until a thaw. It applies to the agent or session that b
// names, or to all agents. Commands that already run continue.
func (d *Desk) Freeze(ctx context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error) {
	return d.changeFreeze(ctx, schemas.ManageFreeze, b)
}

// Thaw ends the freeze of the agent or session that b names. If b names neither an agent nor a
// session, Thaw ends all freezes. If nod refuses, the error is FORBIDDEN with a reason; for example,
// the settings may let only a second device thaw.
func (d *Desk) Thaw(ctx context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error) {
	return d.changeFreeze(ctx, schemas.ManageThaw, b)
}

func (d *Desk) changeFreeze(ctx context.Context, op string, b schemas.FreezeRequest) (schemas.FreezeState, error) {
	b.Type = schemas.TypeFreezeRequest
	var frozen schemas.FreezeState
	err := d.conn.CallInto(ctx, schemas.ManageSubject(d.connector, op), b, &frozen)
	return frozen, err
}

// Pair submits the code with which a person proves their identity on this connector. The error
// is NOT_FOUND if no pairing waits for this code.
func (d *Desk) Pair(ctx context.Context, code string, from schemas.From) error {
	var p schemas.Pairing
	return d.conn.CallInto(ctx, schemas.ManageSubject(d.connector, schemas.ManagePair), schemas.Pairing{Type: schemas.TypePairing, Code: code, From: &from}, &p)
}

// LoginLink requests a login code for the web inbox, for a person whom this connector has identified.
// If nod refuses, the error is FORBIDDEN with a reason.
func (d *Desk) LoginLink(ctx context.Context, from schemas.From) (schemas.LoginCode, error) {
	return d.loginCode(ctx, schemas.LoginCode{From: &from})
}

// RedeemLoginCode uses up a login code, and returns the web user whom it logs in. The error is
// NOT_FOUND if the code is unknown, expired or used.
func (d *Desk) RedeemLoginCode(ctx context.Context, code string) (userID string, err error) {
	p, err := d.loginCode(ctx, schemas.LoginCode{Code: code})
	return p.UserID, err
}

// SpendLoginCode marks a login code, which the web inbox has signed itself, as used. nod keeps the
// mark until the code expires, at the time until. If several callers mark the same code, first is true
// for only one of them.
func (d *Desk) SpendLoginCode(ctx context.Context, code string, until time.Time) (first bool, err error) {
	p, err := d.loginCode(ctx, schemas.LoginCode{Op: schemas.SpendLoginCode, Code: code, Until: until, Try: bus.NewID()})
	return err == nil && !p.Spent, err
}

// LoginCodeSpent reports whether SpendLoginCode has marked a login code as used.
func (d *Desk) LoginCodeSpent(ctx context.Context, code string) (bool, error) {
	p, err := d.loginCode(ctx, schemas.LoginCode{Op: schemas.CheckLoginCode, Code: code})
	return p.Spent, err
}

// LoadLogin returns the stored login of a web session, with its revision, or "" if none is
// stored.
func (d *Desk) LoadLogin(ctx context.Context, session string) (sealed string, revision uint64, err error) {
	p, err := d.loginCode(ctx, schemas.LoginCode{Op: schemas.LoadLogin, Code: session})
	return p.Sealed, p.Revision, err
}

// StoreLogin writes the login of a web session, which is kept until a time at most 30 days
// ahead, and returns its revision. An empty login removes it. The error is CONFLICT if the stored
// login has another revision; a revision of 0 means that none is stored.
func (d *Desk) StoreLogin(ctx context.Context, session, sealed string, revision uint64, until time.Time) (uint64, error) {
	p, err := d.loginCode(ctx, schemas.LoginCode{Op: schemas.StoreLogin, Code: session, Sealed: sealed, Revision: revision, Until: until})
	return p.Revision, err
}

// Handled reports whether MarkHandled has marked a message of this channel.
func (d *Desk) Handled(ctx context.Context, message string) (bool, error) {
	return d.LoginCodeSpent(ctx, schemas.HashCode(message))
}

// MarkHandled marks a message of this channel as handled, until a time at most 30 days ahead. If
// several callers mark the same message, first is true for only one of them.
func (d *Desk) MarkHandled(ctx context.Context, message string, until time.Time) (first bool, err error) {
	return d.SpendLoginCode(ctx, schemas.HashCode(message), until)
}

// Report tells nod the result of showing a prompt.
func (d *Desk) Report(ctx context.Context, r schemas.Delivery) error {
	r.Type = schemas.TypeDelivery
	var ok schemas.OK
	return d.conn.CallInto(ctx, schemas.DeliverySubject(d.connector), r, &ok)
}

func (d *Desk) loginCode(ctx context.Context, p schemas.LoginCode) (schemas.LoginCode, error) {
	p.Type = schemas.TypeLoginCode
	var reply schemas.LoginCode
	err := d.conn.CallInto(ctx, schemas.ManageSubject(d.connector, schemas.ManagePass), p, &reply)
	return reply, err
}
