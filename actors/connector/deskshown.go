package connector

import (
	"context"

	"github.com/nodbus/nod/schemas"
)

// register starts or renews the lease of a worker of this connector. If the parameter leave is true,
// it ends the lease.
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

// setShown writes an entry of the bucket shown_prompts. The error is CONFLICT if the revision of the
// stored entry is not s.Entry.
func (d *Desk) setShown(ctx context.Context, s schemas.Shown) (schemas.Shown, error) {
	s.Op = schemas.ShownSet
	return d.askShown(ctx, s)
}

func (d *Desk) delivered(ctx context.Context, p *schemas.Prompt, state schemas.DeliveryState, reason string) error {
	return d.Report(ctx, schemas.Delivery{Recipient: p.Recipient, SessionID: p.SessionID, PendingID: p.PendingID, State: state, Reason: reason})
}

// Report tells nod the result of showing a prompt.
func (d *Desk) Report(ctx context.Context, r schemas.Delivery) error {
	r.Type = schemas.TypeDelivery
	var ok schemas.OK
	return d.conn.CallInto(ctx, schemas.DeliverySubject(d.connector), r, &ok)
}
