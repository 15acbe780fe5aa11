package rig

import (
	"fmt"
	"sync"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// Ledger counts the received prompts by record and version.
type Ledger struct {
	mu    sync.Mutex
	heard map[string]int // the number of prompts, by <key>@<revision>
}

func (l *Ledger) add(p schemas.Prompt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard == nil {
		l.heard = map[string]int{}
	}
	l.heard[fmt.Sprintf("%s@%d", p.Key(), p.Revision)]++
}

// Times returns how many prompts of one version of a record were received.
func (l *Ledger) Times(key string, revision uint64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard[fmt.Sprintf("%s@%d", key, revision)]
}

// Carrier registers a worker of the connector tg. The worker takes all prompts from the queue and counts
// those for Ann. The settings must be WithCarrier.
func (e *Env) Carrier() *Ledger {
	e.T.Helper()
	var shown Ledger
	e.Registers("tg", "carrier", false)
	queue, err := e.Conn(roles.ConnectorID("tg")).PromptQueue(e.Ctx, "tg")
	e.NoError(err)
	stop, err := queue.Consume(func(d *bus.Delivery) {
		var p schemas.Prompt
		if schemas.Decode(d.Data, &p) == nil && p.Recipient == "1001" {
			shown.add(p)
		}
		d.Done()
	})
	e.NoError(err)
	e.Wires = append(e.Wires, stop)
	return &shown
}

// Viewer subscribes as a viewer, and counts the prompts that arrive.
func (e *Env) Viewer() *Ledger {
	e.T.Helper()
	var seen Ledger
	_, err := e.Conn(roles.ConnectorID("terminal")).Subscribe("nod.v1.view.>", func(m bus.Message) {
		var p schemas.Prompt
		if schemas.Decode(m.Data, &p) == nil {
			seen.add(p)
		}
	})
	e.NoError(err)
	e.NoError(e.Conn(roles.ConnectorID("terminal")).Flush(e.Ctx))
	return &seen
}

// Logged counts the log entries of one kind, by request.
func (e *Env) Logged(kind schemas.LogKind) map[string]int {
	e.T.Helper()
	stream, err := e.Raw.Stream(e.Ctx, "permission_log")
	e.NoError(err)
	entries := map[string]int{}
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		entry, err := e.Store.Log.Read(e.Ctx, seq)
		e.NoError(err)
		if entry.Kind == kind {
			entries[schemas.Key(entry.SessionID, entry.PendingID)]++
		}
	}
	return entries
}
