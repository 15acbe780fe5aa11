package engine

import (
	"cmp"
	"context"
	"errors"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// register renews or ends the lease of a connector's worker. For a new worker it creates the
// queue that all workers of the connector share.
func (e *connectors) register(ctx context.Context, c *caller, r *schemas.Register) (schemas.Registered, error) {
	connector := c.name
	until := e.clock.now().Add(e.Lease)
	worker := schemas.Registered{Type: schemas.TypeRegistered, LeaseUntil: until}
	key := "worker." + connector + "." + r.WorkerID
	_, _, err := bus.Change(ctx, e.store.Presence, key, func(stored *schemas.Registered, found bool) (bus.Edit, error) {
		if r.Leave {
			return bus.Edit{Remove: true}, nil
		}
		*stored = worker
		return bus.Edit{Store: true, Kept: e.Lease}, e.servePrompts(ctx, connector, !found)
	})
	if err != nil {
		return schemas.Registered{}, err
	}
	return worker, nil
}

// servePrompts creates the queue of a carrier's prompts if the worker is new or the queue was
// lost. An inbox has no queue.
func (e *connectors) servePrompts(ctx context.Context, connector string, isNew bool) error {
	switch {
	case schemas.IsViewer(connector):
		return nil
	case isNew:
		return e.prompts.Serve(ctx, connector)
	}
	return e.prompts.Keep(ctx, connector)
}

// delivery handles a worker's report that it has shown a prompt, or could not show it. The agent's
// session gets a notice.
func (e *connectors) delivery(ctx context.Context, c *caller, d *schemas.Delivery) (schemas.OK, error) {
	key := schemas.Key(d.SessionID, d.PendingID)
	entry, err := e.store.Records.Get(ctx, key)
	if errors.Is(err, bus.ErrNotFound) || err == nil && !routed(&entry.Record, c.name, d.Recipient) {
		return schemas.OK{}, notFound(key)
	}
	if err != nil {
		return schemas.OK{}, err
	}
	if err := e.logDelivery(ctx, c.name, &entry, d); err != nil {
		return schemas.OK{}, err
	}
	if d.State != schemas.DeliveryShown {
		e.Log.Warn("engine: a prompt was not shown", "key", key, "connector", c.name, "state", d.State, "reason", d.Reason)
	}
	kind, text := schemas.NoticeShown, "The question is shown on "+c.name+"."
	if d.Reason != "" { // a receipt of the channel, such as "read"
		text = "The question is shown on " + c.name + ": " + d.Reason + "."
	}
	if d.State != schemas.DeliveryShown {
		kind, text = schemas.NoticeUndeliverable, "The question could not be shown on "+c.name+": "+d.Reason
		var last bool
		if entry, last, err = e.effects.markRouteFailed(ctx, entry, c.name, d.Recipient); err != nil {
			return schemas.OK{}, err
		}
		if !goesToCarriers(&entry.Record) { // a question without a working route no longer counts among those that phones show, so the next question takes its place
			if err := e.effects.freePlace(ctx, entry.Key, heldBack(&entry.Record)); err != nil {
				return schemas.OK{}, err
			}
		}
		if last {
			text = "No approver could be shown the question: " + d.Reason
			if err := e.effects.cancelUnreachable(ctx, entry, d.Reason); err != nil {
				return schemas.OK{}, err
			}
		}
	}
	if err := e.notify(ctx, entry.Record.Agent, d.SessionID, d.PendingID, kind, text); err != nil {
		return schemas.OK{}, err
	}
	return schemas.OK{Type: schemas.TypeOK}, nil
}

// logDelivery logs once that a question is shown to a person, or that it cannot be shown. It does not
// log that a channel reports a message as read, because this says nothing about the reader.
func (e *connectors) logDelivery(ctx context.Context, connector string, entry *bus.Entry, d *schemas.Delivery) error {
	kind := schemas.LogShown
	switch {
	case d.State != schemas.DeliveryShown:
		kind = schemas.LogUndelivered
	case d.Reason != "":
		return nil
	}
	prompt, err := e.life.promptOf(*entry)
	if err != nil {
		return err
	}
	who, _ := e.settings.now().settings.Approver(connector, schemas.From{UserID: d.Recipient})
	id := logID(entry) + "." + string(kind) + "." + schemas.SubjectToken(connector+"."+d.Recipient)
	_, _, err = e.store.Log.Append(ctx, id, schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: e.clock.now(), Kind: kind, SessionID: d.SessionID, PendingID: d.PendingID,
		Actor: cmp.Or(who.Name, d.Recipient) + "@" + connector, Agent: entry.Record.Agent,
		ToolName: prompt.Request.ToolName, Digest: entry.Record.Digest, Rule: d.Reason,
	})
	return err
}
