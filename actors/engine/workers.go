package engine

import (
	"context"
	"errors"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// register renews the lease of a connector's worker. For a new worker it creates the
// queue that the connector's workers share.
func (e *Engine) register(ctx context.Context, c *bus.Call) error {
	connector := c.Tokens[0]
	var r schemas.Register
	if err := schemas.Decode(c.Data, &r); err != nil {
		return err
	}
	until := e.clock.now().Add(e.Lease)
	worker := schemas.Registered{Type: schemas.TypeRegistered, LeaseUntil: until}
	key := "worker." + connector + "." + r.WorkerID
	for {
		var was schemas.Registered
		revision, err := e.store.Presence.Get(ctx, key, &was)
		missing := errors.Is(err, bus.ErrNotFound)
		switch {
		case err != nil && !missing:
			return err
		case r.Leave && missing:
			c.Reply(worker)
			return nil
		case r.Leave:
			err = e.store.Presence.Remove(ctx, key, revision)
		default:
			if err := e.servePrompts(ctx, connector, missing); err != nil {
				return err
			}
			_, err = e.store.Presence.Put(ctx, key, worker, revision, e.Lease)
		}
		if errors.Is(err, bus.ErrMoved) {
			continue
		}
		if err != nil {
			return err
		}
		c.Reply(worker)
		return nil
	}
}

// servePrompts creates the queue of a carrier's prompts if the worker is new, or if the
// queue was lost.
func (e *Engine) servePrompts(ctx context.Context, connector string, comes bool) error {
	switch {
	case schemas.Inbox(connector):
		return nil
	case comes:
		return e.prompts.Serve(ctx, connector)
	}
	return e.prompts.Keep(ctx, connector)
}

// delivery handles a worker's report about showing a prompt.
func (e *Engine) delivery(ctx context.Context, c *bus.Call) error {
	var d schemas.Delivery
	if err := schemas.Decode(c.Data, &d); err != nil {
		return err
	}
	key := schemas.Key(d.SessionID, d.PendingID)
	entry, err := e.store.Records.Get(ctx, key)
	if errors.Is(err, bus.ErrNotFound) || err == nil && !routed(&entry.Record, c.Tokens[0], d.Recipient) {
		return notFound(key)
	}
	if err != nil {
		return err
	}
	if d.State != schemas.DeliveryShown {
		e.Log.Warn("engine: a prompt was not shown", "key", key, "connector", c.Tokens[0], "state", d.State, "reason", d.Reason)
	}
	kind, text := schemas.NoticeShown, "The question is shown on "+c.Tokens[0]+"."
	if d.State != schemas.DeliveryShown {
		kind, text = schemas.NoticeUndeliverable, "The question could not be shown on "+c.Tokens[0]+": "+d.Reason
		var last bool
		if entry, last, err = e.markRouteFailed(ctx, entry, c.Tokens[0], d.Recipient); err != nil {
			return err
		}
		if !goesToCarriers(&entry.Record) { // the session's next question is shown in its place
			if err := e.freePlace(ctx, entry.Key, heldBack(&entry.Record)); err != nil {
				return err
			}
		}
		if last {
			text = "Nobody could be shown the question: " + d.Reason
			if err := e.cancelUnreachable(ctx, entry, d.Reason); err != nil {
				return err
			}
		}
	}
	if err := e.notify(entry.Record.Agent, d.SessionID, d.PendingID, kind, text); err != nil {
		return err
	}
	c.Reply(schemas.OK{Type: schemas.TypeOK})
	return nil
}
