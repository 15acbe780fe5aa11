// Package connector runs the actors between nod and people: the desk of every connector, the
// worker of a carrier, and the viewer of a connector that shows all pending requests.
package connector

import (
	"context"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// Desk is a connector's client of nod, over the bus. It implements people.Desk. If nod does not
// reply, or replies UNAVAILABLE, a call retries until its context ends. Errors in nod's replies
// are *schemas.Error.
type Desk struct {
	// PageTimeout is the time limit for each page of a list. If it is 0, only the context limits the
	// time.
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

// Revoke ends a grant on behalf of the approver with this user id. Requests that are sent after
// Revoke returns are decided without the grant. The error is NOT_FOUND if the grant does not exist or
// the approver may not revoke it.
func (d *Desk) Revoke(ctx context.Context, g *schemas.StandingAnswer, userID string) error {
	return d.RevokeAs(ctx, g, schemas.From{UserID: userID})
}

// RevokeAs ends a grant as Revoke does, for a person who may have logged in at an issuer.
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

// Settings returns the settings in force.
func (d *Desk) Settings(ctx context.Context) (schemas.SettingsState, error) {
	var state schemas.SettingsState
	err := d.conn.CallInto(ctx, schemas.QuerySubject(d.connector, schemas.QuerySettings), schemas.Query{Type: schemas.TypeQuery}, &state)
	return state, err
}

// Approver returns the approver with this user id on this connector. If the settings name no such
// approver, the error is FORBIDDEN and names the remedy.
func (d *Desk) Approver(ctx context.Context, userID string) (schemas.Approver, error) {
	return d.ApproverAs(ctx, schemas.From{UserID: userID})
}

// ApproverAs returns an approver as Approver does, for a person who may have logged in at an issuer.
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

// NotifyAfter returns how long nod waits before phones show a request. nod waits only if an approver
// is at the session.
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

// Hold tells nod that a client is present, or requests or releases the input lock for the client.
func (d *Desk) Hold(ctx context.Context, p schemas.Presence) (schemas.Lock, error) {
	p.Type = schemas.TypePresence
	var lock schemas.Lock
	err := d.conn.CallInto(ctx, schemas.PresenceSubject(d.connector), p, &lock)
	return lock, err
}

// Freeze denies all pending and new requests until a thaw. It applies to the agent or session that
// the parameter b names or, if b names neither, to all agents. Commands that already run continue.
func (d *Desk) Freeze(ctx context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error) {
	return d.changeFreeze(ctx, schemas.ManageFreeze, b)
}

// Thaw ends the freeze of the agent or session that the parameter b names. If b names neither an
// agent nor a session, Thaw ends all freezes. If nod refuses, the error is FORBIDDEN with a reason,
// for example that only a second device may thaw.
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
