package connector

import (
	"context"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

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

// SpendLoginCode marks a login code as used. The web inbox has signed this code itself. The parameter
// until is the time at which the code expires, and until which nod keeps the mark. If several callers
// mark the same code, the result first is true for only one of them.
func (d *Desk) SpendLoginCode(ctx context.Context, code string, until time.Time) (first bool, err error) {
	p, err := d.loginCode(ctx, schemas.LoginCode{Op: schemas.SpendLoginCode, Code: code, Until: until, Try: bus.NewID()})
	return err == nil && !p.Spent, err
}

// LoginCodeSpent reports whether SpendLoginCode has marked a login code as used.
func (d *Desk) LoginCodeSpent(ctx context.Context, code string) (bool, error) {
	p, err := d.loginCode(ctx, schemas.LoginCode{Op: schemas.CheckLoginCode, Code: code})
	return p.Spent, err
}

// LoadLogin returns the stored login of a web session and the login's revision. If none is stored,
// the login is "".
func (d *Desk) LoadLogin(ctx context.Context, session string) (sealed string, revision uint64, err error) {
	p, err := d.loginCode(ctx, schemas.LoginCode{Op: schemas.LoadLogin, Code: session})
	return p.Sealed, p.Revision, err
}

// StoreLogin writes the login of a web session, and returns the new revision. nod keeps the login
// until the given time, at most 30 days ahead. An empty login removes the stored login. The error is
// CONFLICT if the stored login does not have the given revision. The revision 0 means that no login
// is stored.
func (d *Desk) StoreLogin(ctx context.Context, session, sealed string, revision uint64, until time.Time) (uint64, error) {
	p, err := d.loginCode(ctx, schemas.LoginCode{Op: schemas.StoreLogin, Code: session, Sealed: sealed, Revision: revision, Until: until})
	return p.Revision, err
}

// Handled reports whether MarkHandled has marked a message of this channel.
func (d *Desk) Handled(ctx context.Context, message string) (bool, error) {
	return d.LoginCodeSpent(ctx, schemas.HashCode(message))
}

// MarkHandled marks a message of this channel as handled, until a time at most 30 days ahead. If
// several callers mark the same message, the result first is true for only one of them.
func (d *Desk) MarkHandled(ctx context.Context, message string, until time.Time) (first bool, err error) {
	return d.SpendLoginCode(ctx, schemas.HashCode(message), until)
}

func (d *Desk) loginCode(ctx context.Context, p schemas.LoginCode) (schemas.LoginCode, error) {
	p.Type = schemas.TypeLoginCode
	var reply schemas.LoginCode
	err := d.conn.CallInto(ctx, schemas.ManageSubject(d.connector, schemas.ManagePass), p, &reply)
	return reply, err
}
